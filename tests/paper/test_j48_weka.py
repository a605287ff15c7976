"""J48 against Weka's own, where Java and Weka are present.

Weka's jar is looked for in ``FEATSTREAM_WEKA`` and where Debian's package
``weka`` puts it.
"""

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from featstream.evaluation import J48
from shared import load, shared

JAR = Path(os.environ.get("FEATSTREAM_WEKA", "/usr/share/java/weka.jar"))

pytestmark = [
    pytest.mark.skipif(
        shutil.which("java") is None or not JAR.exists(),
        reason="needs java and weka.jar (apt-get install weka; or set FEATSTREAM_WEKA)",
    ),
    pytest.mark.skipif(
        bool(int(os.environ.get("NUMBA_DISABLE_JIT", "0"))),
        reason="takes minutes without compiled kernels",
    ),
]


def write_arff(path, X, y, n_classes, values):
    with path.open("w") as file:
        file.write("@relation r\n")
        for j in range(X.shape[1]):
            own = values.get(j)
            kind = "numeric" if own is None else "{" + ",".join(own) + "}"
            file.write(f"@attribute f{j} {kind}\n")
        classes = ",".join(f"c{c}" for c in range(n_classes))
        file.write(f"@attribute class {{{classes}}}\n@data\n")
        for row, label in zip(X.tolist(), y, strict=True):
            cells = [f"v{v:.0f}" if j in values else v for j, v in enumerate(row)]
            text = ",".join(map(str, cells)).replace("vnan", "?").replace("nan", "?")
            file.write(f"{text},c{label}\n")


def weka(*arguments):
    command = ["java", "-Xmx1g", "-cp", JAR, "weka.classifiers.trees.J48", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def weka_tree(folder, X, y, X_test, *, nominal, options):
    """Number of leaves, of nodes, and class shares of the test rows, from Weka."""
    n_classes = int(y.max()) + 1
    values = {
        int(j): [f"v{int(v)}" for v in np.unique(X[~np.isnan(X[:, j]), j])]
        for j in np.flatnonzero(nominal)
    }
    train, test = folder / "train.arff", folder / "test.arff"
    write_arff(train, X, y, n_classes, values)
    write_arff(test, X_test, np.zeros(len(X_test), int), n_classes, values)
    summary = weka("-t", train, "-no-cv", *options)
    rows = weka("-t", train, "-T", test, "-p", "0", "-distribution", *options)
    shares, winners = [], []
    for line in rows.splitlines():
        found = re.match(r"\s*\d+\s+\d+:c\S+\s+\d+:c(\d+)\s+\+?\s*([\d.,*]+)", line)
        if found:
            winners.append(int(found[1]))
            shares.append([float(s.strip("*")) for s in found[2].split(",")])
    n_leaves = int(re.search(r"Number of Leaves\s*:\s*(\d+)", summary)[1])
    n_nodes = int(re.search(r"Size of the tree\s*:\s*(\d+)", summary)[1])
    return n_leaves, n_nodes, np.array(winners), np.array(shares)


def sample(X, y, n):
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X = np.asarray(X[rows], float)
    return X, np.unique(y[rows], return_inverse=True)[1]


def with_holes(X, share):
    is_hole = np.random.default_rng(0).random(X.shape) < share
    return np.where(is_hole, np.nan, X)


def simulated(kind):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 8)).round(2)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600) > 0).astype(int)
    if kind == "noise":
        y = rng.integers(0, 3, 600)
    if kind == "mixed":
        X[:, 4:] = rng.integers(0, [2, 3, 5, 250], (600, 4))
        y = (y + (X[:, 6] == 2) + (X[:, 5] == 1)).astype(int) % 3
    return X, y


def bundled(loader):
    return sample(*loader(return_X_y=True), 1000)


def archive(name, n, prefix=""):
    data = load(shared("data", f"{name}.npz"))
    return sample(data[f"X{prefix}"], data[f"y{prefix}"], n)


def madelon():
    X, y = archive("madelon", 1500, "_train")
    return X[:, :100], y


SETS = {  # and which features are nominal
    "iris": (partial(bundled, load_iris), False),
    "wine": (partial(bundled, load_wine), False),
    "breast_cancer": (partial(bundled, load_breast_cancer), False),
    "digits": (partial(bundled, load_digits), False),
    "interaction": (partial(simulated, "interaction"), False),
    "noise": (partial(simulated, "noise"), False),
    "mixed": (partial(simulated, "mixed"), np.arange(8) >= 4),
    "connect4": (partial(archive, "connect4", 3000), True),
    "poker as numbers": (partial(archive, "poker_train", 3000), False),
    "poker as categories": (partial(archive, "poker_train", 3000), True),
    "madelon": (madelon, False),
}

VARIANTS = {
    "default": (0.0, {}, []),
    "missing values": (0.1, {}, []),
    "no raising": (0.0, {"subtree_raising": False}, ["-S"]),
    "strict": (0.0, {"confidence": 0.05, "min_leaf": 5}, ["-C", "0.05", "-M", "5"]),
    "unpruned": (0.05, {"pruned": False}, ["-U"]),
}
CASES = [
    pytest.param(name, how, marks=() if is_fast else pytest.mark.slow)
    for name in SETS
    for how in VARIANTS
    for is_fast in [how == "default" or name == "mixed"]
]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_tree_has_the_size_and_the_class_shares_of_wekas(name, variant, tmp_path):
    make, nominal = SETS[name]
    holes, parameters, options = VARIANTS[variant]
    X, y = make()
    X = with_holes(X, holes)
    nominal = np.broadcast_to(nominal, X.shape[1])
    half = len(y) // 2
    X_train, y_train, X_test = X[:half], y[:half], X[half:]
    if nominal.any():  # an unseen category is an error in an ARFF file
        for j in np.flatnonzero(nominal):
            X_test[~np.isin(X_test[:, j], X_train[:, j]), j] = np.nan
    y_train = np.unique(y_train, return_inverse=True)[1]
    n_leaves, n_nodes, winners, shares = weka_tree(
        tmp_path, X_train, y_train, X_test, nominal=nominal, options=options
    )
    tree = J48(nominal=nominal, **parameters).fit(X_train, y_train)
    assert (tree.n_leaves_, tree.n_nodes_) == (n_leaves, n_nodes)
    np.testing.assert_allclose(tree.predict_proba(X_test), shares, atol=6e-4)
    np.testing.assert_array_equal(tree.predict(X_test), winners)

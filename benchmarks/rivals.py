"""Fast-OSFS and Alpha-investing against plain numpy transcriptions of the pseudo-code.

    python benchmarks/rivals.py [path to the shared data]

Both run in one process on the same arrays, select the same features, and are timed
after a warm-up. The transcriptions do what the pseudo-code and the authors' library
do: every test counts its tables or inverts its matrix anew, every regression is
fitted from scratch.
"""

import sys
import time
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.special import chdtrc
from scipy.stats import norm

from featstream import AlphaInvesting, FastOSFS
from featstream.datasets import make_stream


def g_test(X, y, a, given, alpha):
    """Whether a feature is independent of the class given others, by G²."""
    X = X[:, [a, *given]].astype(np.int64)
    a, given = 0, range(1, X.shape[1])
    key = np.zeros(len(y), dtype=np.int64)
    df = (X[:, a].max()) * (y.max())
    for g in given:
        key = key * (X[:, g].max() + 1) + X[:, g]
        df *= X[:, g].max() + 1
    df = max(int(df), 1)
    if len(y) < 5 * df:
        return True
    n_a, n_y = int(X[:, a].max()) + 1, int(y.max()) + 1
    cells = (key * n_a + X[:, a]) * n_y + y
    counts = np.bincount(cells, minlength=(int(key.max()) + 1) * n_a * n_y)
    counts = counts.reshape(-1, n_a, n_y).astype(float)
    total = counts.sum(axis=(1, 2), keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True) / total
        terms = counts * np.log(counts / expected)
    return chdtrc(df, 2 * np.nansum(terms)) >= alpha


def z_test(X, y, a, given, alpha):
    """The same by Fisher's Z, with a matrix inverse."""
    C = np.cov(np.column_stack([X[:, a], y, X[:, list(given)]]).T)
    if given:
        C = C[:2, :2] - C[:2, 2:] @ np.linalg.inv(C[2:, 2:]) @ C[2:, :2]
    r = C[0, 1] / np.sqrt(C[0, 0] * C[1, 1])
    return abs(np.sqrt(len(y) - len(given) - 3) * np.arctanh(r)) < norm.isf(alpha / 2)


def fast_osfs(X, y, test, alpha=0.01, max_size=3):
    kept = []

    def is_redundant(a, others, must):
        for size in range(1, max_size + 1):
            for given in combinations(others, size):
                if (must is None or must in given) and test(X, y, a, given, alpha):
                    return True
        return False

    for new in range(X.shape[1]):
        if not X[:, new].any() or test(X, y, new, (), alpha):
            continue
        if is_redundant(new, kept, None):
            continue
        kept.append(new)
        for a in kept[:-1]:
            if is_redundant(a, [k for k in kept if k != a], new):
                kept.remove(a)
    return kept


def alpha_investing(X, y, wealth=0.5):
    n, p = X.shape
    kept, model = [], np.ones((n, 1))

    def error(design):
        weights = np.linalg.inv(design.T @ design) @ design.T @ y
        return np.sum((y - design @ weights) ** 2)

    for i in range(p):
        alpha = wealth / (2 * (i + 1))
        before = error(model)
        try:
            after = error(np.column_stack([model, X[:, i]]))
        except np.linalg.LinAlgError:
            after = np.nan
        if np.exp((after - before) / (2 * before / n)) < alpha:
            model = np.column_stack([model, X[:, i]])
            kept.append(i)
            wealth += 0.5 - alpha
        else:
            wealth -= alpha
    return kept


def load(path):
    arrays = np.load(path, allow_pickle=False)
    if "X_train_format" in arrays.files:
        X = sparse.csc_matrix(
            (
                arrays["X_train_data"],
                arrays["X_train_indices"].astype(np.int32),
                arrays["X_train_indptr"],
            ),
            shape=tuple(arrays["X_train_shape"]),
        ).toarray()
        return X, arrays["y_train"]
    if "X_format" in arrays.files:
        raise ValueError(path)
    name = "X_train" if "X_train" in arrays.files else "X"
    return arrays[name], arrays[name.replace("X", "y")]


def datasets(folder):
    stream = make_stream(1000, 1000, n_informative=15, n_redundant=200, seed=0)
    yield "made, discrete", "g2", np.asfortranarray(stream.X, dtype=np.uint8), stream.y
    stream = make_stream(
        500, 1000, n_informative=15, n_redundant=200, kind="continuous", seed=0
    )
    yield "made, continuous", "fisher-z", stream.X, stream.y
    for name, test in (
        ("hiva_train", "g2"),
        ("dorothea", "g2"),
        ("dexter", "fisher-z"),
    ):
        path = Path(folder) / f"{name}.npz"
        if path.exists():
            X, y = load(path)
            dtype = np.uint8 if test == "g2" else np.float64
            yield name, test, np.asfortranarray(X, dtype=dtype), (y > 0).astype(int)


def best_of(run, n_times=3):
    found, times = None, []
    for _ in range(n_times):
        began = time.perf_counter()
        found = run()
        times.append(time.perf_counter() - began)
    return list(found), min(times)


def selected_by(selector, X, y):
    return selector.fit(X, y).selected_.tolist()


def report(what, plain, ours):
    expected, slow = best_of(plain, 1)
    ours()
    selected, fast = best_of(ours)
    verdict = "same features" if selected == expected else "DIFFERENT FEATURES"
    print(
        f"{what:38} {slow:9.3f} s {fast:9.4f} s {slow / fast:7.0f}x  "
        f"{len(selected):3} selected, {verdict}",
        flush=True,
    )


def main(folder):
    for name, test, X, y in datasets(folder):
        judge = g_test if test == "g2" else z_test
        report(
            f"FastOSFS {test}, {name}",
            partial(fast_osfs, X, y, judge),
            partial(selected_by, FastOSFS(test=test), X, y),
        )
        if name == "dorothea":
            continue  # hundreds of features and as many inverses: too slow to wait for
        numbers = X.astype(float, order="F")
        report(
            f"AlphaInvesting, {name}",
            partial(alpha_investing, numbers, y),
            partial(selected_by, AlphaInvesting(), numbers, y),
        )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")

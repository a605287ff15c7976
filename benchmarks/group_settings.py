"""OGFS and sparse group lasso, fitted to the paper's numbers of features and groups.

The paper does not state their settings. Each setting is run on five divisions into 100
random groups; shown are mean numbers of features and groups beside Table 23 (`tb17`),
and their distance: the mean absolute logarithm of the ratios, over all sets.
``python -m benchmarks.group_settings [ogfs | lasso] [divisions]``.
"""

import sys
import warnings
from itertools import product

import numpy as np

from benchmarks.group_protocol import FILES, load
from featstream import OGFS, SparseGroupLassoSelector, random_groups
from featstream.evaluation import paper_table

METHODS = {"ogfs": "OGFS", "lasso": "SGLasso"}


def ogfs_settings():
    """Both criteria, with gains and prices around those of the authors' program."""
    gains = (0.0001, 0.001, 0.01)
    prices = (0.02, 0.03, 0.05, 0.07, 0.1, 0.15)
    for criterion, gain, penalty in product(("difference", "t-test"), gains, prices):
        options = {"criterion": criterion, "gain": gain, "penalty": penalty}
        yield str(options), lambda n_features, chosen=options: OGFS(**chosen)


def lasso_settings():
    """The four prices of a feature that the paper states, and several of a group.

    A group costs the same whatever its size ("1"), or in proportion to its root.
    """
    prices = (0.01, 0.02, 0.05, 0.1)
    group_prices = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1)
    for penalty, group_penalty, weight in product(prices, group_prices, ("1", "root")):

        def make(n_features, own=(penalty, group_penalty, weight)):
            root = np.sqrt(n_features / 100)
            scale = root if own[2] == "1" else 1.0
            return SparseGroupLassoSelector(
                penalty=own[0], group_penalty=own[1] / scale, tol=1e-4
            )

        yield f"l1={penalty} l2={group_penalty} weight={weight}", make


def printed(method):
    """Numbers of features and groups of a method, by data set."""
    table = paper_table("tb17")
    counts = {}
    for name in FILES:
        row = table.values[table.datasets.index(name)]
        found = {
            c.metric: v
            for c, v in zip(table.columns, row, strict=True)
            if c.method == method
        }
        counts[name] = np.array([found["n_features"], found["n_groups"]])
    return counts


def count(data, make, n_divisions):
    """Mean numbers of selected features and groups."""
    X, y = (data.get(f"{part}_train", data.get(part)) for part in ("X", "y"))
    found = []
    for seed in range(n_divisions):
        groups = random_groups(X.shape[1], 100, seed)
        selector = make(X.shape[1]).fit(X, y, groups=groups)
        found.append([selector.selected_.size, selector.selected_groups_.size])
    return np.mean(found, axis=0)


def main(what="ogfs", n_divisions=5):
    warnings.simplefilter("ignore")
    wanted = printed(METHODS[what])
    data = {name: load(file) for name, (file, _) in FILES.items()}
    print(f"{'distance':>8}  setting: features / groups of {', '.join(FILES)}")
    print(
        " " * 10
        + "paper: "
        + "  ".join("{:g} / {:g}".format(*wanted[n]) for n in FILES)
    )
    settings = ogfs_settings() if what == "ogfs" else lasso_settings()
    for setting, make in settings:
        counts = {name: count(data[name], make, n_divisions) for name in FILES}
        gaps = [np.log((counts[n] + 0.5) / (wanted[n] + 0.5)) for n in FILES]
        distance = np.abs(gaps).mean()
        shown = "  ".join("{:.1f} / {:.1f}".format(*counts[n]) for n in FILES)
        print(f"{distance:8.2f}  {setting}: {shown}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))

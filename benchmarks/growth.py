"""How the time grows: with features, with rows, with kept features.

``python -m benchmarks.growth`` prints a table and writes ``benchmarks/out/growth.png``.
One thread, after warm-up, best of three; every time is a multiple of the first of
its line, and so is what it is drawn against.
"""

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.core import PlainScan
from benchmarks.timing import alternate, binary, continuous, sparse_binary
from featstream import SAOLA, FisherZ, SymmetricalUncertainty

OUT = Path(__file__).parent / "out"

CONTINUOUS = SAOLA(measure=FisherZ(alpha=0.01))
BINARY = SAOLA(measure=SymmetricalUncertainty(threshold=0.003))
SPARSE = SAOLA(measure=SymmetricalUncertainty(threshold=0.001))


def tokens(n_kept, seed=0):
    """Sparse columns of which ``n_kept`` stay: one for each set of rows.

    Each is one of ``n_kept`` disjoint sets of rows, of one class all, with some rows
    left out; the whole sets come first.
    """
    rng = np.random.default_rng(seed)
    per_set, n_features = 8, 40_000
    y = np.repeat([0, 1], per_set * n_kept)
    which = np.r_[np.arange(n_kept), rng.integers(0, n_kept, n_features - n_kept)]
    is_in = rng.random((n_features, per_set)) < 0.7
    is_in[:n_kept] = True
    is_in[:, 0] = True
    is_in[n_kept:, 1] = False
    rows = (which[:, None] * per_set + np.arange(per_set))[is_in]
    starts = np.r_[0, np.cumsum(is_in.sum(axis=1))]
    ones = np.ones(rows.size, np.uint8)
    X = sp.csc_array((ones, rows.astype(np.int32), starts), (y.size, n_features))
    return X, y


def with_features(sizes=(12_500, 25_000, 50_000, 100_000, 200_000)):
    lines = {}
    for name, selector, (X, y) in (
        ("dense continuous, 500 rows", CONTINUOUS, continuous(500, sizes[-1])),
        ("dense binary, 500 rows", BINARY, binary(500, sizes[-1])),
        ("sparse binary, 10 entries", SPARSE, sparse_binary(10_000, sizes[-1])),
    ):
        lines[name] = [(m, _time(selector, X[:, :m], y)) for m in sizes]
    return lines


def with_rows(sizes=(250, 500, 1000, 2000, 4000)):
    lines = {}
    for name, selector, make in (
        ("dense continuous, 20,000 features", CONTINUOUS, continuous),
        ("dense binary, 20,000 features", BINARY, binary),
        ("sparse binary, 200,000 features", SPARSE, sparse_binary),
    ):
        width = 200_000 if make is sparse_binary else 20_000
        lines[name] = [(n, _time(selector, *make(n, width))) for n in sizes]
    return lines


def with_kept(sizes=(250, 500, 1000, 2000, 4000)):
    lines = {"plain scan": [], "SAOLA": []}
    for n_kept in sizes:
        X, y = tokens(n_kept)
        for name, kind in (("plain scan", PlainScan), ("SAOLA", SAOLA)):
            selector = kind(measure="su")
            seconds = _time(selector, X, y)
            lines[name].append((selector.selected_.size, seconds))
    return lines


def _time(selector, X, y):
    selector.fit(X[:, :1000], y)
    return alternate({"fit": lambda: selector.fit(X, y)}, rounds=3)["fit"]


def draw(panels):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    colours = ("#0072B2", "#D55E00", "#009E73")
    for ax, (title, lines) in zip(axes, panels.items(), strict=True):
        for (name, points), colour in zip(lines.items(), colours, strict=False):
            x, seconds = np.array(points).T
            relative = seconds / seconds[0]
            ax.plot(x, relative, marker="o", markersize=4, color=colour, label=name)
        ax.plot(x, x / x[0], color="0.7", linestyle=":", label="in proportion")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(x, [f"{size:,.0f}" for size in x], minor=False)
        ax.set_xticks([], minor=True)
        ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        ax.set_yticks([], minor=True)
        ax.tick_params(labelsize="small")
        ax.set_xlabel(title)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(fontsize="small", frameon=False)
    axes[0].set_ylabel("time, as a multiple of the first")
    figure.savefig(OUT / "growth.png", dpi=130)


def main():
    OUT.mkdir(exist_ok=True)
    panels = {
        "features": with_features(),
        "rows": with_rows(),
        "kept features": with_kept(),
    }
    for title, lines in panels.items():
        print(f"\ntime by number of {title}")
        for name, points in lines.items():
            first = points[0][1]
            shown = "  ".join(f"{x:,.0f}: {t / first:.2f}" for x, t in points)
            print(f"  {name:<36} {shown}")
    draw(panels)


if __name__ == "__main__":
    main()

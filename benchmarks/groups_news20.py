"""10,000 random groups on news20_bigram, against SAOLA on the same columns.

    python benchmarks/groups_news20.py [threshold ...]

Training rows only (9,996 of 19,996), symmetrical uncertainty. The paper's threshold
0 makes nearly all 1.45 million features relevant and takes minutes; the default
here is 0.001.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from shared_data import load

from featstream import SAOLA, GroupSAOLA, SymmetricalUncertainty, random_groups

N_TRAIN, N_GROUPS = 9996, 10_000


def best_of(n, selector, X, y, **options):
    """Shortest time of some runs, the compilation left out, and the selector."""
    selector.fit(X[:, :1000], y)
    seconds = []
    for _ in range(n):
        began = time.perf_counter()
        selector.fit(X, y, **options)
        seconds.append(time.perf_counter() - began)
    return min(seconds), selector


def main(thresholds):
    data = load("news20_bigram")
    X, y = data["X"].tocsr()[:N_TRAIN].tocsc(), data["y"][:N_TRAIN]
    groups = random_groups(X.shape[1], N_GROUPS)
    mixed = X[:, np.concatenate(groups)]
    for threshold in thresholds:
        measure = SymmetricalUncertainty(threshold=threshold)
        n = 3 if threshold > 0 else 1
        runs = {
            "SAOLA, order of the file": best_of(n, SAOLA(measure=measure), X, y),
            "SAOLA, order of the groups": best_of(n, SAOLA(measure=measure), mixed, y),
        }
        for reading in ("printed", "library"):
            selector = GroupSAOLA(measure=measure, reading=reading)
            runs[f"GroupSAOLA, {reading}"] = best_of(n, selector, X, y, groups=groups)
        base = runs["SAOLA, order of the file"][0]
        for name, (seconds, selector) in runs.items():
            n_groups = len(getattr(selector, "selected_groups_", ()))
            print(
                f"threshold {threshold:g}  {name:28}{seconds:8.2f} s"
                f"{seconds / base:6.2f} x  {selector.selected_.size:,} features"
                + (f" in {n_groups:,} groups" if n_groups else ""),
                flush=True,
            )


if __name__ == "__main__":
    main([float(argument) for argument in sys.argv[1:]] or [0.001])

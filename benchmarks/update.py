"""What it costs to decide about one feature that arrives alone.

``python -m benchmarks.update``. CPU microseconds per call of ``update``, after
warm-up, at 500 samples and 50 kept features.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.timing import table
from featstream import SAOLA


def started(measure, n_samples, n_kept, rng):
    """A selector with that many kept features, and newcomers that are not kept."""
    y = np.arange(n_samples) % 2
    noise = rng.normal(size=(n_samples, n_kept))
    noise -= noise.mean(axis=0)
    basis, _ = np.linalg.qr(np.column_stack([y - y.mean(), noise]))
    kept = basis[:, 1:] + 0.2 * basis[:, :1]  # relevance 0.196, overlap 0.038
    # Copies of the latest kept ones: they walk along almost all.
    newcomers = kept[:, rng.integers(n_kept - 5, n_kept, 400)]
    newcomers = newcomers + 0.2 * rng.normal(size=newcomers.shape) / np.sqrt(n_samples)
    selector = SAOLA(measure=measure).start(y)
    for column in kept.T:
        selector.update(column)
    return selector, np.ascontiguousarray(newcomers.T)


def microseconds(measure, n_samples, n_kept, rounds=5):
    """The best of some rounds."""
    best = float("inf")
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        selector, newcomers = started(measure, n_samples, n_kept, rng)
        for column in newcomers[:20]:
            selector.update(column)
        began = time.process_time()
        for column in newcomers:
            selector.update(column)
        best = min(best, (time.process_time() - began) / len(newcomers))
    return 1e6 * best, len(selector.selected_)


def main():
    rows = []
    for n_samples, n_kept in ((500, 50), (500, 200), (2000, 50)):
        cost, n_selected = microseconds("fisher-z", n_samples, n_kept)
        wanted = "at most 40" if (n_samples, n_kept) == (500, 50) else ""
        what = f"fisher-z, {n_samples} samples, {n_selected} kept: us per update"
        rows.append((what, cost, wanted))
    table(rows, "One feature at a time")


if __name__ == "__main__":
    main()

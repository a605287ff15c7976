"""What it costs to decide about one feature that arrives alone.

``python -m benchmarks.update``. CPU microseconds per call of ``update``, after
warm-up: of redundant features, which walk along almost all kept ones, and of
irrelevant ones.
"""

import time

import numpy as np

from benchmarks.timing import table
from featstream import SAOLA

N_NEWCOMERS = 400


def continuous(n_samples, n_kept, rng):
    """Features that are all kept, copies of the latest of them, and noise."""
    y = np.arange(n_samples) % 2
    noise = rng.normal(size=(n_samples, n_kept))
    noise -= noise.mean(axis=0)
    basis, _ = np.linalg.qr(np.column_stack([y - y.mean(), noise]))
    kept = basis[:, 1:] + 0.2 * basis[:, :1]  # relevance 0.196, overlap 0.038
    copies = kept[:, rng.integers(n_kept - 5, n_kept, N_NEWCOMERS)]
    copies = copies + 0.2 * rng.normal(size=copies.shape) / np.sqrt(n_samples)
    noise = rng.normal(size=copies.shape)
    noise -= np.outer(y - 0.5, (y - 0.5) @ noise / ((y - 0.5) @ (y - 0.5)))
    return y, kept, copies, noise


def binary(n_samples, n_kept, rng):
    """The same, of zeros and ones; the kept ones are equally relevant."""
    y = np.arange(n_samples) % 2
    thirds = lambda c: rng.permutation(np.flatnonzero(y == c))[: n_samples // 6]  # noqa: E731
    kept = np.repeat(y[:, None], n_kept, axis=1)
    for j in range(n_kept):
        kept[np.concatenate([thirds(0), thirds(1)]), j] ^= 1
    copies = kept[:, rng.integers(n_kept - 5, n_kept, N_NEWCOMERS)]
    for j in range(N_NEWCOMERS):
        copies[rng.integers(0, n_samples, 3), j] ^= 1
    halves = [rng.permutation(n_samples // 2) // 2 % 2 for _ in range(2 * N_NEWCOMERS)]
    noise = np.empty_like(copies)
    noise[y == 0], noise[y == 1] = np.reshape(halves, (2, N_NEWCOMERS, -1)).mT
    return y, kept, copies, noise


def microseconds(measure, n_samples, n_kept, rounds=5):
    """The best of some rounds: of copies, and of noise."""
    best, make = [np.inf, np.inf], continuous if measure == "fisher-z" else binary
    for seed in range(rounds):
        y, kept, *newcomers = make(n_samples, n_kept, np.random.default_rng(seed))
        selector = SAOLA(measure=measure).start(y)
        for column in np.ascontiguousarray(kept.T):
            selector.update(column)
        for k, kind in enumerate(newcomers):
            columns = np.ascontiguousarray(kind.T)
            for column in columns[:20]:
                selector.update(column)
            began = time.process_time()
            for column in columns:
                selector.update(column)
            cost = (time.process_time() - began) / len(columns)
            best[k] = min(best[k], 1e6 * cost)
    return best


def main():
    rows = []
    for measure, n_samples, n_kept in (
        ("fisher-z", 500, 50),
        ("fisher-z", 500, 200),
        ("fisher-z", 2000, 50),
        ("su", 500, 50),
        ("su", 500, 200),
    ):
        wanted = "at most 40" if (n_samples, n_kept) == (500, 50) else ""
        costs = microseconds(measure, n_samples, n_kept)
        for what, cost in zip(("redundant", "irrelevant"), costs, strict=True):
            name = f"{measure}, {n_samples} samples, {n_kept} kept, {what}: us"
            rows.append((name, cost, wanted))
    table(rows, "One feature at a time")


if __name__ == "__main__":
    main()

"""How the benchmarks take time, and the data they take it on."""

import os
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SHARED = Path(
    os.environ.get("FEATSTREAM_SHARED", Path(__file__).parents[1].parent / "shared")
)


def alternate(functions, rounds=5):
    """Best time of each function, taken in turns so that all meet the same noise."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def continuous(n_samples=1000, n_features=100_000, seed=0, informative=0.2):
    """Column-major float32, a share of it noisy copies of 20 informative factors."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    strength = np.linspace(0.4, 1.2, 20)
    factors = rng.standard_normal((20, n_samples)) + np.outer(strength, y)
    X = rng.standard_normal((n_features, n_samples), dtype=np.float32)
    for j in rng.permutation(n_features)[: round(informative * n_features)]:
        X[j] = factors[rng.integers(20)] + rng.uniform(0.2, 1.0) * X[j]
    return X.T, y


def latent_copies(n_samples=1000, n_features=100_000, n_latent=50, seed=0):
    """Column-major float32, a fifth of it noisy copies of 50 latent features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    strength = np.linspace(0.4, 1.2, n_latent)
    latent = rng.standard_normal((n_latent, n_samples)) + np.outer(strength, y)
    X = rng.standard_normal((n_features, n_samples), dtype=np.float32)
    for k, j in enumerate(rng.permutation(n_features)[: n_features // 5]):
        X[j] = latent[k % n_latent] + 0.5 * X[j]
    return X.T, y


def binary(n_samples=2000, n_features=100_000, seed=0):
    """Column-major uint8, a fifth of it noisy copies of 20 informative features."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples).astype(np.uint8)
    agreement = np.linspace(0.55, 0.75, 20)
    factors = y ^ (rng.random((20, n_samples)) > agreement[:, None])
    X = rng.integers(0, 2, (n_features, n_samples), dtype=np.uint8)
    for j in rng.permutation(n_features)[: n_features // 5]:
        flipped = rng.random(n_samples) < rng.uniform(0, 0.3)
        X[j] = factors[rng.integers(20)] ^ flipped
    return X.T, y


def one_entry_columns(n_samples=1000, n_features=1_000_000, seed=0):
    """Sparse columns that store a single one each."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_samples, n_features).astype(np.int32)
    ones = np.ones(n_features, np.uint8)
    starts = np.arange(n_features + 1)
    X = sp.csc_array((ones, rows, starts), shape=(n_samples, n_features))
    return X, rng.integers(0, 2, n_samples)


def sparse_binary(n_samples, n_features, length=10, seed=0):
    """Sparse columns with a given number of ones, independent of the target."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, n_samples, (n_features, length), np.int32)
    rows.sort(axis=1)
    starts = np.arange(0, rows.size + 1, length)
    ones = np.ones(rows.size, np.uint8)
    X = sp.csc_array((ones, rows.ravel(), starts), shape=(n_samples, n_features))
    X.sum_duplicates()
    X.data[:] = 1
    return X, rng.integers(0, 2, n_samples)


def hashed_log(n_samples, n_features, n_informative=1000, seed=0):
    """Sparse columns of a single one, or some, or now and then thousands.

    The informative ones have 200, most of them in rows of the second class.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_samples)
    lengths = np.minimum(rng.pareto(1.5, n_features) + 1, n_samples // 10).astype(int)
    informative = rng.permutation(n_features)[:n_informative]
    lengths[informative] = 200
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    rows = rng.integers(0, n_samples, starts[-1], np.int32)
    second = np.flatnonzero(y == 1)
    for j in informative:
        rows[starts[j] : starts[j] + 140] = rng.choice(second, 140)
    ones = np.ones(rows.size, np.uint8)
    X = sp.csc_array((ones, rows, starts), shape=(n_samples, n_features))
    X.sum_duplicates()
    X.data[:] = 1
    return X, y


def shared_set(name):
    """Training part of a data set beside the repository; None where it is absent."""
    path = SHARED / "data" / f"{name}.npz"
    if not path.exists():
        return None
    from featstream.sources import SparseSource, open_npz

    dataset = open_npz(path)
    with np.load(path, allow_pickle=False) as arrays:
        if "n_train" not in arrays:
            return dataset.source, dataset.y
        n_train = int(arrays["n_train"])
    whole = sp.hstack([as_matrix(block) for block in dataset.source.blocks()])
    return SparseSource(whole.tocsr()[:n_train].tocsc()), dataset.y[:n_train]


def as_matrix(block):
    """A sparse block as scipy has it."""
    stored = block.columns
    start = stored.indptr - stored.indptr[0]
    rows = stored.rows[stored.indptr[0] : stored.indptr[-1]]
    values = stored.values[stored.indptr[0] : stored.indptr[-1]]
    return sp.csc_array((values, rows, start), shape=stored.shape)


def table(rows, title):
    """Print rows of (what, ours, baseline, ratio, floor)."""
    print(f"\n{title}")
    for what, value, wanted in rows:
        print(f"  {what:<66} {value:>9.3f}   {wanted}")

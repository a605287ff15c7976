"""Data sets of the paper, made up."""

import numpy as np
import pytest


@pytest.fixture
def data(tmp_path):
    """Two data sets of the right width and of few rows, one of them in parts."""
    folder = tmp_path / "data"
    folder.mkdir()
    rng = np.random.default_rng(1)
    y = np.resize([-1, 1], 48)
    X = rng.integers(0, 50, size=(48, 500))
    X[:, ::50] += 20 * y[:, None]
    parts = {"X_train": X[:36], "y_train": y[:36], "X_test": X[36:], "y_test": y[36:]}
    np.savez(folder / "madelon.npz", **parts)
    genes = rng.normal(size=(36, 7_129)).astype(np.float32)
    genes[:, ::500] += y[:36, None]
    np.savez(folder / "leukemia.npz", X=genes, y=y[:36])
    return folder

"""Several files as one stream."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from block_sources import as_array
from featstream import SAOLA
from featstream.datasets import make_stream
from featstream.errors import DataError
from featstream.sources import (
    ArraySource,
    ChainedSource,
    IteratorSource,
    SparseSource,
    open_dataset,
)


def test_blocks_begin_anywhere():
    X = np.arange(60).reshape(4, 15)
    source = ChainedSource(
        [
            ArraySource(X[:, :5]),
            SparseSource(sparse.csc_array(X[:, 5:6])),
            ArraySource(X[:, 6:], block_bytes=64),
        ]
    )
    assert source.n_features == 15
    for start in range(16):
        if start < 15:
            assert np.array_equal(as_array(source, start), X[:, start:])
        else:
            assert not list(source.blocks(start))


def test_a_source_that_does_not_know_its_length_is_counted():
    rest = IteratorSource([("a", [1, 2]), ("b", [3, 4])])
    source = ChainedSource([rest, ArraySource(np.ones((2, 3)))])
    assert source.n_features is None
    assert as_array(source).shape == (2, 5)


def test_a_folder_selects_as_one_matrix(tmp_path):
    stream = make_stream(n_samples=60, n_features=90, seed=4)
    X, y = stream.X, stream.y
    np.savez(tmp_path / "a.npz", X=X[:, :30], y=y)
    np.save(tmp_path / "b.npy", X[:, 30:70])
    sparse.save_npz(tmp_path / "c.npz", sparse.csc_array(X[:, 70:]))
    (tmp_path / ".hidden").write_text("")
    selector = SAOLA(measure="su").fit(str(tmp_path))
    expected = SAOLA(measure="su").fit(X, y)
    assert selector.selected_.tolist() == expected.selected_.tolist()
    assert selector.scores_.tolist() == expected.scores_.tolist()


def test_files_that_disagree_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="is empty"):
        open_dataset(tmp_path)
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=[0, 1])
    np.savez(tmp_path / "b.npz", X=np.eye(2), y=[1, 0])
    with pytest.raises(DataError, match=r"b\.npz has another target"):
        open_dataset(tmp_path)
    np.savez(tmp_path / "b.npz", X=np.eye(3))
    with pytest.raises(DataError, match="same number of samples"):
        open_dataset(tmp_path)

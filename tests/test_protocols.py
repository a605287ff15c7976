"""Blocks are read-only, so that all sources share compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from featstream import SAOLA
from featstream.measures.storages.dense_values import sum_columns
from featstream.measures.storages.moments import score_columns
from featstream.protocols import Block, SparseColumns
from featstream.selectors.saola.algorithm1 import scan


def test_blocks_cannot_be_written_to_and_what_they_were_made_of_can():
    X = np.ones((3, 2), order="F")
    block = Block(X)
    with pytest.raises(ValueError, match="read-only"):
        block.columns[0, 0] = 2.0
    X[0, 0] = 2.0
    stored = SparseColumns(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1), 3)
    for array in (stored.indptr, stored.rows, stored.values):
        assert not array.flags.writeable


def test_a_sparse_block_can_be_made_dense():
    X = np.array([[0, 2, 0, 1], [3, 0, 0, 0], [0, 4, 0, 5]])
    csc = sparse.csc_array(X)
    columns = SparseColumns(csc.indptr.astype(np.int64), csc.indices, csc.data, 3)
    block = Block(columns)
    assert block.to_dense().tolist() == X.tolist()
    assert block.part(1, 4).to_dense().tolist() == X[:, 1:].tolist()
    assert Block(X).to_dense().tolist() == X.tolist()


@pytest.mark.jit_only
def test_memory_files_types_and_layouts_share_the_compiled_scan(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = np.asfortranarray(rng.normal(size=(80, 30)) + y[:, None])
    np.save(tmp_path / "x.npy", X)
    selector = SAOLA(measure="fisher-z").fit(X, y)
    n_scans, n_sums = len(scan.signatures), len(sum_columns.signatures)
    selector.fit(np.load(tmp_path / "x.npy", mmap_mode="r"), y)
    selector.update(np.ascontiguousarray(X[:, 0]))
    assert len(sum_columns.signatures) == n_sums
    selector.fit(X.astype(np.float32), y)
    selector.fit(np.ascontiguousarray(X), y)
    selector.fit(X.astype(np.int64), y)
    assert len(scan.signatures) == n_scans
    selector.fit(sparse.csc_array(X), y)
    assert len(score_columns.signatures) == 1

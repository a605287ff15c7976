"""Blocks are read-only, so that all sources share compiled kernels; storages."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from featstream import SAOLA
from featstream.measures.storages.dense_codes import DENSE_CODES
from featstream.measures.storages.dense_values import DENSE_VALUES, sum_columns
from featstream.measures.storages.moments import score_columns
from featstream.measures.storages.sparse_codes import SPARSE_CODES
from featstream.measures.storages.sparse_values import SPARSE_VALUES
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


INDEXED = "list_candidates end_walk enter_index leave_index clear_index allocate_index"
MARKED = f"{INDEXED} load_newcomer unload_newcomer is_independent as_rows"
OPTIONAL = {
    DENSE_CODES: "is_independent as_rows fill_classes decode_column",
    SPARSE_CODES: f"{MARKED} fill_classes decode_column",
    DENSE_VALUES: "is_independent as_rows spare_slots units",
    SPARSE_VALUES: MARKED,
}


@pytest.mark.parametrize("storage", OPTIONAL, ids=lambda storage: storage.name)
def test_no_optional_function_of_a_storage_is_lost(storage):
    """They are found by their names: a wrong one would leave the default in place."""
    fields = dataclasses.fields(storage)
    given = {f.name for f in fields if getattr(storage, f.name) is not f.default}
    callables = {name for name in given if callable(getattr(storage, name))}
    required = {f.name for f in fields if f.default is dataclasses.MISSING}
    assert callables - required == set(OPTIONAL[storage].split())

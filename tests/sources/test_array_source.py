from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from featstream.errors import DataError, DataTypeError
from featstream.protocols import Source
from featstream.sources import ArraySource, check_has_features
from gather import gather

DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<u4", "i8", "u8", "f2", ">f4", "f4", "f8"]


@st.composite
def arrays(draw):
    """Arrays of any dtype, shape and memory order, some of them with odd strides."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.tuples(st.integers(1, 40), st.integers(0, 30)))
    seed = draw(st.integers(0, 2**32 - 1))
    bits = np.random.default_rng(seed).integers(0, 100, shape)
    X = (bits % 2 if dtype.kind == "b" else bits).astype(dtype)
    X = draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray]))(X)
    if draw(st.booleans()):
        X = X[::-1, ::2]
    if draw(st.booleans()):
        X = X[::2, ::-1]
    if draw(st.booleans()):
        X.flags.writeable = False
    return X


@settings(deadline=None)  # the first call compiles
@given(arrays(), st.integers(1, 3000), st.integers(0, 35))
def test_columns_are_those_of_the_array(X, block_bytes, start):
    before = X.copy()
    source = ArraySource(X, block_bytes=block_bytes)
    assert isinstance(source, Source)
    assert (source.n_samples, source.n_features) == X.shape
    columns, names, nominal = gather(source, start)
    np.testing.assert_array_equal(columns, X[:, start:])
    assert names == [f"x{i}" for i in range(start, X.shape[1])]
    assert not nominal.any()
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_not_copied(order):
    X = np.asarray(np.arange(12.0).reshape(3, 4), order=order)
    assert all(np.shares_memory(block.columns, X) for block in ArraySource(X).blocks())


def test_row_major_blocks_stay_valid_while_others_are_read():
    X = np.arange(60_000).reshape(20, 3000)
    blocks = list(ArraySource(X, block_bytes=20 * 8 * 16).blocks())
    assert len(blocks) > 100
    np.testing.assert_array_equal(np.hstack([block.columns for block in blocks]), X)


def test_tall_row_major_arrays_are_read_by_whole_cache_lines():
    X = np.zeros((1000, 40), np.int16)
    widths = [block.n_columns for block in ArraySource(X, block_bytes=1).blocks()]
    assert widths == [32, 8]


def test_extended_precision_becomes_double():
    X = np.array([[1, 2], [3, 4]], np.longdouble)
    block = next(ArraySource(X).blocks())
    assert block.columns.dtype == np.float64
    np.testing.assert_array_equal(block.columns, X)


def test_mapped_arrays_are_read_in_place(tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(np.eye(5)))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    block = next(ArraySource(X).blocks())
    assert np.shares_memory(block.columns, X)
    assert not block.columns.flags.writeable


@pytest.mark.parametrize("dtype", [object, "U1", "S1"])
def test_text_becomes_codes_in_sorted_order(dtype):
    X = np.array([["b", "x"], ["a", "x"], ["c", "y"]], dtype)
    columns, _, nominal = gather(ArraySource(X))
    assert columns.tolist() == [[1, 0], [0, 0], [2, 1]]
    assert nominal.tolist() == [True, True]


def test_objects_are_numbers_or_text_column_by_column():
    X = np.array([[1, "b", 0.5, True], [2, None, None, False]], object)
    columns, names, nominal = gather(ArraySource(X, ["a", "b", "c", "d"]))
    np.testing.assert_array_equal(columns, [[1, 0, 0.5, 1], [2, -1, np.nan, 0]])
    assert nominal.tolist() == [False, True, False, False]
    assert names == ["a", "b", "c", "d"]


def test_names_follow_their_columns():
    source = ArraySource(np.zeros((2, 50)), [f"g{i}" for i in range(50)], block_bytes=1)
    assert gather(source, 20)[1] == [f"g{i}" for i in range(20, 50)]


def test_a_source_without_features_is_legal_but_cannot_be_fitted():
    source = ArraySource(np.empty((12, 0)))
    assert list(source.blocks()) == []
    with pytest.raises(DataError, match=r"0 feature\(s\) \(shape=\(12, 0\)\)"):
        check_has_features(source)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["a", "b"], DataError, "Got 2 names for 3 features"),
        (["a", "b", "a"], DataError, r"'a' already seen at position 0 \(now 2\)"),
        (["a", "b", 3], DataTypeError, "Got 3 of type int at position 2"),
    ],
)
def test_bad_names_are_refused(names, error, message):
    with pytest.raises(error, match=message):
        ArraySource(np.zeros((2, 3)), names)

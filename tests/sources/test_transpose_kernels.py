"""Row-major values transposed to columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featstream.sources.kernels.transpose import by_column, copy_columns
from strategies import examples

DTYPES = ["?", "u1", "i2", "f2", "i4", "f4", "i8", "f8", ">f4", ">i8"]


@st.composite
def views(draw):
    """Parts of arrays: with strides, backwards, and as they are."""
    n, p = draw(st.integers(1, 150)), draw(st.integers(1, 300))
    dtype = draw(st.sampled_from(DTYPES))
    X = np.random.default_rng(n * p).integers(0, 100, (n, p)).astype(dtype)
    X = np.asarray(X, order=draw(st.sampled_from("CF")))
    begin, end = sorted((draw(st.integers(0, p)), draw(st.integers(0, p))))
    rows, columns = draw(st.sampled_from([1, -1, 3])), draw(st.sampled_from([1, 1, 2]))
    return X[::rows, begin:end:columns]


@examples(60)
@given(views())
def test_columns_are_the_same_wherever_they_lie(x):
    before = x.copy()
    found = by_column(x)
    assert found.flags.f_contiguous
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, before)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("shape", [(64, 128), (65, 130), (15, 15), (200, 700)])
def test_nothing_is_written_beyond_the_edges(dtype, shape):
    n, p = shape
    x = np.arange(n * p, dtype=dtype).reshape(n, p)
    canvas = np.full((p + 4, n + 6), 77, dtype)
    copy_columns(x, canvas[2:-2, 3:-3])
    np.testing.assert_array_equal(canvas[2:-2, 3:-3], x.T)
    canvas[2:-2, 3:-3] = 77
    assert (canvas == 77).all()


def test_what_is_column_major_is_not_copied():
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    assert by_column(x) is x

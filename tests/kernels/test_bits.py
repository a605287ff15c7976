"""Bit planes against arrays of booleans."""

from __future__ import annotations

import numpy as np
import pytest

from featstream.kernels.bits import count_common, count_ones, n_words, unpack
from featstream.kernels.encoding import pack_codes

LENGTHS = [1, 2, 63, 64, 65, 127, 128, 129, 1000]


def pack(codes, n_planes):
    planes = np.zeros((n_planes, n_words(codes.size)), np.uint64)
    counts = np.zeros(n_planes, np.int64)
    pack_codes(codes, planes, counts)
    return planes, counts


@pytest.mark.parametrize("n", LENGTHS)
def test_there_is_a_bit_for_every_row_and_less_than_a_word_more(n):
    assert 64 * n_words(n) - 64 < n <= 64 * n_words(n)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("arity", [2, 3, 16])
def test_planes_spell_the_codes(n, arity):
    codes = np.random.default_rng(n).integers(0, arity, n).astype(np.int32)
    planes, counts = pack(codes, arity - 1)
    assert counts.tolist() == [int((codes == c).sum()) for c in range(1, arity)]
    found = np.full(n, -1, np.int32)
    unpack(planes, found)
    assert found.tolist() == codes.tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_ones_are_counted(n):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 2, (2, n)).astype(np.int32)
    (plane_a,), _ = pack(a, 1)
    (plane_b,), _ = pack(b, 1)
    assert count_ones(plane_a) == a.sum()
    assert count_common(plane_a, plane_b) == (a & b).sum()


def test_every_bit_of_a_word_counts():
    full = np.full(1, np.iinfo(np.uint64).max, np.uint64)
    assert count_ones(full) == 64
    for bit in range(64):
        one = np.array([1 << bit], np.uint64)
        assert count_ones(one) == 1
        assert count_common(one, full) == 1
        assert count_common(one, ~one) == 0

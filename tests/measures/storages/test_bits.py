"""Bit planes against arrays of booleans."""

import numpy as np
import pytest

from featstream.measures.storages.bitplanes import count_common, pack, unpack

LENGTHS = [1, 2, 63, 64, 65, 127, 128, 129, 1000]


def test_columns_of_different_arity_have_planes_of_their_own():
    codes = np.array([[0, 1, 1, 0], [2, 0, 1, 2], [0, 0, 0, 0]], np.uint8)
    planes, counts = pack(codes, np.array([2, 3, 1]))
    assert planes[:, 0].tolist() == [0b0110, 0b0100, 0b1001]
    assert counts.tolist() == [2, 1, 2]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("arity", [2, 3, 16])
def test_planes_spell_the_codes(n, arity):
    codes = np.random.default_rng(n).integers(0, arity, n).astype(np.uint8)
    planes, counts = pack(codes[None, :], np.array([arity]))
    assert counts.tolist() == [int((codes == c).sum()) for c in range(1, arity)]
    found = np.full(n, -1, np.int32)
    unpack(planes, found)
    assert found.tolist() == codes.tolist()


@pytest.mark.parametrize("n", LENGTHS)
def test_ones_are_counted(n):
    rng = np.random.default_rng(n)
    a, b = rng.integers(0, 2, (2, n)).astype(np.uint8)
    (plane_a, plane_b), counts = pack(np.stack([a, b]), np.array([2, 2]))
    assert counts.tolist() == [a.sum(), b.sum()]
    assert count_common(plane_a, plane_b) == (a & b).sum()

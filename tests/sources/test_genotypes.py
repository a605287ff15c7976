"""Genotypes as PLINK packs them, against the table of its format."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featstream.sources.kernels.genotypes import decode_genotypes, fill_with_mode
from science_files import BITS


@given(st.lists(st.lists(st.sampled_from([-1, 0, 1, 2]), min_size=1, max_size=13)))
def test_genotypes_are_unpacked(rows):
    """Against the table of the format, for every number of samples modulo four."""
    for row in rows:
        n_bytes = -(-len(row) // 4)
        packed = np.full((1, n_bytes), 0xFF, np.uint8)  # what is beyond is not read
        for i, copies in enumerate(row):
            shift = 2 * (i % 4)
            packed[0, i // 4] &= ~(3 << shift) & 0xFF
            packed[0, i // 4] |= BITS[copies] << shift
        found = np.empty((1, len(row)), np.int8)
        counts = np.empty((1, 4), np.int64)
        decode_genotypes(packed, len(row), found, counts)
        assert found[0].tolist() == [3 if copies < 0 else copies for copies in row]
        assert counts[0].tolist() == [row.count(copies) for copies in (0, 1, 2, -1)]


@pytest.mark.parametrize(
    ("row", "filled"),
    [
        ([0, 1, 1, 3], [0, 1, 1, 1]),
        ([2, 3, 2, 0], [2, 2, 2, 0]),
        ([1, 2, 3, 3], [1, 2, 1, 1]),  # equally common: the fewer copies
        ([3, 3, 3, 3], [0, 0, 0, 0]),
        ([0, 1, 2, 2], [0, 1, 2, 2]),
    ],
)
def test_the_mode_is_the_commonest_genotype(row, filled):
    genotypes = np.array([row], np.int8)
    counts = np.array([[row.count(copies) for copies in range(4)]])
    fill_with_mode(genotypes, counts)
    assert genotypes[0].tolist() == filled

"""Genotypes as PLINK packs them: two bits each, four in a byte, the first lowest."""

from __future__ import annotations

from typing import Any

from featstream.jit import jit

MISSING = 3

_COPIES = 0b00_01_11_10
"""Copies of the first allele by the two bits: 00 is 2, 01 missing, 10 is 1, 11 none."""


@jit
def decode_genotypes(packed: Any, n_samples: int, genotypes: Any, counts: Any) -> None:
    """Unpack the genotypes of some variants.

    ``packed`` has the rows of a ``.bed`` file; bits beyond the last sample are
    ignored. ``genotypes``, of shape (n_variants, n_samples), is filled with 0, 1 or 2
    copies of the first allele, or 3 if missing; ``counts`` with the number of each.
    """
    n_whole = n_samples // 4
    for j in range(packed.shape[0]):
        for k in range(n_whole):
            byte = packed[j, k]
            genotypes[j, 4 * k] = (_COPIES >> (2 * (byte & 3))) & 3
            genotypes[j, 4 * k + 1] = (_COPIES >> (2 * ((byte >> 2) & 3))) & 3
            genotypes[j, 4 * k + 2] = (_COPIES >> (2 * ((byte >> 4) & 3))) & 3
            genotypes[j, 4 * k + 3] = (_COPIES >> (2 * (byte >> 6))) & 3
        for i in range(4 * n_whole, n_samples):
            bits = (packed[j, n_whole] >> (2 * (i & 3))) & 3
            genotypes[j, i] = (_COPIES >> (2 * bits)) & 3
        n_one = 0
        n_two = 0
        n_missing = 0
        for i in range(n_samples):
            n_one += genotypes[j, i] == 1
            n_two += genotypes[j, i] == 2
            n_missing += genotypes[j, i] == MISSING
        counts[j, 0] = n_samples - n_one - n_two - n_missing
        counts[j, 1] = n_one
        counts[j, 2] = n_two
        counts[j, MISSING] = n_missing


@jit
def fill_with_mode(genotypes: Any, counts: Any) -> None:
    """Replace what is missing by the variant's commonest genotype.

    The fewest copies, if two are equally common; 0 if all are missing.
    """
    for j in range(genotypes.shape[0]):
        if counts[j, MISSING] == 0:
            continue
        mode = 0
        for copies in range(1, MISSING):
            if counts[j, copies] > counts[j, mode]:
                mode = copies
        for i in range(genotypes.shape[1]):
            if genotypes[j, i] == MISSING:
                genotypes[j, i] = mode

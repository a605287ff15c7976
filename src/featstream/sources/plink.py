"""Genotypes of PLINK: ``.bed`` with its ``.bim`` and ``.fam``; phenotypes.

A ``.bed`` is stored by variant, so that its rows are our columns: the file is mapped,
and unpacked some variants at a time.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    MissingFileError,
    Setting,
    check_choice,
    printable,
)
from featstream.jit import kernel
from featstream.protocols import Block
from featstream.sources.memory import AnyOrderSource, Positions, as_index
from featstream.sources.open import Dataset, PathLike, existing, reading, shortened
from featstream.sources.tables import (
    choose_column,
    label_array,
    places_of,
    split_column,
)
from featstream.sources.text_file import refuse_cut_file, release_pages
from featstream.sources.text_values import is_number
from featstream.sources.values import (
    BLOCK_BYTES,
    Duplicates,
    block_width,
    check_names,
)

Missing = Literal["error", "mode", "category"]

_MISSING = frozenset(["NA", "na", "nan", "NaN", "."])
_CASE_CONTROL = frozenset(["0", "1", "2"])
_MAGIC = b"\x6c\x1b"
_BY_VARIANT, _BY_SAMPLE = 1, 0
_HEADER = 3
_UNKNOWN = 3  # the value of a missing genotype
_COPIES = 0b00_01_11_10
"""Copies of the first allele by the two bits: 00 is 2, 01 missing, 10 is 1, 11 none."""

_FIELDS = {
    ".fam": ("family", "person", "father", "mother", "sex", "phenotype"),
    ".bim": (
        *("chromosome", "identifier", "distance", "position", "allele 1", "allele 2"),
    ),
}


def open_plink(
    path: PathLike,
    target: str | None = None,
    *,
    missing: Missing = "error",
    duplicates: Duplicates = "error",
) -> Dataset:
    r"""Open genotypes of PLINK.

    Parameters
    ----------
    path : str or path-like
        A ``.bed`` by variant, as PLINK writes it, with a ``.bim`` and a ``.fam`` of
        the same name next to it.
    target : str, default=None
        A file of phenotypes, ``FILE`` or ``FILE:COLUMN``: lines of family, person
        and values, with or without a header, in any order. By default the sixth
        column of the ``.fam``, unless all of that is missing.
    missing : {"error", "mode", "category"}, default="error"
        What to do about missing genotypes: refuse the first variant that has one;
        take the variant's commonest genotype for it; or make "missing" a fourth
        category, 3, of a variant that is then nominal. A variant without any
        genotype is constant either way; a warning names it.
    duplicates : {"error", "number"}, default="error"
        What to do about two variants of one identifier: refuse them, or call the
        second one ``rs7#2``.

    Returns
    -------
    Dataset
        For each variant the copies of the first allele in the ``.bim``: 0, 1 or 2. Its
        name is its identifier; where that is ``.``, chromosome, position and alleles,
        as in ``1:1205:A:G``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "d.fam").write_text("f a 0 0 1 2\nf b 0 0 2 1\nf c 0 0 1 1\n")
    >>> _ = (folder / "d.bim").write_text("1 rs7 0 1205 A G\n")
    >>> _ = (folder / "d.bed").write_bytes(b"\x6c\x1b\x01" + bytes([0b11_10_00]))
    >>> data = open_plink(folder / "d.bed")
    >>> data.names, data.y, next(data.source.blocks()).columns.ravel()
    (['rs7'], array([2., 1., 1.]), array([2, 1, 0], dtype=int8))
    """
    path = existing(path)
    check_choice(missing, "missing", get_args(Missing))
    digest = hashlib.sha256(missing.encode())
    people = list(_read_lines(path, ".fam", digest))
    samples = [f"{family} {person}" for family, person, *_ in people]
    names = [
        name if name != "." else ":".join((chromosome, position, *alleles))
        for chromosome, name, _, position, *alleles in _read_lines(path, ".bim", digest)
    ]
    with reading(path):
        names = check_names(names, len(names), duplicates)
        source = PlinkSource(path, samples, names, missing, digest.hexdigest())
    if target is not None:
        y = _read_phenotypes(target, samples)
        return Dataset(source, y, source.names, target)
    values = [phenotype for *_, phenotype in people]
    distinct = set(values)
    is_known = bool(distinct - _missing_among(distinct)) and distinct != {"0"}
    where = f"column 6 of {path.with_suffix('.fam').name}"
    labels = _as_phenotypes(values) if is_known else None
    return Dataset(source, labels, source.names, where)


class PlinkSource(AnyOrderSource):
    """The variants of a ``.bed`` file.

    Parameters
    ----------
    path : Path
        The file.
    samples, names : sequence of str
        The names of the samples and of the variants.
    missing
        See `open_plink`.
    fingerprint : str, default=None
        Changes with the samples and the variants.
    block_bytes : int, default=2**23
        Size of a block.
    """

    names: list[str]
    sample_names: list[str]
    text_columns = ()

    def __init__(
        self,
        path: Path,
        samples: Sequence[str],
        names: Sequence[str],
        missing: Missing = "error",
        fingerprint: str | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.path, self.missing, self.block_bytes = path, missing, block_bytes
        self.sample_names = list(samples)
        shape = len(samples), len(names)
        super().__init__(shape, names, about=printable(path.name))
        self._stride = -(-self.n_samples // 4)
        self._map = _map_file(path, self.n_features, self._stride)
        self.fingerprint = fingerprint

    def reopener(self) -> Callable[[], PlinkSource]:
        """A function that opens the file again in another process."""
        given = self.sample_names, self.names, self.missing, self.fingerprint
        return partial(PlinkSource, self.path.absolute(), *given, self.block_bytes)

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        width = block_width(self.n_samples, 1, self.block_bytes)
        size = self.n_features * self._stride
        packed = np.frombuffer(self._map, np.uint8, size, _HEADER)
        packed = packed.reshape(self.n_features, self._stride)
        unknown: list[str] = []
        for first in range(start, len(positions), width):
            chosen = positions[first : first + width]
            refuse_cut_file(self.path, _HEADER + size)
            try:
                yield self._decode(packed[as_index(chosen)], first, chosen, unknown)
            finally:
                if isinstance(chosen, range):
                    ends = (chosen.start, chosen.stop)
                    begin, end = (_HEADER + j * self._stride for j in ends)
                    release_pages(self._map, begin, end)
        if unknown:
            warnings.warn(
                f"{self.path}: {len(unknown):,} of {self.n_features:,} variants have "
                f"no genotype in any sample: {shortened(unknown, 5)}. They count as "
                "constants, which are irrelevant. Leave them out with plink --geno.",
                FeatstreamWarning,
                stacklevel=2,
            )

    def _decode(
        self, packed: NDArray[Any], start: int, chosen: Positions, unknown: list[str]
    ) -> Block:
        """Unpack some variants; those without any genotype are added to ``unknown``."""
        genotypes = np.empty((len(chosen), self.n_samples), np.int8)
        counts = np.zeros((len(chosen), 4), np.int64)
        decode_genotypes(packed, self.n_samples, genotypes, counts)
        n_missing = counts[:, _UNKNOWN]
        nominal = None
        if self.missing == "error" and n_missing.any():
            j = int((n_missing > 0).argmax())
            variant = printable(self.names[chosen[j]])
            sample = self.sample_names[int((genotypes[j] == _UNKNOWN).argmax())]
            raise DataError(
                f"{self.path}: variant {variant} has {n_missing[j]:,} missing "
                f"genotype(s), the first that of sample {printable(sample)}. Pass ",
                Setting("missing", "mode"),
                " to take its commonest genotype, or ",
                Setting("missing", "category"),
                " to count them as a category.",
            )
        if self.missing == "mode":
            fill_with_mode(genotypes, counts)
        elif n_missing.any():
            nominal = n_missing > 0
        is_unknown = np.flatnonzero(n_missing == self.n_samples)
        unknown.extend(self.names[chosen[j]] for j in is_unknown)
        return self._block(genotypes.T, start, chosen, nominal)


def _map_file(path: Path, n_variants: int, stride: int) -> mmap.mmap:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER)
        if head[:2] != _MAGIC or len(head) < _HEADER:
            raise DataError("its first bytes are not those of a PLINK .bed file.")
        if head[2] == _BY_SAMPLE:
            raise DataError(
                "it is stored by sample, as old versions of PLINK did. Write it by "
                "variant: plink --bfile NAME --make-bed --out NEW."
            )
        if head[2] != _BY_VARIANT:
            raise DataError(f"its third byte is {head[2]}, and neither 0 nor 1.")
        needed = _HEADER + n_variants * stride
        if size != needed:
            raise DataError(
                f"it is {size:,} bytes long, but {n_variants:,} variants (.bim) of the "
                f"samples (.fam) take {needed:,}. It is cut short, or its .bim or .fam "
                "belongs to another file."
            )
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _read_lines(path: Path, suffix: str, digest: Any) -> Iterator[list[str]]:
    """The fields of each line of a ``.bim`` or ``.fam``, which are hashed as well."""
    other = path.with_suffix(suffix)
    if not other.is_file():
        raise MissingFileError(
            f"There is no file {printable(other, limit=400)}. A .bed is read with the "
            ".bim and .fam of the same name."
        )
    with reading(other), open(other, "rb") as file:
        for number, line in enumerate(file, 1):
            digest.update(line)
            fields = line.decode().split()
            if len(fields) != len(_FIELDS[suffix]):
                raise DataError(
                    f"line {number} has {len(fields)} fields, and not 6: "
                    f"{', '.join(_FIELDS[suffix])}."
                )
            yield fields


def _read_phenotypes(target: PathLike, samples: Sequence[str]) -> NDArray[Any]:
    """The phenotypes of these people in a file: ``FILE`` or ``FILE:COLUMN``."""
    path, column = split_column(target)
    with reading(path):
        lines = [line.split() for line in path.read_text("utf-8").splitlines()]
        n_fields = len(lines[0]) if lines else 0
        if n_fields < 3:
            raise DataError(
                f"it has {n_fields} columns. It needs family, person and phenotype."
            )
        for number, line in enumerate(lines, 1):
            if len(line) not in (0, n_fields):
                raise DataError(
                    f"line {number} has {len(line)} fields, and the first {n_fields}."
                )
        names = [str(i) for i in range(1, n_fields + 1)]
        if lines[0][0].lstrip("#").upper() == "FID":
            names = lines.pop(0)
        place = names.index(choose_column(names[2:], column), 2)
        lines = [line for line in lines if line]
        keys = [f"{family} {person}" for family, person, *_ in lines]
        hint = "These are family and person."
        found = places_of(samples, keys, "pair of columns", hint)
        return _as_phenotypes([lines[i][place] for i in found])


def _missing_among(values: set[str]) -> set[str]:
    """Those that mean missing: NA, -9 in any spelling, 0 beside cases and controls."""
    missing = {v for v in values if v in _MISSING or (is_number(v) and float(v) == -9)}
    is_case_control = "2" in values and values - missing <= _CASE_CONTROL
    return missing | {"0"} if is_case_control else missing


def _as_phenotypes(values: list[str]) -> NDArray[Any]:
    """Phenotypes as labels, without those that are missing."""
    missing = _missing_among(set(values))
    return label_array([None if value in missing else value for value in values])


@kernel(allocates=True)
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
            n_missing += genotypes[j, i] == _UNKNOWN
        counts[j, 0] = n_samples - n_one - n_two - n_missing
        counts[j, 1] = n_one
        counts[j, 2] = n_two
        counts[j, _UNKNOWN] = n_missing


@kernel(allocates=True)
def fill_with_mode(genotypes: Any, counts: Any) -> None:
    """Replace what is missing by the variant's commonest genotype.

    The fewest copies, if two are equally common; 0 if all are missing.
    """
    for j in range(genotypes.shape[0]):
        if counts[j, _UNKNOWN] == 0:
            continue
        mode = 0
        for copies in range(1, _UNKNOWN):
            if counts[j, copies] > counts[j, mode]:
                mode = copies
        for i in range(genotypes.shape[1]):
            if genotypes[j, i] == _UNKNOWN:
                genotypes[j, i] = mode

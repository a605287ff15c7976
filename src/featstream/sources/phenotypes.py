"""Phenotypes of PLINK: of the ``.fam``, or in a file of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.errors import DataError, printable
from featstream.sources.dataset import PathLike, reading, shortened
from featstream.sources.targets import split_column

__all__ = ["Person", "family_phenotypes", "read_phenotypes"]

_MISSING = frozenset(["NA", "na", "nan", "NaN", "."])
_CASE_CONTROL = frozenset(["0", "1", "2"])


class Person(NamedTuple):
    """A line of a ``.fam``."""

    family: str
    identifier: str
    phenotype: str

    @property
    def name(self) -> str:
        """Family and person, as PLINK writes them."""
        return f"{self.family} {self.identifier}"


def family_phenotypes(people: Sequence[Person], path: Path) -> NDArray[Any] | None:
    """The phenotypes in the ``.fam``; None if all of them are missing."""
    values = [person.phenotype for person in people]
    distinct = tuple(set(values))
    if all(_is_missing(value, distinct) for value in distinct) or distinct == ("0",):
        return None
    with reading(path):
        return _as_phenotypes(values)


def read_phenotypes(target: PathLike, people: Sequence[Person]) -> NDArray[Any]:
    """The phenotypes of these people in a file: ``FILE`` or ``FILE:COLUMN``."""
    path, column = split_column(target)
    with reading(path):
        lines = [line.split() for line in path.read_text("utf-8").splitlines()]
        first = lines[0] if lines else []
        has_header = bool(first) and first[0].lstrip("#").upper() == "FID"
        place = _place_of(column, first, has_header=has_header)
        found: dict[tuple[str, str], str] = {}
        for number, line in enumerate(lines, 1):
            if (has_header and number == 1) or not line:
                continue
            if len(line) != len(first):
                raise DataError(
                    f"line {number} has {len(line)} fields, and the first {len(first)}."
                )
            key = (line[0], line[1])
            if key in found:
                raise DataError(f"line {number} names {' '.join(key)!r} again.")
            found[key] = line[place]
        lost = [p.name for p in people if (p.family, p.identifier) not in found]
        if lost:
            raise DataError(
                f"{len(lost):,} of {len(people):,} samples are not in it: "
                f"{shortened(lost, 5)}. Its lines begin with family and person."
            )
        values = [found[person.family, person.identifier] for person in people]
        return _as_phenotypes(values)


def _place_of(column: str | None, first: list[str], *, has_header: bool) -> int:
    """Which field of a line is the phenotype."""
    n_fields = len(first)
    header = first if has_header else []
    if n_fields < 3:
        raise DataError(
            f"it has {n_fields} columns. It needs family, person and phenotype."
        )
    if column is None:
        if n_fields > 3:
            asked = shortened(header[2:]) if header else f"the columns 3 to {n_fields}"
            raise DataError(f"which is the phenotype: {asked}? Write FILE:COLUMN.")
        return 2
    if column in header[2:]:
        return header.index(column, 2)
    if not header and column.isdecimal() and 3 <= int(column) <= n_fields:
        return int(column) - 1
    told = shortened(header[2:]) if header else f"3 to {n_fields}, without a header"
    raise DataError(f"it has no column {printable(column)}. Its columns are: {told}.")


def _is_missing(value: str, values: Sequence[str]) -> bool:
    """Whether a phenotype is missing: 0 is, among cases (2) and controls (1)."""
    if value == "0":
        return "2" in values and all(v in _CASE_CONTROL or _is_code(v) for v in values)
    return _is_code(value)


def _is_code(value: str) -> bool:
    """Whether a value stands for a missing phenotype: -9 in any spelling, or NA."""
    try:
        return value in _MISSING or float(value) == -9
    except ValueError:
        return False


def _as_phenotypes(values: list[str]) -> NDArray[Any]:
    """Numbers, or else text; NaN or None where the phenotype is missing."""
    distinct = tuple(set(values))
    codes = {value for value in distinct if _is_missing(value, distinct)}
    found = [None if value in codes else value for value in values]
    try:
        return np.array([np.nan if v is None else float(v) for v in found])
    except ValueError:
        return np.array(found, object if codes else np.str_)

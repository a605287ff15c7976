"""Readers of files that are fuzzed: genotypes of PLINK, and wide tables of text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from featstream.errors import DataError, MissingFileError
from featstream.sources import csv as csv_reader
from featstream.sources import csv_dialect, open_plink
from featstream.sources.open import reading
from featstream.sources.tables import find_table
from featstream.sources.text_values import MISSING
from featstream.sources.values import LIMITS

_QUOTED = re.compile(r"'.*'|\".*\"|[0-9]+", re.DOTALL)


def outcome_of(error: Exception, path: Path) -> str:
    """The kind of an error and what it says, without what it quotes."""
    message = str(error).replace(str(path.parent), "")
    return f"{type(error).__name__}:" + _QUOTED.sub("n", message)[:100]


class Plink:
    """The reader of ``.bed``, ``.bim``, ``.fam`` and phenotypes: `DataError` or data.

    The first byte says which of the four is damaged, the second how missing genotypes
    are read, and whether the ``.bed`` gets the head and the size that it should have.
    """

    words = (
        *(b"\x6c\x1b\x01", b"\x6c\x1b\x00", b"\xff", b"\x55", b"\n", b" ", b"\t", b"."),
        *(b"-9", b"0", b"NA", b"fam s0 1\n", b"1 rs1 0 5 A G\n", b"f x 0 0 1 2\n"),
        *(b"FID IID y\n", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe", b"1e999", b"nan"),
    )

    def __init__(self, folder: Path) -> None:
        self._path = folder / "d.bed"
        rng = np.random.default_rng(0)
        lines = [f"fam s{i} 0 0 1 {1 + i % 2}" for i in range(9)]
        self._parts = (
            b"\x6c\x1b\x01" + rng.integers(0, 256, 15, np.uint8).tobytes(),
            b"".join(b"1 rs%d 0 %d A G\n" % (j, j) for j in range(5)),
            "\n".join(lines).encode(),
            "\n".join(f"fam s{i} {i % 3}" for i in range(9)).encode(),
        )

    def seeds(self) -> Iterator[bytes]:
        for which, part in enumerate(self._parts):
            for missing in (0, 1, 2, 129, 130):
                yield bytes([which, missing]) + part
        yield b"\x03\x00FID IID y\n" + self._parts[3]
        for shift in range(20):
            yield bytes([0, 129 + shift]) + bytes(shift) + self._parts[0]

    def run(self, content: bytes) -> str:
        which, missing = (content[:2] + b"\0\0")[:2]
        parts = list(self._parts)
        parts[which % 4] = content[2:]
        if missing >= 128:  # the right head and size, or little would get past that
            size = len(self._parts[0])
            parts[0] = (self._parts[0][:3] + parts[0][3:size]).ljust(size, b"\xe4")
        suffixes = (".bed", ".bim", ".fam", ".txt")
        for suffix, part in zip(suffixes, parts, strict=True):
            self._path.with_suffix(suffix).write_bytes(part)
        target = str(self._path.with_suffix(".txt")) if which % 4 == 3 else None
        try:
            dataset = open_plink(
                self._path, target, missing=("error", "mode", "category")[missing % 3]
            )
            blocks = list(dataset.source.blocks())
        except (DataError, MissingFileError) as error:
            return outcome_of(error, self._path)
        found = np.concatenate([block.columns for block in blocks], axis=1)
        assert found.shape == (dataset.source.n_samples, dataset.source.n_features)
        assert 0 <= found.min() <= found.max() <= (3 if missing % 3 == 2 else 2)
        assert dataset.y is None or len(dataset.y) == found.shape[0]
        return f"matrix:{found.shape}"


class Csv:
    """The reader of wide text, by blocks: what pyarrow makes of the whole, or an error.

    The first byte is the width of a block, in bytes of text.
    """

    words = (
        *(b",", b'"', b'""', b"\n", b"\r\n", b"\r", b",,", b'","', b'"\n', b"NA", b"1"),
        *(b"-1.5", b"true", b"1e400", b"\x00", b"\xff", b"\xef\xbb\xbf", b"a" * 300),
    )

    def __init__(self, folder: Path) -> None:
        self._path = folder / "d.csv"
        LIMITS.csv_held = 0

    def seeds(self) -> Iterator[bytes]:
        yield b"\x01a,b,c\n1,2.5,x\n3,,y\n"
        yield b'\x04a,"b\n,",c\r\n"1,",2,"""x"""\r\n\r\n3,,y'
        yield b"\x20a\n1\n\n2\n"
        rng = np.random.default_rng(0)
        rows = [",".join(map(str, rng.integers(-9, 99, 12))) for _ in range(6)]
        header = ",".join(f"g{j}" for j in range(12))
        yield ("\x10" + "\n".join([header, *rows])).encode()

    def run(self, content: bytes) -> str:
        width, text = (content[:1] + b"\0")[0], content[1:]
        self._path.write_bytes(text)
        LIMITS.csv_block = 1 + width
        whole = self._whole(text)
        try:
            options = csv_dialect.TextOptions(separator=",", skip_rows=0)
            table = find_table(self._path, options)
            with reading(self._path):
                found = table.read(range(len(table.names)))
        except DataError as error:
            # pyarrow takes a quote that is never closed, and names that are no text.
            strict = "never closed", "codec", "not written in utf-8", "NUL bytes"
            is_strict = any(words in str(error) for words in strict)
            if whole is None or is_strict:
                return outcome_of(error, self._path)
            raise AssertionError("the blocks refuse what pyarrow takes") from error
        if whole is None and table.names[0] == "":
            return "rows with names:"  # a header as R writes it, which pyarrow refuses
        assert whole is not None, "pyarrow refuses what the blocks take"
        assert table.names == whole.column_names
        assert table.n_rows == whole.num_rows
        assert str(found.to_pydict()) == str(whole.to_pydict())  # NaN is NaN
        return f"table:{whole.num_columns}"

    def _whole(self, text: bytes) -> pa.Table | None:
        text = text.removeprefix(b"\xef\xbb\xbf")
        try:
            table = pyarrow.csv.read_csv(
                io.BytesIO(text),
                pyarrow.csv.ReadOptions(block_size=1 << 20),
                pyarrow.csv.ParseOptions(newlines_in_values=True),
                pyarrow.csv.ConvertOptions(
                    null_values=MISSING, strings_can_be_null=True
                ),
            )
            dialect = csv_dialect.Dialect(",", ".", list(MISSING))
            return csv_reader.finish(table, csv_reader._CsvReader(text, dialect))
        except (ValueError, KeyError):
            return None

"""Tables on disk, one row per sample, read some columns at a time; targets in files."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from featstream.errors import (
    DataError,
    FeatstreamWarning,
    ParameterError,
    Setting,
    check_choice,
    check_count,
    printable,
)
from featstream.protocols import Block
from featstream.sources.combined import RowNumbers, real_names
from featstream.sources.csv import CsvTable
from featstream.sources.csv_dialect import AS_FOUND, TextOptions
from featstream.sources.memory import FramedSource, Positions
from featstream.sources.open import (
    Dataset,
    PathLike,
    existing,
    find_target,
    format_suffix,
    reading,
    require,
    shortened,
    while_reading,
)
from featstream.sources.text_file import TextFile, as_utf8
from featstream.sources.text_values import MISSING, as_na_values, refuse_hidden_numbers
from featstream.sources.values import (
    BLOCK_BYTES,
    Duplicates,
    check_names,
)

if TYPE_CHECKING:
    from featstream.sources.parquet import IpcTable, ParquetTable

_TABLES = (".csv", ".tsv", ".tab", ".parquet", ".feather", ".arrow")
_FEATURES = Setting("orient", "features")

NAMES = ("names", "feature_names")
"""What an array of names of features is called, in ``.npz`` and zarr."""


def open_text(
    path: PathLike,
    target: str | None = None,
    *,
    orient: str = "samples",
    optional: Collection[str] | None = None,
    duplicates: Duplicates = "error",
    **options: Any,
) -> Dataset:
    """Open a table of text, with one row per sample or per feature (``orient``).

    Parameters
    ----------
    path, target, optional, duplicates
        As for `open_table`.
    orient : {"samples", "features"}, default="samples"
        What a row is. A row of a feature begins with its name; the header names the
        samples, and may lack a name for the first column.
    **options
        How the text is written, as for `open_table`.
    """
    if check_choice(orient, "orient", ("samples", "features")) == "samples":
        return open_table(
            path, target, optional=optional, duplicates=duplicates, **options
        )
    from featstream.sources.feature_text import FeatureTextSource

    path, text = existing(path), as_text_options(**options)
    require("pyarrow", "frames", path)
    with reading(path):
        source = FeatureTextSource(path, text, duplicates=duplicates)
    y = None if target is None else read_target(target, source.sample_names)
    return Dataset(source, y, source.names, target)


def as_text_options(
    *,
    separator: str | None = None,
    na_values: str | Iterable[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    max_bytes: int | None = None,
    no_header: bool = False,
) -> TextOptions:
    """Check what was said of a text; the parameters are those of `open_table`."""
    skip_rows = check_count(
        skip_rows, "skip_rows", least=0, none="to find where the header begins"
    )
    listed = as_na_values(na_values)
    return TextOptions(
        *(separator, listed, decimal, thousands, encoding, skip_rows, max_bytes),
        no_header=no_header,
    )


def open_table(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] | None = None,
    duplicates: Duplicates = "error",
    **options: Any,
) -> Dataset:
    r"""Open a table: CSV, TSV, parquet or Arrow IPC (Feather); needs pyarrow.

    Parameters
    ----------
    path : str or path-like
        A table with named columns and one row per sample. What stands between the
        values of a text is found in its first lines: a comma, a semicolon, a tab, a
        bar, or a space. Comments (``#``) before the header are skipped. A header of
        R's ``write.table``, with one name less than there are columns, is understood.
    target : str, default=None
        The column that is the target; by default the one called ``y``, ``target``,
        ``class`` or ``label``. Or the file that holds it, ``FILE`` or ``FILE:COLUMN``;
        see `read_target`.
    optional : collection of str, default=None
        If given, the table need not have a target: it is the column with a name from
        here or one of the four, if there is any.
    duplicates
        As for `open_dataset`.
    na_values : str or list of str, default=None
        Values that mean a missing one, in every column, besides those that
        ``pandas.read_csv`` knows (an empty one, ``NA``, ``nan``, ``null``, ...).
    max_bytes : int, default=None
        As for `open_dataset`.
    separator : str, default=None
        Of a text, what stands between two values.
    decimal : {".", ","}, default=None
        Of a text, the decimal point; by default found in its first lines.
    thousands : str, default=None
        Of a text, what separates thousands, such as ``","`` in 1,234.
    encoding : str, default=None
        Of a text, its encoding, such as ``"latin-1"``; by default UTF-8, or what a byte
        order mark says.
    skip_rows : int, default=None
        Of a text, lines before the header; by default those of comments.
    no_header : bool, default=False
        Of a text, whether it begins with data; its columns are then called x0, x1, and
        so on. A first row that looks like data is an error otherwise.

    Returns
    -------
    Dataset
        The other columns, the target, and the names. An index that pandas or R wrote is
        not a feature: in parquet it is marked; in text it is a first column without
        a name, of distinct words or whole numbers.

    Notes
    -----
    The columns are read some at a time. A text file of more than 64 MiB is first cut
    into blocks of columns, in a temporary file of its own size.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_table
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("a,b,class\n1,2.5,yes\n3,4.5,no", file=file, flush=True)
    ...     data = open_table(file.name)
    >>> data.names, data.y.tolist(), data.target_name
    (['a', 'b'], ['yes', 'no'], 'class')
    """
    table = find_table(path, as_text_options(**options))
    with reading(table.path):
        index, samples = _find_index(table)
        if duplicates != "error":
            table.names = check_names(table.names, len(table.names), duplicates)
        names = table.names
        file = None
        if target is not None and target not in names and is_target_file(target):
            file, column = target, None
        else:
            column = find_target(names, target, optional or ())
        if column is None and file is None and optional is None:
            raise _no_target(table, index)
        found = [] if column is None else [names.index(column)]
        source = TableSource(table, without=[*found, *index])
        source.sample_names = samples
        if real_names(samples) is None:
            source.find_identifier()
        y = read_labels_of(table, found[0]) if found else None
    if file is not None:
        y, column = read_target(file, samples, **options), file
    is_guessed = target is None and column is not None
    return Dataset(source, y, source.names, column, is_guessed)


def _no_target(table: Table, index: list[int]) -> DataError:
    """The error for a table none of whose columns is known to be the target."""
    hint: tuple[Any, ...] = ()
    if index and is_text_table(table):
        hint = (" If a row is a feature and not a sample, pass ", _FEATURES, ".")
    return DataError(
        "which of its columns is the target? None is called y, target, class or "
        "label. Name it with ",
        Setting("target", "NAME"),
        f". Its columns are: {shortened(table.names)}.",
        *hint,
    )


def is_text_table(table: Table) -> bool:
    """Whether a table is text, and not a file of Arrow's."""
    return isinstance(table, CsvTable)


def read_labels_of(table: Table, position: int) -> NDArray[Any]:
    """The column of a table that is the target; None or NaN where it has no label."""
    column = table.read([position]).column(0)
    y = np.asarray(column.to_numpy())
    if y.dtype.kind == "O":
        what = f"The target {printable(table.names[position])}"
        refuse_hidden_numbers(y.tolist(), what, is_target=True)
    return y


def _find_index(table: Table) -> tuple[list[int], Sequence[str] | None]:
    """The column that names the samples, if the first one does, and their names."""
    names = table.names
    nameless = [i for i, name in enumerate(names) if not name.strip()]
    samples = table.samples
    if nameless[:1] == [0] or (names and names[0] == "Unnamed: 0"):
        found = table.read([0]).column(0).to_pylist()
        index = as_sample_names(found)
        is_counted = isinstance(index, RowNumbers)
        are_whole = all(type(value) is int for value in found)
        are_names = len(set(found)) == len(found) and (
            all(type(value) is str for value in found) or are_whole
        )
        # Numbers of rows, from before these were put into another order.
        was_counted = are_whole and isinstance(
            as_sample_names(sorted(found)), RowNumbers
        )
        if was_counted or (are_names and nameless[:1] == [0]):
            warnings.warn(
                f"{table.path}: the first column has no name and "
                f"{'counts the rows' if is_counted else 'names the samples'}; it is "
                "left out. Name it if it is a feature.",
                FeatstreamWarning,
                stacklevel=3,
            )
            return [0], index
    if nameless:
        raise DataError(
            f"its column {nameless[0] + 1} has no name. Name it if it is a feature, "
            "or remove it."
        )
    return [], samples


def as_sample_names(found: list[Any]) -> Sequence[str]:
    """An index as text; `RowNumbers` if it counts the rows, from 0 or from 1."""
    n_rows = len(found)
    for first in (0, 1):
        if found == list(range(first, first + n_rows)):
            return RowNumbers(n_rows, first)
    return [str(name) for name in found]


Table: TypeAlias = "CsvTable | ParquetTable | IpcTable"


def find_table(path: PathLike, options: TextOptions = AS_FOUND) -> Table:
    """The table in a file of text, parquet or Arrow IPC."""
    path = existing(path)
    require("pyarrow", "frames", path)
    with reading(path):
        suffix = format_suffix(path)
        if suffix not in (".parquet", ".feather", ".arrow"):
            return CsvTable(path, options)
        from featstream.sources import parquet

        kind = parquet.ParquetTable if suffix == ".parquet" else parquet.IpcTable
        return kind(path, options.na_values, options.max_bytes)


class TableSource(FramedSource):
    """The columns of a table on disk, but for those at the positions ``without``.

    A block has about ``block_bytes``, and at most 1024 columns.
    """

    def __init__(
        self,
        table: Table,
        without: int | Sequence[int] = (),
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._table, self.block_bytes = table, block_bytes
        left_out = np.array(without, np.int64)
        self._places = np.delete(np.arange(len(table.names)), left_out)
        names = [table.names[i] for i in self._places]
        shape = table.n_rows, len(names)
        super().__init__(shape, names, about=printable(table.path.name))
        if table.text_columns is not None:
            is_text = np.isin(self._places, table.text_columns)
            self.text_columns = np.flatnonzero(is_text).tolist()

    def find_identifier(self) -> None:
        """Take the names of the samples from the first column, if it is all words.

        It stays a feature, which measures leave out as an identifier.
        """
        if not self.n_features:
            return
        first = self._table.read([int(self._places[0])]).column(0)
        if str(first.type) not in ("string", "large_string") or first.null_count:
            return
        words = first.to_pylist()
        if len(set(words)) == len(words):
            self.sample_names = words
            self.sample_column = self._table.names[self._places[0]]

    def without_identifier(self) -> TableSource:
        """The source without the column that names the samples."""
        kept = self._places[1:]
        left_out = np.setdiff1d(np.arange(len(self._table.names)), kept)
        source = TableSource(self._table, left_out.tolist(), self.block_bytes)
        source.sample_names = self.sample_names
        source.sample_column = self.sample_column
        warnings.warn(
            f"{self._table.path}: the column {printable(self.sample_column)} names the "
            "samples, as in the data before it; it is left out here.",
            FeatstreamWarning,
            stacklevel=3,
        )
        return source

    @property
    def fingerprint(self) -> str:
        """Changes with the data."""
        return self._table.fingerprint

    def _blocks(self, positions: Positions, start: int) -> Iterator[Block]:
        return while_reading(self._table.path, super()._blocks(positions, start))

    def _part(self, chosen: Positions) -> Any:
        places = self._places[chosen].tolist()
        return nw.from_native(self._table.read(places), eager_only=True)


def read_target(
    target: PathLike,
    samples: Sequence[str] | None = None,
    **options: Any,
) -> NDArray[Any]:
    r"""Read a target from a file of its own.

    Parameters
    ----------
    target : str or path-like
        The file, or ``FILE:COLUMN``: ``.npy``; ``.txt`` with one label per line; or a
        table (``.csv``, ``.tsv``, ``.parquet``, ``.feather``), with the column, one
        called ``y``, ``target``, ``class`` or ``label``, or just one besides the
        names of the samples.
    samples : sequence of str, default=None
        The names of the samples, if they have any. A table of several columns then
        begins with these names, in any order, and is put in the order of the
        features' values.
    **options
        How the file is written, as for `open_table`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels; NaN or None where one is missing.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("id,status\ns2,ill\ns1,well", file=file, flush=True)
    ...     read_target(file.name, ["s1", "s2"])
    array(['well', 'ill'], dtype=object)
    """
    path, column = split_column(target)
    suffix, text = format_suffix(path), as_text_options(**options)
    if suffix not in (".npy", ".txt", *_TABLES):
        raise ParameterError(
            f"A target is read from .npy, .txt, {', '.join(_TABLES)}. Got {path}."
        )
    if suffix in (".npy", ".txt") and column is not None:
        raise ParameterError(f"{path} has no columns. Got the column {column!r}.")
    if suffix in _TABLES:
        table = find_table(path, text)
        with reading(path):
            return _read_column(table, column, samples)
    with reading(path):
        if suffix == ".npy":
            with open(path, "rb") as file:
                return np.asarray(npy.read_array(file, allow_pickle=False))
        with closing(TextFile(path, 1 << 20, text.max_bytes)) as file:
            whole = b"".join(as_utf8(file.chunks(), text.encoding)).decode()
        words = [line.strip() for line in whole.splitlines()]
        missing = {*MISSING, *text.na_values}
        labels = [None if word in missing else word for word in words]
        refuse_hidden_numbers(labels, "The target", is_target=True)
        return label_array(labels)


def is_target_file(target: str) -> bool:
    """Whether a target is ``FILE`` or ``FILE:COLUMN``, and the file is there."""
    name = target.rpartition(":")[0]
    return Path(target).is_file() or (name != "" and Path(name).is_file())


def check_target(target: str, arrays: Sequence[str]) -> None:
    """Raise unless a target is one of the arrays of a file, or a file of its own."""
    if target not in arrays and not is_target_file(target):
        raise DataError(
            f"it has no array {printable(target)} for a target, and there is no such "
            f"file. It holds: {shortened(arrays)}."
        )


def split_column(target: PathLike) -> tuple[Path, str | None]:
    """The file that a target is in, and the column: ``FILE`` or ``FILE:COLUMN``."""
    name, _, column = str(target).rpartition(":")
    if name and not Path(target).exists() and Path(name).is_file():
        return Path(name), column
    return existing(target), None


def _read_column(
    table: Table, column: str | None, samples: Sequence[str] | None
) -> NDArray[Any]:
    names = table.names
    samples = real_names(samples)
    is_keyed = samples is not None and len(names) > 1
    has_index = len(names) > 1 and not names[0].strip()
    choice = names[1:] if is_keyed or has_index else names
    chosen = choose_column(choice, column)
    values = read_labels_of(table, names.index(chosen))
    if not is_keyed or samples is None:
        if names[0] != chosen:
            _say_that_order_is_trusted(table)
        return values
    keys = [str(key) for key in table.read([0]).column(0).to_pylist()]
    hint = "A file of one column is taken in the order of the samples."
    return values[places_of(samples, keys, f"column {printable(names[0])}", hint)]


def _say_that_order_is_trusted(table: Table) -> None:
    """Warn if a file of labels names its samples, and the features do not."""
    found = table.read([0]).column(0).to_pylist()
    are_names = len(set(found)) == len(found) and (
        all(type(value) is str for value in found)
        or all(type(value) is int for value in found)
    )
    if are_names and real_names(as_sample_names(found)) is not None:
        warnings.warn(
            f"{table.path}: the labels have names of samples, in the column "
            f"{printable(table.names[0])}, and the features have none: the order of "
            "the rows was trusted.",
            FeatstreamWarning,
            stacklevel=5,
        )


def choose_column(names: Sequence[str], column: str | None) -> str:
    """The column of a file that is the target: the one asked for, or found by name."""
    found = names[0] if column is None and len(names) == 1 else None
    found = found or find_target(names, column)
    if found is None:
        raise DataError(
            "the target column is ambiguous. Write FILE:COLUMN, with one of: "
            f"{shortened(names)}."
        )
    return found


def places_of(
    samples: Sequence[str], keys: Sequence[str], what: str, hint: str
) -> list[int]:
    """Where samples are among the keys of a file, which its first ``what`` holds."""
    place = {key: i for i, key in enumerate(keys)}
    if len(place) < len(keys):
        twice = next(key for i, key in enumerate(keys) if place[key] != i)
        raise DataError(f"its first {what} has the sample {printable(twice)} twice.")
    lost = [name for name in samples if name not in place]
    if lost:
        raise DataError(
            f"its first {what} should name the samples, and {len(lost):,} are not "
            f"there: {shortened(lost, 5)}. {hint}"
        )
    return [place[name] for name in samples]


def label_array(labels: list[str | None]) -> NDArray[Any]:
    """Labels as numbers if all are, else as text; NaN or None where one is missing."""
    try:
        return np.array([np.nan if label is None else float(label) for label in labels])
    except ValueError:
        return np.array(labels, object if None in labels else np.str_)

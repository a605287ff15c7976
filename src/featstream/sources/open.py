"""Opening data: any object, file or folder becomes a source, with its target.

`FORMATS` lists the kinds of files by suffix: a new one is a module with a function
that returns a `Dataset`, and a line there.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from featstream.errors import (
    DataError,
    DataTypeError,
    FeatstreamError,
    MissingExtraError,
    MissingFileError,
    ParameterError,
    Setting,
    as_bytes,
    closest,
    printable,
)
from featstream.protocols import Source, sample_names_of
from featstream.sources.combined import (
    ChainedSource,
    SampleSubset,
    common_names,
    real_names,
    without_identifier,
)
from featstream.sources.conversions import unknown_format
from featstream.sources.memory import (
    ArraySource,
    FrameSource,
    IteratorSource,
    SparseSource,
    is_frame,
)
from featstream.sources.values import as_array, is_missing

PathLike: TypeAlias = "str | os.PathLike[str]"
Item = TypeVar("Item")


class Format(NamedTuple):
    """How files of a kind are opened, and the parameters that they take."""

    opener: str  # "module:function"; with a dot in front, of this package
    options: tuple[str, ...] = ()
    finds_target: bool = False  # whether the function takes ``optional``
    takes_target_file: bool = False  # whether ``target`` may be a file of its own


SVMLIGHT = (".svm", ".svmlight", ".libsvm")

_SNIFFED = (".txt", ".data")
"""Svmlight or a table: the first lines tell."""

_TEXT = Format(
    ".tables:open_text",
    (
        *("orient", "separator", "na_values", "decimal", "thousands", "encoding"),
        *("skip_rows", "no_header", "max_bytes", "duplicates"),
    ),
    finds_target=True,
    takes_target_file=True,
)
_ARROW = Format(
    ".tables:open_table", ("na_values", "max_bytes", "duplicates"), True, True
)

FORMATS = {
    ".cols": Format(".store:open_cols"),
    ".npy": Format(".npy:open_npy", takes_target_file=True),
    ".npz": Format(
        ".npy:open_npz", ("max_bytes", "duplicates"), takes_target_file=True
    ),
    **dict.fromkeys((".csv", ".tsv", ".tab", *_SNIFFED), _TEXT),
    ".parquet": Format(
        ".parquet:open_parquet",
        ("orient", "na_values", "max_bytes", "duplicates"),
        True,
        takes_target_file=True,
    ),
    ".feather": _ARROW,
    ".arrow": _ARROW,
    ".zarr": Format(
        ".annotated:open_zarr", ("layer", "duplicates"), True, takes_target_file=True
    ),
    ".h5ad": Format(".annotated:open_h5ad", ("layer", "duplicates"), finds_target=True),
    ".bed": Format(
        ".plink:open_plink", ("missing", "duplicates"), takes_target_file=True
    ),
    **dict.fromkeys(SVMLIGHT, Format(".svmlight:open_svmlight", ("max_bytes",))),
}

FOLDERS = (".cols", ".zarr")
"""Suffixes of data sets that are folders."""

TARGET_NAMES = ("y", "target", "class", "label")

_COMPRESSED = (".gz", ".xz", ".bz2", ".zst")

_UNREADABLE = (
    *(AssertionError, EOFError, KeyError, NotImplementedError, OSError, RuntimeError),
    *(ValueError, zipfile.BadZipFile, zlib.error),
)
"""What the readers of other libraries raise on a file that is not well formed."""

_NOT_THE_FILE = (
    *(errno.EACCES, errno.EPERM, errno.EIO, errno.ENOMEM),
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT),
)
"""Errors of the system, which are raised as they are."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Features, and the target where the file holds one.

    Attributes
    ----------
    source : Source
        The features.
    y : ndarray of shape (n_samples,) or None
        The target.
    names : sequence of str or None
        The names of the features, where the file holds them.
    target_name : str or None
        The column, array or file that the target was read from; None if the format
        has one place for it.
    target_is_guessed : bool
        Whether the target was found by its name (``y``, ``target``, ``class`` or
        ``label``), not asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import ArraySource, Dataset
    >>> Dataset(ArraySource(np.eye(2)), np.array([0, 1]))
    Dataset(source=ArraySource(2 samples × 2 features, float64),
            y=array([0, 1]), names=None)
    """

    source: Source
    y: NDArray[Any] | None = None
    names: Sequence[str] | None = None
    target_name: str | None = field(default=None, repr=False)
    target_is_guessed: bool = field(default=False, repr=False)

    @property
    def samples(self) -> Sequence[str] | None:
        """The names of the samples, where they are known."""
        return real_names(sample_names_of(self.source))


def as_source(X: Any) -> Source:
    """Make a source of anything that has columns.

    Parameters
    ----------
    X : array-like, sparse matrix, data frame, path, iterable of pairs, or Source
        A two-dimensional array (or list of rows), a matrix of scipy.sparse, a
        frame of pandas, polars or pyarrow, an AnnData object (its ``X``; for a layer
        see `open_anndata`), a dask.array, the path of a data set (`open_features`),
        or an iterable of ``(name, values)``. A source is returned as it is.

    Returns
    -------
    Source
        The columns of ``X``, which is never modified.

    Examples
    --------
    >>> import numpy as np
    >>> from featstream.sources import as_source
    >>> as_source(np.eye(3))
    ArraySource(3 samples × 3 features, float64)
    >>> as_source([("age", [31, 47]), ("height", [1.75, 1.68])])
    IteratorSource(list)
    """
    if isinstance(X, (str, os.PathLike)):
        return open_features(X).source
    if sparse.issparse(X):
        return SparseSource(X)
    if isinstance(X, np.ndarray):
        return ArraySource(X)
    if isinstance(X, Source):
        return X
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    if is_frame(X):
        return FrameSource(X)
    if is_anndata(X):
        from featstream.sources.annotated import open_anndata

        return open_anndata(X).source
    if is_dask_array(X):
        from featstream.sources.chunked import DaskArraySource

        return DaskArraySource(X)
    if hasattr(X, "__array__") or (isinstance(X, (list, tuple)) and not _has_pairs(X)):
        return ArraySource(as_array(X, "X"))
    if isinstance(X, Iterable) and not isinstance(X, (Mapping, bytes, set)):
        return IteratorSource(X)
    raise DataTypeError(
        f"Cannot read features from {type(X).__name__}. Give a two-dimensional "
        "array or list of rows, a scipy.sparse matrix, a pandas, polars or pyarrow "
        "table, an AnnData object, the path of a data set, an iterable of (name, "
        "values), or a Source."
    )


def is_anndata(X: Any) -> bool:
    """Whether it is an AnnData object; anndata is not imported to find out."""
    anndata = sys.modules.get("anndata")
    return anndata is not None and isinstance(X, anndata.AnnData)


def is_dask_array(X: Any) -> bool:
    """Whether it is a dask.array; Dask is not imported to find out."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(X, dask_array.Array)


def _has_pairs(X: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list holds (name, values) rather than rows, which hold scalars."""
    first = X[0] if X else None
    return (
        isinstance(first, (list, tuple))
        and len(first) == 2
        and isinstance(first[0], str)
        and (hasattr(first[1], "__len__") or sparse.issparse(first[1]))
        and not isinstance(first[1], (str, bytes))
    )


def open_dataset(
    path: PathLike,
    target: str | None = None,
    *,
    layer: str | None = None,
    orient: str | None = None,
    missing: str | None = None,
    duplicates: str | None = None,
    separator: str | None = None,
    na_values: str | Iterable[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    no_header: bool = False,
    max_bytes: int | str | None = None,
    drop_unlabelled: bool = False,
) -> Dataset:
    """Open a data set; the suffix of the file says which format it is.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.tab``, ``.parquet``, ``.feather``,
        ``.arrow``, ``.zarr``, ``.h5ad`` (AnnData), ``.bed`` (PLINK), ``.cols`` (a
        column store), or svmlight (``.svm``, ``.svmlight``, ``.libsvm``); ``.txt`` and
        ``.data`` are svmlight if their first line is, and otherwise tables. Text files
        may end in ``.gz``, ``.xz``, ``.bz2`` or ``.zst``. Or a folder of such
        (`open_folder`).
    target : str, default=None
        Where the target is: the array in an ``.npz`` (by default ``y`` or
        ``y_train``) or in a group of ``.zarr``; the column of a table or of the
        ``obs`` of an ``.h5ad`` (by default the one called ``y``, ``target``,
        ``class`` or ``label``); or the file that holds it, `FILE` or `FILE:COLUMN`,
        but not for ``.h5ad``. An svmlight file and a column store hold their own.
    layer : str, default=None
        Of an ``.h5ad`` the layer to read instead of ``X``; of a ``.zarr`` group the
        array.
    orient : {"samples", "features"}, default="samples"
        What a row of a ``.parquet`` or text file is; see `open_feature_table`.
    missing : {"error", "mode", "category"}, default="error"
        What to do about missing genotypes; see `open_plink`.
    duplicates : {"error", "number"}, default="error"
        What to do about two features of one name: refuse them, or call the second
        one ``name#2``.
    separator : str, default=None
        What stands between the values of a text file; by default found in its first
        lines.
    na_values : str or list of str, default=None
        Values of a table that mean a missing one, besides the usual; see
        `open_table`.
    decimal, thousands, encoding, skip_rows, no_header
        How a text file is written; see `open_text`.
    max_bytes : int or str, default=None
        Most memory that a compressed file may unpack to, such as ``"8GB"``; by default
        200 times the size of the file, or 64 MB.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a label, instead of an error.

    Returns
    -------
    Dataset
        The features, the target if there is one, and names if there are any.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from featstream.sources import open_dataset
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as file:
    ...     np.savez(file.name, X=np.eye(3), y=[0, 1, 1])
    ...     open_dataset(file.name).y
    array([0, 1, 1])
    """
    options: dict[str, Any] = {
        "layer": layer,
        "orient": orient,
        "missing": missing,
        "separator": separator,
        "na_values": na_values,
        "decimal": decimal,
        "thousands": thousands,
        "encoding": encoding,
        "skip_rows": skip_rows,
        "no_header": no_header or None,
        "max_bytes": max_bytes,
        "duplicates": duplicates,
        "drop_unlabelled": drop_unlabelled,
    }
    return _open(path, target, None, **options)


def open_features(
    path: PathLike, target_names: Collection[str] = (), **options: Any
) -> Dataset:
    r"""Open a data set that need not have a target.

    Parameters
    ----------
    path : str or path-like
        As for `open_dataset`.
    target_names : collection of str
        Columns of a table that are the target if they are there, besides ``y``,
        ``target``, ``class`` and ``label``. Any other column is a feature.
    **options
        As for `open_dataset`, with ``drop_unlabelled``.

    Returns
    -------
    Dataset
        The features; the target, if there is one.

    Examples
    --------
    >>> import tempfile
    >>> from featstream.sources import open_features
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     print("a,b\n1,2.5\n3,4.5", file=file, flush=True)
    ...     open_features(file.name).names
    ['a', 'b']
    """
    return _open(path, None, target_names, **options)


def open_folder(
    path: PathLike,
    target: str | None = None,
    *,
    optional: Collection[str] = (),
    drop_unlabelled: bool = False,
    **options: Any,
) -> Dataset:
    """Open the files in a folder as one data set.

    Parameters
    ----------
    path : str or path-like
        A folder of files, or column stores, that `open_dataset` opens. They follow
        each other in the order of their names, compared as text: ``part-2`` comes
        after ``part-10``. Hidden files are skipped, and so are the ``.bim`` and
        ``.fam`` that belong to a ``.bed``.
    target : str, default=None
        The column of tables that is the target, besides ``y``, ``target``,
        ``class`` and ``label``. Or the file that holds it, where that is allowed.
    optional : collection of str, default=()
        Further names of such a column.
    drop_unlabelled : bool, default=False
        Whether to leave out samples without a label, instead of an error.
    **options
        As for `open_dataset`; they hold for every file.

    Returns
    -------
    Dataset
        The features of all files. The target is that of the files that have one;
        they must agree.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np
    >>> from featstream.sources import open_folder
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> np.savez(folder / "part-01.npz", X=np.eye(3), y=[0, 1, 1])
    >>> np.save(folder / "part-02.npy", np.ones((3, 2)))
    >>> data = open_folder(folder)
    >>> data.source.n_features, data.y
    (5, array([0, 1, 1]))
    """
    from featstream.sources.tables import is_target_file, split_column

    names = [*optional] if target is None else [target, *optional]
    is_file = target is not None and is_target_file(target)
    parts: dict[Path, Dataset] = {}
    for file in sorted(Path(path).iterdir()):
        if is_file and target is not None and split_column(target)[0].samefile(file):
            continue  # the target may lie beside the features
        is_beside = file.suffix in (".bim", ".fam")
        is_beside = is_beside and file.with_suffix(".bed").exists()
        if is_beside or file.name.startswith("."):
            continue
        suffix = format_suffix(file)
        takes_file = suffix in FORMATS and FORMATS[suffix].takes_target_file
        if is_file and takes_file:
            parts[file] = _open_file(file, target, None, options)
        else:
            parts[file] = _open_file(file, None, names, options)
    if not parts:
        raise MissingFileError(
            f"There is no file in {printable(path, limit=400)}. It is an empty folder."
        )
    labelled = [(file, part) for file, part in parts.items() if part.y is not None]
    for file, part in labelled[1:]:
        y, other = np.asarray(labelled[0][1].y), np.asarray(part.y)
        are_floats = y.dtype.kind == other.dtype.kind == "f"
        if not np.array_equal(y, other, equal_nan=are_floats):
            raise DataError(
                f"{file} has another target than the files before it. The files of a "
                "folder need the same samples, in the same order."
            )
    named = [(str(file), part.source) for file, part in parts.items()]
    _, column = common_names(named)
    first, *others = (part.source for part in parts.values())
    if column is not None:  # the first file keeps it
        others = [without_identifier(source, column) for source in others]
    source = ChainedSource([first, *others])
    found = labelled[-1][1] if labelled else Dataset(source)
    whole = replace(found, source=source, names=None)
    return _with_labels(whole, path, is_wanted=drop_unlabelled)


def is_svmlight(path: PathLike) -> bool:
    """Whether a file is svmlight text: by its suffix, or by the first line of a .txt.

    >>> is_svmlight("news20.SVM.gz"), is_svmlight("news20.csv")
    (True, False)
    """
    suffix = format_suffix(path)
    is_sniffed = suffix in _SNIFFED and os.path.isfile(path)
    return suffix in SVMLIGHT or (is_sniffed and _begins_with_svmlight(Path(path)))


def _begins_with_svmlight(path: Path) -> bool:
    """Whether the first line that is no comment is a label and pairs of numbers."""
    from featstream.sources.text_file import TextFile, as_utf8

    with reading(path), closing(TextFile(path, 1 << 16, None)) as file:
        head = next(as_utf8(file.chunks(), "latin-1"), b"")
    lines = (line.partition(b"#")[0].split() for line in head[: 1 << 16].splitlines())
    first = next(filter(None, lines), [])
    # A line may be cut; a label may stand alone, and then the next line tells.
    pairs = [word for word in first[1:3] if not word.startswith(b"qid:")]
    if len(first) == 1:
        pairs = next((line[1:2] for line in lines if len(line) > 1), [])
    return bool(pairs) and re.fullmatch(rb"[0-9]+:[0-9.eE+-]*", pairs[0]) is not None


def _is_folder_of_files(path: PathLike) -> bool:
    return os.path.isdir(path) and format_suffix(path) not in FOLDERS


def _open(
    path: PathLike,
    target: str | None,
    optional: Collection[str] | None,
    *,
    drop_unlabelled: bool = False,
    **options: Any,
) -> Dataset:
    if _is_folder_of_files(path):
        options["drop_unlabelled"] = drop_unlabelled
        return open_folder(path, target, optional=optional or (), **options)
    dataset = _open_file(path, target, optional, options)
    return _with_labels(dataset, path, is_wanted=drop_unlabelled)


def _open_file(
    path: PathLike,
    target: str | None,
    optional: Collection[str] | None,
    options: dict[str, Any],
) -> Dataset:
    """Open what is not a folder of files; see `open_table` for ``optional``."""
    path = existing(path)
    suffix = format_suffix(path)
    if suffix in _SNIFFED and is_svmlight(path):
        suffix = SVMLIGHT[0]
    if suffix not in FORMATS:
        raise unknown_format(path, suffix, FORMATS)
    kind = FORMATS[suffix]
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("max_bytes"), str):
        given["max_bytes"] = as_bytes(given["max_bytes"], "max_bytes")
    for name, value in given.items():
        if name not in kind.options:
            others = [other for other in FORMATS if name in FORMATS[other].options]
            raise ParameterError(
                f"`{name}` has no meaning for {suffix} files; it is for "
                f"{' and '.join(others)}. Got {name}={value!r} for {path}."
            )
    if optional is not None and kind.finds_target:
        target, given["optional"] = None, optional
    module, function = kind.opener.split(":")
    opener = getattr(import_module(module, __package__), function)
    dataset: Dataset = opener(path, target, **given)
    return dataset


def _with_labels(dataset: Dataset, path: PathLike, *, is_wanted: bool) -> Dataset:
    """Leave out the samples without a label if that is wanted, otherwise raise."""
    y = dataset.y
    if y is None or y.ndim != 1 or y.dtype.kind not in "fO":
        return dataset
    is_labelled = y == y  # not NaN
    if y.dtype.kind == "O":
        is_labelled = np.array([not is_missing(label) for label in y], bool)
    if is_labelled.all():
        return dataset
    if is_wanted:
        labels = y[is_labelled]
        labels = np.array(labels.tolist()) if labels.dtype.kind == "O" else labels
        source = SampleSubset(dataset.source, is_labelled)
        return replace(dataset, source=source, y=labels)
    target, row = dataset.target_name, int(is_labelled.argmin())
    where = "" if target is None else f" in {printable(target)}"
    name = "" if dataset.samples is None else f" ({printable(dataset.samples[row])})"
    raise DataError(
        f"{path}: {int((~is_labelled).sum()):,} of {y.size:,} samples have no label"
        f"{where}, the first at row {row}{name}. Pass ",
        Setting("drop_unlabelled", True),
        " to leave them out.",
    )


def format_suffix(path: PathLike) -> str:
    """The suffix of the format in lower case, without that of a compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def existing(path: PathLike) -> Path:
    """The path, if there is a data set at it."""
    path = Path(path)
    if not path.exists() or _is_folder_of_files(path):
        hint = "It is a folder." if path.is_dir() else "Check the path."
        raise MissingFileError(
            f"There is no file {printable(path, limit=400)} "
            f"(working folder: {Path.cwd()}). {hint}"
        )
    return path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in the errors that reading it raises."""
    try:
        yield
    except (DataError, DataTypeError) as error:
        raise type(error)(f"{path}: ", *error.args) from error
    except FeatstreamError:  # a wrong parameter, or a package that is not installed
        raise
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno in _NOT_THE_FILE:
            raise
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(
            f"{path} cannot be read as {path.suffix}: {reason}. "
            "It may be truncated, or not what its name says."
        ) from error


def while_reading(path: Path, items: Iterator[Item]) -> Iterator[Item]:
    """Yield items that are read one by one from a file; errors name the file."""
    while True:
        with reading(path):
            item = next(items, None)
        if item is None:
            return
        yield item


def require(package: str, extra: str, path: PathLike) -> None:
    """Raise if a package that reads a file is not installed."""
    if find_spec(package) is None:
        raise MissingExtraError(
            f"Reading {path} needs {package} (extra {extra!r}). Install it: pip "
            f"install {package}"
        )


def find_target(
    names: Sequence[str],
    target: str | None = None,
    also: Collection[str] = (),
    whose: str = "it",
) -> str | None:
    """The column that was asked for, is named in ``also``, or has a usual name."""
    if target in names:
        return target
    if target is not None:
        raise lacks("column", target, names, " for a target", whose)
    found = [name for name in names if name in also]
    found = found or [name for name in names if name.lower() in TARGET_NAMES]
    if len(found) > 1:
        raise DataError(
            f"which is the target: {' or '.join(map(printable, found))}? Name it with ",
            Setting("target", "NAME"),
            ".",
        )
    return found[0] if found else None


def lacks(
    kind: str, name: str, known: Sequence[str], use: str = "", whose: str = "it"
) -> DataError:
    """The error for a name that no column, layer or array of a file has."""
    close = closest(name, known)
    hint = f"Its {kind}s are: {shortened(known) or 'none'}."
    if close is not None:
        hint = f"Did you mean {printable(close)}?"
    return DataError(f"{whose} has no {kind} {printable(name)}{use}. {hint}")


def shortened(names: Sequence[str], most: int = 20) -> str:
    """Names for a message; only the first ones if there are many."""
    shown = ", ".join(printable(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"

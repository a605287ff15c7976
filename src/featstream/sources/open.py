"""Opening any data set: its suffix tells the format."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from featstream.errors import ParameterError, printable
from featstream.sources.annotated import open_h5ad, open_zarr
from featstream.sources.dataset import (
    FOLDERS,
    Dataset,
    PathLike,
    existing,
    format_suffix,
)
from featstream.sources.npy import open_npy, open_npz
from featstream.sources.parquet import open_feature_table
from featstream.sources.plink import open_plink
from featstream.sources.store import open_store
from featstream.sources.svmlight import open_svmlight
from featstream.sources.tables import open_table


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
    drop_unlabelled: bool = False,
) -> Dataset:
    """Open a data set, whose kind the file's suffix tells.

    Parameters
    ----------
    path : str or path-like
        ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.parquet``, ``.feather``,
        ``.arrow``, ``.zarr``, ``.h5ad`` (AnnData), ``.bed`` (PLINK), ``.cols`` (a
        column store), or svmlight (``.svm``, ``.svmlight``, ``.libsvm``, ``.txt``);
        text files may end in ``.gz``, ``.xz``, ``.bz2`` or ``.zst``. Or a folder of
        such (`open_folder`).
    target : str, default=None
        Where the target is: the array in an ``.npz`` (by default ``y`` or
        ``y_train``) or in a group of ``.zarr``; the column of a table or of the
        ``obs`` of an ``.h5ad`` (by default the one called ``y``, ``target``,
        ``class`` or ``label``); for an ``.npy``, ``.npz``, ``.zarr``, ``.bed`` or a
        table of features the file that holds it, `FILE` or `FILE:COLUMN`. An
        svmlight file and a column store hold their own.
    layer : str, default=None
        Of an ``.h5ad`` the layer to read instead of ``X``; of a ``.zarr`` group the
        array.
    orient : {"samples", "features"}, default="samples"
        What a row of a ``.parquet`` file is; see `open_feature_table`.
    missing : {"error", "mode", "category"}, default="error"
        What to do about missing genotypes; see `open_plink`.
    duplicates : {"error", "number"}, default="error"
        What to do about two features of one name: refuse them, or call the second
        one ``name#2``.
    separator : str, default=None
        What stands between the values of a ``.csv`` or ``.tsv``; by default found in
        its first lines.
    na_values : str or list of str, default=None
        Values of a table that mean a missing one, besides the usual; see
        `open_table`.
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
        "duplicates": duplicates,
    }
    if _is_folder_of_files(path):
        from featstream.sources.chain import open_folder

        return open_folder(path, target, drop_unlabelled=drop_unlabelled, **options)
    from featstream.sources.chain import labelled

    return labelled(open_one(path, target, options), path, is_wanted=drop_unlabelled)


def open_features(
    path: PathLike,
    target_names: Collection[str] = (),
    *,
    drop_unlabelled: bool = False,
    **options: Any,
) -> Dataset:
    r"""Open a data set that need not have a target.

    Parameters
    ----------
    path : str or path-like
        As for `open_dataset`.
    target_names : collection of str
        Columns of a table that are the target if they are there, besides ``y``,
        ``target``, ``class`` and ``label``. Any other column is a feature.
    drop_unlabelled, **options
        As for `open_dataset`.

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
    if _is_folder_of_files(path):
        from featstream.sources.chain import open_folder

        return open_folder(
            path, optional=target_names, drop_unlabelled=drop_unlabelled, **options
        )
    from featstream.sources.chain import labelled

    dataset = open_one(path, None, options, target_names)
    return labelled(dataset, path, is_wanted=drop_unlabelled)


def is_svmlight(path: PathLike) -> bool:
    """Whether a file is svmlight text, by its suffix.

    >>> is_svmlight("news20.svm.gz"), is_svmlight("news20.csv")
    (True, False)
    """
    return format_suffix(path) in SVMLIGHT


def takes_target_file(path: PathLike, orient: str | None = None) -> bool:
    """Whether the target of a data set may be in a file of its own."""
    kind = FORMATS.get(format_suffix(path))
    is_table = format_suffix(path) == ".parquet" and orient != "features"
    return kind is not None and kind.takes_file and not is_table


def _is_folder_of_files(path: PathLike) -> bool:
    return os.path.isdir(path) and format_suffix(path) not in FOLDERS


def open_one(
    path: PathLike,
    target: str | None,
    options: dict[str, Any],
    optional: Collection[str] | None = None,
) -> Dataset:
    """Open what is not a folder of files; see `open_table` for ``optional``."""
    path = existing(path)
    suffix = format_suffix(path)
    if suffix not in FORMATS:
        raise ParameterError(
            f"Cannot tell what kind of file {printable(path)} is from its suffix "
            f"{printable(suffix)}. Known: {', '.join(FORMATS)}; text also as .gz, .xz, "
            ".bz2 or .zst."
        )
    kind = FORMATS[suffix]
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name not in kind.options:
            others = [other for other in FORMATS if name in FORMATS[other].options]
            raise ParameterError(
                f"`{name}` has no meaning for {suffix} files; it is for "
                f"{' and '.join(others)}. Got {name}={value!r} for {path}."
            )
    if optional is not None and kind.may_look:
        return kind.open(path, None, optional=optional, **given)
    return kind.open(path, target, **given)


def open_cols(path: PathLike, target: str | None = None) -> Dataset:
    """Open a column store; see `featstream.sources.open_store`."""
    if target is not None:
        raise ParameterError(
            f"A column store holds its own target. Got target={target!r} for {path}."
        )
    store = open_store(path)
    return Dataset(store, store.y, store.names)


def _open_parquet(
    path: PathLike,
    target: str | None = None,
    *,
    orient: str = "samples",
    optional: Collection[str] | None = None,
    na_values: str | Iterable[str] | None = None,
) -> Dataset:
    if orient not in ("samples", "features"):
        raise ParameterError(
            f"`orient` must be 'samples' or 'features', what a row is. Got {orient!r}."
        )
    if orient == "samples":
        return open_table(path, target, optional=optional, na_values=na_values)
    if na_values is not None:
        raise ParameterError(
            "`na_values` is for tables with one row per sample, not orient='features'. "
            f"Got {na_values!r} for {path}. Write nulls in the file."
        )
    return open_feature_table(path, target)


class Format(NamedTuple):
    """How files of a kind are opened."""

    open: Callable[..., Dataset]
    options: tuple[str, ...] = ()
    may_look: bool = False  # whether `open` takes ``optional``, as `open_table` does
    takes_file: bool = False  # whether the target may be a file of its own


SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".txt")

FORMATS = {
    ".cols": Format(open_cols),
    ".npy": Format(open_npy, takes_file=True),
    ".npz": Format(open_npz, ("duplicates",), takes_file=True),
    ".csv": Format(open_table, ("separator", "na_values"), may_look=True),
    ".tsv": Format(open_table, ("separator", "na_values"), may_look=True),
    ".parquet": Format(
        _open_parquet, ("orient", "na_values"), may_look=True, takes_file=True
    ),
    ".feather": Format(open_table, ("na_values",), may_look=True),
    ".arrow": Format(open_table, ("na_values",), may_look=True),
    ".zarr": Format(open_zarr, ("layer", "duplicates"), may_look=True, takes_file=True),
    ".h5ad": Format(open_h5ad, ("layer", "duplicates"), may_look=True),
    ".bed": Format(open_plink, ("missing", "duplicates"), takes_file=True),
    **dict.fromkeys(SVMLIGHT, Format(open_svmlight)),
}

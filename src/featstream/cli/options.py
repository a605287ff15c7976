"""The flags that say where data are, the same for every command that reads them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["OPTIONS", "add_data", "add_data_options", "chosen_options", "found_again"]

OPTIONS = ("layer", "orient", "missing")
"""Named parameters of `featstream.sources.open_dataset`."""


def add_data(command: argparse.ArgumentParser) -> None:
    """Add the file, and how it is read."""
    command.add_argument(
        "data",
        metavar="FILE",
        help=".npz, .npy, .csv, .parquet, .zarr, .h5ad, .bed, svmlight or .cols; or a "
        "folder of such",
    )
    add_data_options(command)


def add_data_options(command: argparse.ArgumentParser) -> None:
    """Add how a file is read."""
    command.add_argument(
        "--target",
        metavar="NAME",
        help="the array (.npz, .zarr) or column (table, obs of .h5ad) of the target; "
        "or the file that holds it, FILE or FILE:COLUMN (.npy, .zarr, .bed, "
        "--orient features)",
    )
    command.add_argument(
        "--layer", metavar="NAME", help="layer of .h5ad, or array of .zarr (default: X)"
    )
    command.add_argument(
        "--orient",
        choices=("samples", "features"),
        help="what a row of .parquet is (default: samples)",
    )
    command.add_argument(
        "--missing",
        choices=("error", "mode", "category"),
        help="what to do about missing genotypes of .bed (default: error)",
    )


def chosen_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `open_dataset` that were given, besides path and target."""
    given = {name: getattr(arguments, name) for name in OPTIONS}
    return {name: value for name, value in given.items() if value is not None}


def found_again(
    data: str, target: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """How a run finds its data again, from another folder as well."""
    if target is not None:
        file, colon, column = target.rpartition(":")
        if Path(target).exists():
            target = os.path.abspath(target)
        elif colon and Path(file).is_file():
            target = f"{os.path.abspath(file)}:{column}"
    return {"path": os.path.abspath(data), "target": target, **options}

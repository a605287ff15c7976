"""The flags of the command line that put features into groups.

Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from featstream.sources import Dataset

__all__ = ["add_group_flags", "read_told_groups", "tell_groups"]


def add_group_flags(command: argparse.ArgumentParser) -> None:
    """Let a command take groups."""
    command.add_argument(
        "--groups",
        metavar="FILE",
        help="groups: one label a line, or a CSV of feature and group",
    )
    command.add_argument(
        "--group-size", type=int, metavar="K", help="groups of K features in order"
    )
    command.add_argument(
        "--group-by", metavar="REGEX", help="group by what this finds in the names"
    )


def tell_groups(
    arguments: argparse.Namespace, n_before: int = 0
) -> dict[str, Any] | None:
    """The groups as a run remembers them; None if there are no such flags.

    ``n_before`` groups have come before: those of ``--group-size`` are numbered.
    """
    path = arguments.groups
    if (path, arguments.group_size, arguments.group_by) == (None, None, None):
        return None
    return {
        "path": None if path is None else os.path.abspath(path),
        "size": arguments.group_size,
        "pattern": arguments.group_by,
        "first": n_before,
    }


def read_told_groups(told: Any, dataset: Dataset) -> Any:
    """The groups of the features of some data."""
    from featstream.errors import RunError
    from featstream.groups import read_groups

    kinds = {"path": str, "pattern": str, "size": int, "first": int}
    if (
        not told
        or type(told) is not dict
        or any(
            type(told.get(name)) not in (kind, type(None))
            for name, kind in kinds.items()
        )
    ):
        raise RunError(
            "The run does not say how to find its groups. Name them with --groups, "
            "--group-size or --group-by."
        )
    return read_groups(
        told.get("path"),
        size=told.get("size"),
        pattern=told.get("pattern"),
        names=dataset.names,
        n_features=dataset.source.n_features,
        first=told.get("first") or 0,
    )

"""What must be the same for a run to go on: parameters, target, data, groups."""

from __future__ import annotations

from typing import Any

from featstream.errors import RunError, printable
from featstream.runs.folder import RunFolder, Saved

__all__ = ["refuse_difference", "refuse_other_source", "refuse_other_target"]


def refuse_difference(mine: dict[str, Any], saved: Saved, folder: RunFolder) -> None:
    """Raise unless the run was begun by the same selector on the same target."""
    theirs = saved.description
    where = f"The run {folder.path}"
    if mine["selector"] != theirs["selector"]:
        raise RunError(
            f"{where} is one of {printable(theirs['selector'])}, not of "
            f"{mine['selector']}. Choose another folder."
        )
    for name in sorted({*mine["parameters"], *theirs["parameters"]} - {"n_jobs"}):
        one, other = mine["parameters"].get(name), theirs["parameters"].get(name)
        if one != other:
            raise RunError(
                f"{where} has {name}={_shown(other)}; here it is {_shown(one)}. Use "
                "the same parameters, or another folder."
            )
    refuse_other_target(theirs, mine, where)


def refuse_other_target(
    theirs: dict[str, Any], mine: dict[str, Any], where: str
) -> None:
    """Raise unless two descriptions have the same target."""
    if mine["n_samples"] != theirs["n_samples"]:
        raise RunError(
            f"{where} has {theirs['n_samples']:,} samples; here are "
            f"{mine['n_samples']:,}."
        )
    if mine["y_fingerprint"] != theirs["y_fingerprint"]:
        raise RunError(
            f"y differs from the y that {where[0].lower()}{where[1:]} was started "
            "with. Use the same target, or another folder."
        )


def refuse_other_source(saved: dict[str, Any], told: dict[str, Any]) -> None:
    """Raise unless a source is the one that a run was reading, in the same groups."""
    found = _difference(saved, told, _OF_DATA)
    if found is not None:
        raise RunError(
            f"This is another data set than the run was reading: {found}. Give the "
            "one it began with."
        )
    theirs, mine = saved.get("groups"), told.get("groups")
    if isinstance(theirs, dict) and isinstance(mine, dict):
        found = _difference(theirs, mine, _OF_GROUPS)
        if found is not None:
            raise RunError(
                f"These are other groups than the run was reading: {found}. Give the "
                "ones it began with."
            )


def is_same_source(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two descriptions are of the same data in the same groups."""
    groups = one.get("groups") or {}, other.get("groups") or {}
    return (
        _difference(one, other, _OF_DATA) is None
        and _difference(*groups, _OF_GROUPS) is None
    )


_OF_DATA = {
    "n_samples": "the number of samples",
    "n_features": "the number of features",
    "fingerprint": "the fingerprint",
    "sample": "the checksum of some columns",
}
_OF_GROUPS = {
    "kind": "how they are given",
    "n_groups": "their number",
    "fingerprint": "the checksum of labels and members",
}


def _difference(
    saved: dict[str, Any], told: dict[str, Any], words: dict[str, str]
) -> str | None:
    for name, word in words.items():
        one, other = saved.get(name), told.get(name)
        if one is not None and other is not None and one != other:
            return f"{word} was {_short(one)} and is {_short(other)}"
    return None


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)[:24]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        options = value.get("parameters", {})
        told = ", ".join(f"{key}={option!r}" for key, option in options.items())
        return f"{value.get('measure')}({told})"
    return repr(value)

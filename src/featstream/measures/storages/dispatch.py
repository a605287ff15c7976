"""What Algorithms 1 and 2 ask about two columns, whatever their storage.

The walk is written once. How two columns overlap, and where a kept one is copied
to, follows from the type of the columns: each function here calls the one that
their storage registered, at compile time where kernels are compiled. Who of two
columns wins depends on their scores alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import overload

from featstream.errors import DataTypeError
from featstream.jit import INNER, inner, plain
from featstream.protocols import Storage

NEITHER, EARLIER, LATER = 0, 1, 2


class Rule(NamedTuple):
    """The options of Algorithms 1 and 2, as the kernels want them.

    Attributes
    ----------
    uses_max_bound : bool
        SAOLA-max: overlap must reach the larger of the two relevances.
    needs_excess : bool
        Overlap must exceed its bound instead of reaching it.
    tie_winner : int
        Which of two equally relevant features may remove the other: `NEITHER`,
        the `EARLIER` or the `LATER`.
    is_deferred : bool
        A newcomer that is discarded displaces nothing.
    limit : int
        Keep at most this number of features.
    """

    uses_max_bound: bool
    needs_excess: bool
    tie_winner: int
    is_deferred: bool
    limit: int


@inner
def who_wins(kept_score, score, rule):
    """Which one stays if a kept feature and a newcomer overlap enough.

    The more relevant one (Steps 11 and 16 of Algorithm 1), `EARLIER` being the kept
    one and `LATER` the newcomer.
    """
    if kept_score == score:
        return rule.tie_winner
    return EARLIER if kept_score > score else LATER


@inner
def bound_of(score_a, score_b, rule):
    """What the overlap of two features has to reach for one to remove the other."""
    return max(score_a, score_b) if rule.uses_max_bound else min(score_a, score_b)


@inner
def reaches(value, score_a, score_b, rule):
    """Whether an overlap is enough for that."""
    bound = bound_of(score_a, score_b, rule)
    return value > bound if rule.needs_excess else value >= bound


_STORAGES: dict[type, Storage] = {}


def register_storage(storage: Storage) -> Storage:
    """Make a storage known by the type of its columns."""
    _STORAGES[storage.columns] = storage
    return storage


def storage_of(columns: Any) -> Storage:
    """The storage of some columns."""
    storage = _STORAGES.get(type(columns))
    if storage is None:
        raise DataTypeError(
            f"Columns of type {type(columns).__name__} have no storage. A measure's "
            "columns() returns columns of a storage, for example PairColumns."
        )
    return storage


def storage_named(name: str) -> Storage | None:
    """The storage that has this name, or had it, in run folders."""
    for storage in _STORAGES.values():
        if name in (storage.name, *storage.old_names):
            return storage
    return None


def for_storage(kernel: Any, columns: Any) -> Any:
    """The kernel as it is, or as plain Python for storages that are not compiled."""
    return kernel if storage_of(columns).is_compiled else plain(kernel)


def overlap(new, i, kept, slot, is_listed, scratch):
    """Score of column ``i``, which is loaded, with a kept one.

    With ``is_listed``, from what `list_candidates` has gathered.
    """
    return storage_of(new).overlap(new, i, kept, slot, is_listed, scratch)


@overload(overlap, jit_options=INNER)
def _(new, i, kept, slot, is_listed, scratch):
    return _STORAGES[new.instance_class].overlap


def load_newcomer(new, i, scratch):
    """Spread column ``i`` over the scratch buffers, before it is compared."""
    storage_of(new).load_newcomer(new, i, scratch)


@overload(load_newcomer, jit_options=INNER)
def _(new, i, scratch):
    return _STORAGES[new.instance_class].load_newcomer


def unload_newcomer(new, i, scratch):
    """Clear the buffers that `load_newcomer` used."""
    storage_of(new).unload_newcomer(new, i, scratch)


@overload(unload_newcomer, jit_options=INNER)
def _(new, i, scratch):
    return _STORAGES[new.instance_class].unload_newcomer


def has_room(new, i, kept):
    """Whether the pools of the kept features can take column ``i``."""
    return storage_of(new).has_room(new, i, kept)


@overload(has_room, jit_options=INNER)
def _(new, i, kept):
    return _STORAGES[new.instance_class].has_room


def copy_column(new, i, kept, slot, used):
    """Copy column ``i`` into the pools of ``kept``, as its column ``slot``."""
    storage_of(new).copy_column(new, i, kept, slot, used)


@overload(copy_column, jit_options=INNER)
def _(new, i, kept, slot, used):
    return _STORAGES[new.instance_class].copy_column


def list_candidates(new, i, score, kept, rule):
    """List the kept columns that can matter to a newcomer, in order of arrival.

    Returns the length of ``kept.index.shortlist``, or -1 if all can matter.
    """
    return storage_of(new).list_candidates(new, i, score, kept, rule)


@overload(list_candidates, jit_options=INNER)
def _(new, i, score, kept, rule):
    return _STORAGES[new.instance_class].list_candidates


def end_walk(new, kept, witness):
    """Clear the list, and learn from where the walk ended."""
    storage_of(new).end_walk(new, kept, witness)


@overload(end_walk, jit_options=INNER)
def _(new, kept, witness):
    return _STORAGES[new.instance_class].end_walk


def enter_index(columns, index, slot, score):
    """Enter a kept column into the index."""
    storage_of(columns).enter_index(columns, index, slot, score)


@overload(enter_index, jit_options=INNER)
def _(columns, index, slot, score):
    return _STORAGES[columns.instance_class].enter_index


def leave_index(columns, index, slot):
    """Take a kept column out of the index."""
    storage_of(columns).leave_index(columns, index, slot)


@overload(leave_index, jit_options=INNER)
def _(columns, index, slot):
    return _STORAGES[columns.instance_class].leave_index


def clear_index(columns, kept):
    """Take all columns out of the index."""
    storage_of(columns).clear_index(columns, kept)


@overload(clear_index, jit_options=INNER)
def _(columns, kept):
    return _STORAGES[columns.instance_class].clear_index

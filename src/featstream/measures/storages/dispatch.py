"""What Algorithms 1 and 2 ask about two columns, whatever their storage.

The algorithms are written once. The type of the columns decides which functions compare
and copy them, and the type of the rule decides how redundancy is tested.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from featstream.errors import DataTypeError
from featstream.jit import by_types, inner, plain
from featstream.protocols import Storage

NEITHER, EARLIER, LATER = 0, 1, 2


class Rule(NamedTuple):
    """The options of Algorithms 1 and 2 with the paper's bound, for the kernels.

    The bound of an overlap is the smaller of two relevances or, if ``uses_max_bound``,
    the larger one; the overlap must reach it or, if ``needs_excess``, exceed it.
    ``tie_winner`` may remove the other of two equally relevant features, and
    ``displacer`` a kept feature that is less relevant: `LATER`, or `NEITHER` if kept
    features always stay. If ``is_deferred``, a newcomer that is discarded displaces no
    kept feature. At most ``limit`` features are kept.
    """

    uses_max_bound: bool
    needs_excess: bool
    tie_winner: int
    displacer: int
    is_deferred: bool
    limit: int


class ConditionalRule(NamedTuple):
    """The same options with a conditional test in place of the bound.

    A feature is redundant if its p-value, given a more relevant one, is above
    ``alpha``: if the statistic does not exceed ``critical[df]``. ``target`` is what the
    storage needs to know of the target.
    """

    tie_winner: int
    displacer: int
    is_deferred: bool
    limit: int
    alpha: float
    critical: np.ndarray
    target: Any


class NoIndex(NamedTuple):
    """The fields of an index that a walk reads, where there is no index."""

    shortlist: np.ndarray
    common: np.ndarray
    product: np.ndarray
    mean_walk: np.ndarray


def no_index() -> NoIndex:
    """For short walks, and for storages that never have an index."""
    shortlist, common = np.zeros(0, np.int32), np.zeros(0, np.int64)
    return NoIndex(shortlist, common, np.zeros(0), np.zeros(2))


@inner
def who_wins(kept_score, score, rule):
    """Whether a kept feature (`EARLIER`) or a newcomer (`LATER`) may remove the other.

    It is the more relevant one: Steps 11 and 16 of Algorithm 1.
    """
    if kept_score == score:
        return rule.tie_winner
    return EARLIER if kept_score > score else rule.displacer


@inner
def bound_of(score_a, score_b, rule):
    """The overlap from which one of two features can remove the other."""
    return max(score_a, score_b) if rule.uses_max_bound else min(score_a, score_b)


@inner
def reaches(value, score_a, score_b, rule):
    """Whether an overlap is large enough for one feature to remove the other."""
    bound = bound_of(score_a, score_b, rule)
    return value > bound if rule.needs_excess else value >= bound


_STORAGES: dict[type, Storage] = {}


def register_storage(storage: Storage) -> Storage:
    """Make a storage known by the type of its columns."""
    _STORAGES[storage.columns] = storage
    return storage


def storage_from(module: dict[str, Any], **own: Any) -> Storage:
    """Register the storage whose functions are named like fields, with ``_`` before."""
    names = Storage.__dataclass_fields__
    functions = {name: module[f"_{name}"] for name in names if f"_{name}" in module}
    return register_storage(Storage(**functions, **own))


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
    """The storage that has, or once had, this name in run folders."""
    for storage in _STORAGES.values():
        if name in (storage.name, *storage.old_names):
            return storage
    return None


def empty(like: Any, **sizes: int) -> Any:
    """The same columns with the named arrays replaced by zeros, of these lengths."""
    arrays = {}
    for name, size in sizes.items():
        array = getattr(like, name)
        arrays[name] = np.zeros((size, *array.shape[1:]), array.dtype)
    return like._replace(**arrays)


def for_storage(kernel: Any, columns: Any) -> Any:
    """The kernel, or the same as plain Python for storages that are not compiled."""
    return kernel if storage_of(columns).is_compiled else plain(kernel)


def _by_storage(name: str) -> Any:
    """A function that calls the function of this name of its columns' storage.

    Functions of an index do nothing where there is none.
    """
    default = Storage.__dataclass_fields__[name].default
    arguments = list(signature(default).parameters) if callable(default) else []
    place = arguments.index("index") if "index" in arguments else 0

    def choose(*kinds: Any) -> Any:
        has_none = kinds[place] is NoIndex
        return default if has_none else getattr(_STORAGES[kinds[0]], name)

    return by_types(choose)


def by_rule(bound: Any, conditional: Any) -> Any:
    """A function that calls one of two, by the type of its argument ``rule``."""
    place = list(signature(bound).parameters).index("rule")
    kinds = {Rule: bound, ConditionalRule: conditional}
    return by_types(lambda *given: kinds[given[place]])


overlap = _by_storage("overlap")
is_independent = _by_storage("is_independent")
load_newcomer = _by_storage("load_newcomer")
unload_newcomer = _by_storage("unload_newcomer")
has_room = _by_storage("has_room")
copy_column = _by_storage("copy_column")
list_candidates = _by_storage("list_candidates")
end_walk = _by_storage("end_walk")
enter_index = _by_storage("enter_index")
leave_index = _by_storage("leave_index")
clear_index = _by_storage("clear_index")
fill_classes = _by_storage("fill_classes")
decode_column = _by_storage("decode_column")

"""Runs that somebody has forged, checksums included: refused, or without harm.

Damage is found by the checksums. What is left is that no kernel reads outside its
arrays: after a forged state an error of any kind will do, but no crash.
"""

import contextlib
import warnings

import numpy as np
import pytest
from fuzz import runs
from scipy import sparse

import featstream
from featstream.errors import RunError
from featstream.runs.arrays import Declared, check_arrays

pytestmark = pytest.mark.jit_only

each_form = pytest.mark.parametrize(
    ("kind", "form"),
    [*((kind, np.asarray) for kind in runs.KINDS)]
    + [(kind, sparse.csc_array) for kind in runs.PAIRWISE],
)


def is_refused(folder):
    """Whether a run cannot be resumed; if it can, its selector is used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            selector = featstream.resume(folder)
        except RunError:
            return True
        with contextlib.suppress(Exception):
            runs.go_on(selector)
        return False


def other_values(array, rng):
    """The same array with values that it does not have."""
    if array.dtype.kind == "f":
        yield from (array * -1, np.full_like(array, np.finfo(array.dtype).max))
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        yield from (np.full_like(array, value) for value in (info.max, info.min, 0))
        yield array + array.dtype.type(1)
    yield rng.permutation(array.ravel()).reshape(array.shape)


@each_form
def test_forged_values_are_refused_or_harmless(kind, form, tmp_path):
    """Arrays of another type or shape, and those that are missing, are refused."""
    runs.save_run(kind, tmp_path, form(runs.small_data()[0]))
    arrays, rng = runs.arrays_of_run(tmp_path), np.random.default_rng(0)
    assert not is_refused(tmp_path)
    for name, array in arrays.items():
        for changed in other_values(array, rng):
            runs.reseal(tmp_path, arrays | {name: changed})
            is_refused(tmp_path)
        if name in ("y", "y_ends", "positions"):
            continue  # numbers of any type are a target; the others are optional
        other = np.int8 if array.dtype.kind == "f" else np.float32
        for changed in (array.astype(other), array[None]):
            runs.reseal(tmp_path, arrays | {name: changed})
            assert is_refused(tmp_path), name
        runs.reseal(tmp_path, {key: a for key, a in arrays.items() if key != name})
        assert is_refused(tmp_path) or name == "kept/arrival", name


@pytest.mark.parametrize(
    ("array", "declared"),
    [
        (np.array([0, 5]), Declared(np.int64, ("k",), 0, "n")),
        (np.array([-1, 0]), Declared(np.int64, ("k",), 0, "n")),
        (np.array([0, 1]), Declared(np.int64, ("n",))),
        (np.array([0, 1]), Declared(np.int32)),
        (np.array([0.0, np.nan]), Declared(np.float64)),
        (np.array([1, 2], np.uint8).view(bool), Declared(np.bool_)),
        (np.zeros((2, 2)), Declared(np.float64)),
        (None, Declared(np.float64)),
    ],
)
def test_an_array_is_what_the_table_declares(array, declared):
    arrays = {} if array is None else {"a": array}
    with pytest.raises(RunError, match=r"a is missing|a has"):
        check_arrays(arrays, {"a": declared}, n=5)


@pytest.mark.parametrize(
    "change",
    [
        lambda ends: np.append(ends[:-1], ends[-1] - 1),
        lambda ends: np.append(ends[:-1], ends[-1] + 1),
        lambda ends: ends[:-1],
        lambda ends: ends[:0],
        lambda ends: np.append(ends, ends[-1] + 1),
    ],
)
def test_groups_that_do_not_end_where_the_features_do_are_refused(change, tmp_path):
    """Also if their fates and sizes are as many as their ends."""
    runs.save_run("groups", tmp_path, runs.small_data()[0])
    arrays = runs.arrays_of_run(tmp_path)
    ends = change(arrays["kept/group_ends"])
    forged = arrays | {"kept/group_ends": ends}
    for name in ("kept/group_fates", "kept/group_n_kept"):
        forged[name] = np.resize(arrays[name], ends.size)
    runs.reseal(tmp_path, forged)
    with pytest.raises(RunError, match="group"):
        featstream.resume(tmp_path)


FACTS = [
    {"n_seen": 11},
    {"n_seen": -1},
    {"measure": "nothing"},
    {"is_sparse": "no"},
    {"n_features": 2},
    {"selector": "OnlineSelector"},
    {"selector": "OFS"},
    {"parameters": {"measure": {"measure": "os.system", "parameters": {}}}},
    {"parameters": {"nonsense": 1}},
    {"sources": [{"begin": 99, "is_done": True}]},
    {"sources": 7},
]


@pytest.mark.parametrize("kind", runs.KINDS)
def test_a_forged_description_is_refused_or_harmless(kind, tmp_path):
    runs.save_run(kind, tmp_path, runs.small_data()[0])
    original = (tmp_path / "run.json").read_bytes()
    for facts in FACTS:
        (tmp_path / "run.json").write_bytes(original)
        runs.reseal(tmp_path, facts=facts)
        is_refused(tmp_path)
    (tmp_path / "run.json").write_bytes(original)
    assert not is_refused(tmp_path)


def test_a_run_that_stopped_inside_a_group_is_refused(tmp_path):
    """Groups are consumed whole."""
    X, _ = runs.small_data()
    runs.save_run("groups", tmp_path, X)
    runs.reseal(tmp_path, facts={"sources": [{"begin": 0, "is_done": False}]})
    odd = np.repeat(list("abcde"), [3, 3, 2, 3, 1])
    with pytest.raises((RunError, ValueError)):
        featstream.resume(tmp_path).consume(np.hstack([X, X]), groups=[*odd, *odd])

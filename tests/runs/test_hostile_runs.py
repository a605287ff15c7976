"""Runs that somebody has tampered with: an error that says so, or a whole selector."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
from fuzz.runs import (
    KINDS,
    PAIRWISE,
    arrays_of_run,
    go_on,
    reseal,
    save_run,
    small_data,
)
from scipy import sparse

import checks
import featstream
from featstream.errors import FeatstreamError, RunError

pytestmark = pytest.mark.jit_only


each_form = pytest.mark.parametrize(
    ("kind", "form"),
    [*((kind, np.asarray) for kind in KINDS)]
    + [(kind, sparse.csc_array) for kind in PAIRWISE],
)


def resumed(folder):
    """A selector that works, or None if the run was refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            selector = featstream.resume(folder)
        except RunError:
            return None
        with contextlib.suppress(FeatstreamError):
            go_on(selector)
        return selector


def other_values(array, rng):
    """The same array with values that it does not have."""
    if array.dtype == bool:
        yield ~array
        return
    if array.dtype.kind == "f":
        yield array * -1
        yield array + 1
        yield np.full_like(array, np.finfo(array.dtype).max)
        yield np.full_like(array, np.nan)
        yield np.full_like(array, np.inf)
    else:
        info = np.iinfo(array.dtype)
        yield np.full_like(array, info.max)
        yield np.full_like(array, info.min)
        yield np.zeros_like(array)
        changed = array.copy()
        if changed.size:
            place = tuple(rng.integers(0, n) for n in changed.shape)
            changed[place] = rng.choice([0, 1, 7, 100])
        yield changed
    yield rng.permutation(array.ravel()).reshape(array.shape)


@each_form
def test_other_values_are_refused_or_harmless(kind, form, tmp_path):
    save_run(kind, tmp_path, form(small_data()[0]))
    arrays, rng = arrays_of_run(tmp_path), np.random.default_rng(0)
    assert resumed(tmp_path) is not None
    n_refused = n_tried = 0
    for name, array in arrays.items():
        for changed in other_values(array, rng):
            if np.array_equal(changed, array):
                continue
            reseal(tmp_path, arrays | {name: changed})
            n_refused += resumed(tmp_path) is None
            n_tried += 1
    assert n_refused > n_tried // 2


@each_form
def test_arrays_that_are_no_such_arrays_are_refused(kind, form, tmp_path):
    save_run(kind, tmp_path, form(small_data()[0]))
    arrays = arrays_of_run(tmp_path)
    for name, array in arrays.items():
        rest = {other: a for other, a in arrays.items() if other != name}
        odd = [
            array.astype(np.int8 if array.dtype.kind == "f" else np.float32),
            array[None] if array.ndim == 1 else array.ravel(),
            np.concatenate([array, array]) if array.size else np.zeros(3, array.dtype),
        ]
        if array.size:
            odd.append(array[:-1])
        for changed in odd:
            reseal(tmp_path, rest | {name: changed})
            found = resumed(tmp_path)
            assert found is None or name == "y"  # numbers of another type are numbers
        reseal(tmp_path, rest)
        found = resumed(tmp_path)
        assert found is None or name in OPTIONAL


OPTIONAL = {"positions", "y_ends"}
"""Without these a run may still make sense."""


FACTS = [
    {"n_seen": 11},
    {"n_seen": 13},
    {"measure": "nothing"},
    {"measure": None},
    {"measure": 3},
    {"is_sparse": None},
    {"is_sparse": "no"},
    {"n_samples": -1},
    {"n_features": 2**40},
    {"n_features": 2},
    {"y_fingerprint": "0"},
    {"selector": "OnlineSelector"},
    {"selector": "_ConditionalSelector"},
    {"selector": "SelectorMixin"},
    {"selector": "SAOLA"},
    {"selector": "OGFS"},
    {"selector": "OFS"},
    {"selector": "Grafting"},
    {"parameters": {}},
    {"parameters": {"measure": {"measure": "os.system", "parameters": {}}}},
    {"parameters": {"test": {"measure": "GTest", "parameters": {"alpha": "x"}}}},
    {"parameters": {"nonsense": 1}},
    {"arrives": "rows"},
    {"arrives": "features"},
    {"sources": [{"begin": 99, "is_done": True}]},
    {"sources": [{"begin": 3, "is_done": False}]},
    {"sources": []},
]


@pytest.mark.parametrize("kind", KINDS)
def test_other_facts_are_refused_or_harmless(kind, tmp_path):
    save_run(kind, tmp_path, small_data()[0])
    whole = checks.state(featstream.resume(tmp_path))
    original = (tmp_path / "run.json").read_bytes()
    for facts in FACTS:
        (tmp_path / "run.json").write_bytes(original)
        reseal(tmp_path, facts=facts)
        resumed(tmp_path)
    (tmp_path / "run.json").write_bytes(original)
    assert checks.state(featstream.resume(tmp_path)) == whole


def test_a_run_that_stopped_inside_a_group_is_refused(tmp_path):
    """Whatever the checksums say: groups are taken in whole."""
    X, _ = small_data()
    save_run("groups", tmp_path, X)
    source = {"begin": 0, "is_done": False}
    for facts in ({"sources": [source]}, {"sources": [source], "n_seen": 12}):
        reseal(tmp_path, facts=facts)
        odd = np.repeat(list("abcde"), [3, 3, 2, 3, 1])
        selector = featstream.resume(tmp_path)
        with pytest.raises((RunError, ValueError)):
            selector.consume(np.hstack([X, X]), groups=[*odd, *odd])


def test_scattered_features_cannot_change_places(tmp_path):
    X, _ = small_data()
    save_run("scattered", tmp_path, X)
    arrays = arrays_of_run(tmp_path)
    order = arrays["positions"]
    assert sorted(order.tolist()) == list(range(12))
    for bad in (order + 1, np.zeros_like(order), np.append(order, 12).astype(np.int32)):
        reseal(tmp_path, arrays | {"positions": bad})
        with pytest.raises(RunError, match="features are not where they can be"):
            featstream.resume(tmp_path)

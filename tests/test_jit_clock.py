"""Compilation: said while it happens, and left out of the time of a selection."""

import logging
import time

import numba
import numpy as np
import pytest

from featstream import SAOLA
from featstream.parallel import CompileClock, clock, compile_clock


@pytest.mark.jit_only
def test_the_clock_stands_still_while_a_kernel_is_compiled():
    def add_all(values):
        total = 0.0
        for value in values:
            total += value
        return total

    before, began, now = compile_clock.seconds, time.perf_counter(), clock()
    numba.njit(add_all)(np.ones(3))
    compiled = compile_clock.seconds - before
    assert compiled > 0
    assert clock() - now <= time.perf_counter() - began - compiled + 0.01


def test_overlapping_compilations_count_once_and_are_announced_once():
    watch, calls = CompileClock(), []
    watch.on_first = lambda: calls.append("first")
    watch.on_start(None)
    watch.on_start(None)
    time.sleep(0.02)
    watch.on_end(None)
    assert watch.seconds >= 0.02
    watch.on_end(None)
    total = watch.seconds
    assert 0.02 <= total < 2 * 0.02 + 0.5
    time.sleep(0.01)
    assert watch.seconds == total
    watch.on_start(None)
    watch.on_end(None)
    assert calls == ["first"]


def test_the_first_compilation_is_logged(caplog, monkeypatch):
    import featstream.selectors.base as base

    monkeypatch.setattr(compile_clock, "on_first", base.announce_compilation)
    with caplog.at_level(logging.INFO, logger="featstream"):
        compile_clock.on_start(None)
        compile_clock.on_end(None)
    assert "Compiling kernels" in caplog.text


def test_time_spent_on_compiling_is_not_the_selections(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    selector = SAOLA(measure="fisher-z").start(y)
    encode = selector._stream.measure.encode

    def slow(block):
        compile_clock.on_start(None)
        time.sleep(0.2)
        compile_clock.on_end(None)
        return encode(block)

    monkeypatch.setattr(selector._stream.measure, "encode", slow)
    began = time.perf_counter()
    selector.consume(X)
    selector.update(X[:, 0], name="again")
    assert selector.result_.seconds <= time.perf_counter() - began - 0.4

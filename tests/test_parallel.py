"""Threads, BLAS limits, interrupts, and a clock that leaves out compilation."""

import logging
import os
import signal
import threading
import time

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from featstream import SAOLA, jit
from featstream.engines import prepared_ahead
from featstream.jit import Compilation, compilation, kernel
from featstream.parallel import (
    clock,
    count_threads,
    single_blas,
    uninterrupted,
)
from featstream.selectors.base import announce_compilation


def test_no_more_is_read_ahead_than_two_per_thread():
    items = iter(range(100))
    prepared = prepared_ahead(items, lambda i: i, 3)
    next(prepared)
    assert next(items) == 6
    prepared.close()


def test_one_thread_is_the_callers_own():
    names = prepared_ahead(iter("ab"), lambda _: threading.current_thread().name, 1)
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize("wrong", [0, 1.5, True, "two"])
def test_a_wrong_number_of_threads_is_refused(wrong):
    with pytest.raises(ValueError, match="Use -1 for all cores"):
        count_threads(wrong)


def blas_limits():
    np.eye(2) @ np.eye(2)
    return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def test_products_use_many_threads_again_when_the_last_has_left():
    """Of two that overlap, the one who came first leaves first."""
    has_entered, may_leave = threading.Event(), threading.Event()

    def stay():
        with single_blas:
            has_entered.set()
            may_leave.wait(60)

    second = threading.Thread(target=stay)
    with threadpool_limits(2, user_api="blas"):
        with single_blas:
            second.start()
            assert has_entered.wait(60)
        assert blas_limits() == {1}
        may_leave.set()
        second.join()
        assert blas_limits() == {2}


def test_an_interrupt_waits_for_the_end_and_reaches_who_handled_it_before():
    heard, done = [], []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            assert not heard
            done.append("all")
        assert (done, heard) == (["all"], [signal.SIGINT])
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_only_cores_that_the_process_may_use_count(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert count_threads(-1) == 2
    assert count_threads(-2) == 1
    assert count_threads(None) == 1
    assert count_threads(7) == 7


@pytest.mark.jit_only
def test_the_clock_stands_still_while_a_kernel_is_compiled():
    total = kernel(lambda values: values.sum())
    before, began, now = compilation.seconds, time.perf_counter(), clock()
    assert total(np.ones(3)) == 3
    compiled = compilation.seconds - before
    assert compiled > 0
    assert clock() - now <= time.perf_counter() - began - compiled + 0.01
    before = compilation.seconds
    total(np.ones(4))
    assert compilation.seconds == before  # these types are known
    total(np.ones(4, np.float32))
    assert compilation.seconds > before


def test_overlapping_compilations_count_once():
    watch = Compilation()
    watch.add(1.0, 3.0)
    watch.add(2.0, 4.0)
    watch.add(2.5, 3.5)
    assert watch.seconds == 3.0
    watch.add(10.0, 10.5)
    assert watch.seconds == 3.5


def test_a_long_compilation_is_announced_once_and_a_short_one_is_not(monkeypatch):
    said = []
    watch = Compilation()
    watch.announce = lambda: said.append("compiling")
    with watch.announced():
        pass
    monkeypatch.setattr(jit, "_PATIENCE", 0.01)
    for _ in range(2):
        with watch.announced():
            time.sleep(0.1)
    assert said == ["compiling"]


@pytest.mark.jit_only
def test_kernels_of_others_are_not_announced_and_leave_ours_to_be(caplog, monkeypatch):
    monkeypatch.setattr(jit, "_PATIENCE", 0.0)
    monkeypatch.setattr(compilation, "announce", announce_compilation)
    with caplog.at_level(logging.INFO, logger="featstream"):
        numba.njit(lambda values: values.sum())(np.ones(3))
        assert "Compiling kernels" not in caplog.text
        kernel(lambda values: values.sum())(np.ones(3))
    assert "Compiling kernels" in caplog.text


def test_time_spent_on_compiling_is_not_the_selections(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    selector = SAOLA(measure="fisher-z").start(y)
    encode = selector._stream.measure.encode

    def slow(block):
        began = time.perf_counter()
        time.sleep(0.2)
        compilation.add(began, time.perf_counter())
        return encode(block)

    monkeypatch.setattr(selector._stream.measure, "encode", slow)
    began = time.perf_counter()
    selector.consume(X)
    selector.update(X[:, 0], name="again")
    assert selector.result_.seconds <= time.perf_counter() - began - 0.4

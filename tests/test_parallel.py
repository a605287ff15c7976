"""Preparing ahead in threads keeps the order and passes on errors."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from featstream.engines import prepared_ahead
from featstream.parallel import count_threads, single_blas, uninterrupted


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_items_come_in_order(n_threads):
    def slow_for_even(i):
        time.sleep(0.002 * (i % 2 == 0))
        return i

    prepared = prepared_ahead(iter(range(20)), slow_for_even, n_threads)
    assert list(prepared) == list(range(20))


def test_no_more_is_read_ahead_than_two_per_thread():
    read = []

    def items():
        for i in range(100):
            read.append(i)
            yield i

    prepared = prepared_ahead(items(), lambda i: i, 3)
    next(prepared)
    assert len(read) == 6
    prepared.close()


def test_one_thread_is_the_callers_own():
    names = prepared_ahead(iter("ab"), lambda _: threading.current_thread().name, 1)
    assert set(names) == {threading.current_thread().name}


def test_an_error_reaches_the_caller_in_its_turn():
    def fail_at_three(i):
        if i == 3:
            raise ValueError("three")
        return i

    got = []
    with pytest.raises(ValueError, match="three"):
        got.extend(prepared_ahead(iter(range(9)), fail_at_three, 2))
    prepared = prepared_ahead(iter(range(9)), fail_at_three, 2)
    assert [next(prepared) for _ in range(3)] == [0, 1, 2]


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

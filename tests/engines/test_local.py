"""Preparing ahead in threads keeps the order and passes on errors."""

from __future__ import annotations

import threading
import time

import pytest

from featstream.engines import count_threads, prepared_ahead


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_items_come_in_order(n_threads):
    def slow_for_even(i):
        time.sleep(0.002 * (i % 2 == 0))
        return i

    prepared = prepared_ahead(iter(range(20)), slow_for_even, n_threads)
    assert list(prepared) == list(range(20))


def test_no_more_is_read_ahead_than_two_a_thread():
    read = []

    def items():
        for i in range(100):
            read.append(i)
            yield i

    prepared = prepared_ahead(items(), lambda i: i, 3)
    next(prepared)
    assert len(read) == 7
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

"""When a run is saved."""

from types import SimpleNamespace

import pytest

from featstream.runs import session


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (1.0, [1, 64, 127, 190]),  # twenty times as long as the last one took
        (100.0, [100, 203]),
        (0.0, [1 + 4 * k for k in range(200)]),  # after each block, whatever it takes
    ],
)
def test_saving_to_a_slow_disk_takes_a_twentieth_of_the_time(
    monkeypatch, every, expected
):
    """A checkpoint takes three seconds, and each of 200 blocks takes one."""
    now, saved = 0.0, []

    def save(selector, run):
        nonlocal now
        saved.append(now)
        now += 3.0

    monkeypatch.setattr(session, "_save", save)
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: now))
    recorder = session.Recorder(SimpleNamespace(_run=object()), 0, every)
    for _ in range(200):
        now += 1.0
        recorder.after_block()
    assert saved == expected

"""Progress: what is shown, where, and how often."""

import io
import re
from contextlib import redirect_stderr

import numpy as np
import pytest

from crash_runs import narrow
from featstream import SAOLA, progress
from featstream.progress import (
    CellProgress,
    Progress,
    announce,
    cells_observed,
    format_line,
    observed,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def __str__(self):
        """What is shown, without control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


def test_a_callable_sees_every_block():
    X, y = np.arange(60).reshape(10, 6).T % 7, np.arange(6) % 2
    seen = []
    SAOLA(measure="su").start(y).consume(narrow(X, 4), progress=seen.append)
    assert [at.n_seen for at in seen] == [4, 8, 10]
    assert {at.n_features for at in seen} == {10}


@pytest.mark.parametrize(
    ("n_features", "first", "now", "line"),
    [
        (None, (4, 0.5), (4, 0.5), "SAOLA  4  |S*| 2"),
        (None, (4, 0.5), (9, 0.501), "SAOLA  9  5.0k feat/s  |S*| 2"),
        (10**5, (64, 50), (192, 70), "SAOLA  192/100,000  6 feat/s  |S*| 2"),
        (
            10**5,
            (64, 50),
            (1064, 52),
            "SAOLA  1,064/100,000  500 feat/s  |S*| 2  eta 3:17",
        ),
    ],
)
def test_the_rate_is_that_since_the_first_block(n_features, first, now, line):
    """Before it, workers of a cluster were started; or an earlier run was long."""
    first, now = (Progress(n, n_features, 2, seconds) for n, seconds in (first, now))
    assert format_line("SAOLA", now, first) == line


def test_on_a_terminal_the_line_is_live_and_announcements_are_lines(caplog):
    caplog.set_level("INFO", logger="featstream")
    with redirect_stderr(Terminal()) as terminal:
        announce("compiling")
        with observed(True, "SAOLA") as observe:
            observe(Progress(10, 40, 3))
            announce("compiling [again]")
    lines = [line.strip() for line in str(terminal).splitlines() if "comp" in line]
    assert lines == ["compiling", "compiling [again]"]
    assert "10/40  |S*| 3" in str(terminal)
    assert caplog.messages == []


def test_an_announcement_elsewhere_is_a_record(capsys, caplog):
    caplog.set_level("INFO", logger="featstream")
    announce("compiling")
    assert caplog.messages == ["compiling"]
    assert capsys.readouterr().err == ""


def test_elsewhere_there_is_a_plain_line_every_ten_seconds(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 10.5, 11.0, 21.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with observed(True, "SAOLA") as observe:
        for n_seen in (10, 20, 30, 40):
            observe(Progress(n_seen, 40, 1))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == ["20/40", "40/40"]


# Comparisons ------------------------------------------------------------------


def walk(observe):
    at = CellProgress(n_cells=4, n_kept=1)
    observe(at)
    at.running.append("saola on mine, split 0")
    observe(at)
    at.running.clear()
    at.n_done, at.n_failed = 1, 1
    at.last_failure = "saola on mine, split 0: exceeded 3 s"
    observe(at)
    at.n_done = 3
    observe(at)


def test_logs_get_plain_lines(capsys):
    with cells_observed(True) as observe:
        walk(observe)
    assert capsys.readouterr().err.splitlines() == [
        "failed: saola on mine, split 0: exceeded 3 s",
        "4/4 cells  1 kept from before  1 failed",
    ]


def test_a_terminal_gets_a_live_display(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with redirect_stderr(Terminal()) as terminal, cells_observed(True) as observe:
        walk(observe)
    assert "4/4 cells  1 kept from before  1 failed" in str(terminal)
    assert "failed: saola on mine, split 0: exceeded 3 s" in str(terminal)


def test_a_callable_observes_and_nothing_is_printed(capsys):
    seen = []
    with cells_observed(lambda at: seen.append(at.n_done)) as observe:
        walk(observe)
    with cells_observed(False) as observe:
        walk(observe)
    assert seen == [0, 0, 1, 3]
    assert capsys.readouterr().err == ""


def test_a_cell_that_was_given_up_needs_no_words(capsys):
    with cells_observed(True) as observe:
        observe(CellProgress(n_cells=2, n_done=2, n_failed=1))
    assert capsys.readouterr().err.splitlines() == ["2/2 cells  1 failed"]

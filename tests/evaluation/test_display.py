"""How a comparison shows its progress."""

from __future__ import annotations

import io
import re
import sys

from featstream.evaluation import CellProgress
from featstream.evaluation.display import cells_observed


class Terminal(io.StringIO):
    def isatty(self):
        return True


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


def test_logs_get_plain_lines(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with cells_observed(True) as observe:
        walk(observe)
    assert stream.getvalue().splitlines() == [
        "failed: saola on mine, split 0: exceeded 3 s",
        "4/4 cells  1 kept from before  1 failed",
    ]


def test_a_terminal_gets_a_live_display(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with cells_observed(True) as observe:
        walk(observe)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "4/4 cells  1 kept from before  1 failed" in plain
    assert "failed: saola on mine, split 0: exceeded 3 s" in plain


def test_whoever_asks_is_told_and_nobody_else(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    seen = []
    with cells_observed(lambda at: seen.append(at.n_done)) as observe:
        walk(observe)
    with cells_observed(False) as observe:
        walk(observe)
    assert seen == [0, 0, 1, 3]
    assert stream.getvalue() == ""


def test_a_cell_that_was_given_up_needs_no_words(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with cells_observed(True) as observe:
        observe(CellProgress(n_cells=2, n_done=2, n_failed=1))
    assert stream.getvalue().splitlines() == ["2/2 cells  1 failed"]

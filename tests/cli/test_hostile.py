"""Names that a terminal would obey are escaped wherever they are shown."""

import csv
import json
import os

import numpy as np
import pytest

from featstream import SAOLA
from featstream.runs.folder import Checkpoint, replace_file
from featstream.sources import ArraySource

RED = "\x1b[31mred\x07"


@pytest.fixture
def hostile_run(tmp_path):
    y = np.arange(40) % 2
    source = ArraySource(np.stack([y, np.roll(y, 3) * y], 1), [RED, "b"])
    data = {"path": f"/tmp/{RED}", "target": None}
    command = ["featstream", "select", RED]
    folder = tmp_path / "run"
    run = Checkpoint(folder, data=data, command=command)
    SAOLA(measure="su").start(y).consume(source, checkpoint=run)
    return folder


@pytest.mark.parametrize("command", [("info",), ("resume",), ("explain",)])
def test_a_hostile_run_prints_no_escapes(run, hostile_run, command):
    words = [*command, hostile_run, *([RED] if command == ("explain",) else [])]
    shown = run(*words)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert r"\x1b[31mred\x07" in shown


def test_json_is_escaped_and_files_keep_the_bytes(run, hostile_run):
    shown = run("info", hostile_run, "--json")
    assert "\x1b" not in shown
    assert json.loads(shown)["command"][-1] == RED
    with open(hostile_run / "selected.csv", encoding="utf-8", newline="") as file:
        assert [row["feature"] for row in csv.DictReader(file)] == [RED]


def test_a_temporary_file_is_never_somebody_elses(tmp_path):
    """A link or a file under the name of the temporary file is not written to."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    part = tmp_path / ".result.csv.part"
    for make in (os.symlink, os.link):
        make(victim, part)
        replace_file(tmp_path / "result.csv", lambda file: file.write(b"new"))
        assert victim.read_text() == "mine"
        assert (tmp_path / "result.csv").read_bytes() == b"new"
        assert not part.exists()

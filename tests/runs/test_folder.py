"""How files of a run take their place: whole, and on disk before they are named."""

import os

import numpy as np
import pytest

from crash_runs import narrow
from featstream import SAOLA


@pytest.fixture
def events(monkeypatch):
    """What is synced to disk and what is renamed, in order, by number and size."""
    seen = []
    sync, replace = os.fsync, os.replace

    def note(event, status):
        seen.append((event, status.st_ino, status.st_size))

    def sync_and_note(descriptor):
        sync(descriptor)
        note("synced", os.fstat(descriptor))

    def replace_and_note(source, target):
        note("replaced", os.stat(source))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync_and_note)
    monkeypatch.setattr(os, "replace", replace_and_note)
    return seen


def test_a_file_is_on_disk_before_it_takes_its_place(tmp_path, events):
    """Else a power cut could leave the name of a file without its content.

    A rename, too, is only on disk when the folder is.
    """
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (40, 60)), np.arange(40) % 2
    selector = SAOLA(measure="su").start(y)
    selector.consume(narrow(X), checkpoint=tmp_path / "run", every=0)
    replaced = [i for i, event in enumerate(events) if event[0] == "replaced"]
    assert len(replaced) >= 6  # three blocks, each with a state and its description
    folder = os.stat(tmp_path / "run").st_ino
    for i in replaced:
        assert events[i - 1] == ("synced", *events[i][1:])
        if os.name == "posix":
            assert events[i + 1][:2] == ("synced", folder)

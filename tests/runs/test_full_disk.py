"""A disk that is really full: a small file system of its own, filled to the brim."""

import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import checks
import featstream
from featstream import SAOLA
from featstream.datasets import make_stream
from featstream.sources import ArraySource, open_store, open_table, write_store
from featstream.sources.values import LIMITS

PAGE = 4096
N_PAGES = 40


@pytest.fixture
def disk(tmp_path):
    """A file system of 160 KiB in memory."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs Linux and root")
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={N_PAGES * PAGE}"
    mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk, n_left):
    """Leave room for ``n_left`` pages."""
    status = os.statvfs(disk)
    n_free = status.f_bavail * status.f_frsize // PAGE
    (disk / "ballast").write_bytes(bytes(max(0, n_free - n_left) * PAGE))


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=40, n_features=120, n_informative=6, seed=5)


def test_a_run_survives_a_full_disk(disk, stream):
    """Whatever room there is: the old state or the new one, and then on to the end."""
    X, y = stream.X, stream.y
    rest = ArraySource(X[:, 60:], block_bytes=20 * X.itemsize * 40)
    begun = disk.parent / "begun"
    SAOLA(measure="su").start(y).consume(X[:, :60], checkpoint=begun)
    before = checks.outcome(featstream.resume(begun))
    after = checks.outcome(SAOLA(measure="su").fit(X, y))
    errors = []
    for n_left in range(12):
        run = disk / f"run-{n_left}"
        shutil.copytree(begun, run)
        resumed = featstream.resume(run)
        fill(disk, n_left)
        try:
            resumed.consume(rest, checkpoint=run, every=0)
        except OSError as error:
            errors.append((error.errno, str(error)))
        else:
            errors.append(None)
        (disk / "ballast").unlink()
        assert not list(run.glob(".*.part"))
        found = featstream.resume(run)
        if found.n_seen_ == 60:
            assert checks.outcome(found) == before
        if errors[-1] is not None:
            found.consume(rest)
        assert checks.outcome(featstream.resume(run)) == after
        shutil.rmtree(run)
    is_done = [error is None for error in errors]
    assert is_done == sorted(is_done)  # with room enough it is
    assert 3 <= sum(is_done) <= 9
    for number, message in filter(None, errors):
        assert number == errno.ENOSPC
        assert message.partition(": ")[0].endswith("Make room and resume")


def test_a_store_is_whole_or_not_there(disk, stream):
    X = np.tile(stream.X, 20).astype(float) + 0.5
    outcomes = set()
    for n_left in (0, 1, 5, 20, 39):
        fill(disk, n_left)
        with pytest.raises(OSError, match="nothing was kept of the store") as caught:
            write_store(disk / "big.cols", ArraySource(X), stream.y)
        assert caught.value.errno == errno.ENOSPC
        outcomes.add(tuple(sorted(path.name for path in disk.iterdir())))
        (disk / "ballast").unlink()
    assert outcomes == {("ballast",)}
    write_store(disk / "small.cols", ArraySource(X[:, :100]), stream.y)
    assert open_store(disk / "small.cols").n_features == 100


def test_no_room_for_a_temporary_file_is_said(disk, tmp_path, monkeypatch):
    path = tmp_path / "wide.csv"
    lines = [",".join(f"g{j}" for j in range(500))]
    lines += [",".join(str(i * j) for j in range(500)) for i in range(200)]
    path.write_text("\n".join(lines))
    monkeypatch.setattr(LIMITS, "csv_held", 0)
    monkeypatch.setattr("tempfile.tempdir", str(disk))
    with pytest.raises(OSError, match="Make room, or name another folder with TMPDIR"):
        open_table(path)
    assert not list(disk.iterdir())

"""Comparisons that are killed, interrupted or started again, for real."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import types

import numpy as np
import psutil
import pytest

import spies
from featstream.evaluation import Experiment, RandomSplits

N_CELLS = 9
ONCE = RandomSplits(n_runs=1)
DATA = {"d": (np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 2)}

# No guard: a script must not need one to compare what it imports.
SCRIPT = """
import sys
import spies

out, seen = sys.argv[1:]
experiment = spies.comparison(folder=seen, seconds=0.4)
experiment.run(out, n_jobs=2, progress=True)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    (tmp_path / "seen").mkdir()
    return [str(path), str(tmp_path / "out"), str(tmp_path / "seen")]


def begin(*command, start_new_session=False, **variables):
    return subprocess.Popen(
        [sys.executable, *command],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )


def finished_cells(tmp_path):
    return {path.name for path in (tmp_path / "out" / "cells").glob("*.json")}


def wait_until(is_so, process, seconds=120):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert process is None or process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_at_work(tmp_path):
    """Whether a process lives that has begun a fit, by the names of what they left."""
    names = [path.stem for path in (tmp_path / "seen").glob("*.npz")]
    pids = {int(name.rpartition("-")[2]) for name in names}
    return any(
        process.pid in pids and process.info["status"] != psutil.STATUS_ZOMBIE
        for process in psutil.process_iter(["status"])
    )


def test_a_killed_comparison_continues_where_it_was(tmp_path, script, capsys):
    with tempfile.TemporaryDirectory() as folder:  # a killed process cannot tidy up
        process = begin(*script, TMPDIR=folder)
        wait_until(lambda: len(finished_cells(tmp_path)) >= 3, process)
        wait_until(lambda: is_at_work(tmp_path), process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    done, begun = finished_cells(tmp_path), len(spies.fits(tmp_path / "seen"))
    assert 3 <= len(done) < N_CELLS
    assert begun > len(done)  # some were at work
    wait_until(lambda: not is_at_work(tmp_path), None, 60)
    stamps = {name: (tmp_path / "out/cells" / name).stat().st_mtime_ns for name in done}

    same = spies.comparison(folder=script[2], seconds=0.4)
    result = same.run(tmp_path / "out", n_jobs=2, progress=True)
    err = capsys.readouterr().err
    assert f"{N_CELLS}/{N_CELLS} cells  {len(done)} kept from before" in err
    assert len(spies.fits(tmp_path / "seen")) == begun + N_CELLS - len(done)
    for name, stamp in stamps.items():
        assert (tmp_path / "out/cells" / name).stat().st_mtime_ns == stamp
    assert not (tmp_path / "out" / "data").exists()

    expected = spies.comparison().run()
    assert spies.without_costs(result) == spies.without_costs(expected)


def test_an_interrupted_comparison_leaves_nobody_behind(tmp_path, script):
    process = begin(*script, start_new_session=True)
    wait_until(lambda: len(finished_cells(tmp_path)) >= 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert err.count("Traceback") == 1  # none of the children's
    wait_until(lambda: not is_at_work(tmp_path), None, 60)
    assert not (tmp_path / "out" / "data").exists()


OWN_SELECTOR = """
import sys
import numpy as np
from spies import FirstFeatures
from featstream.evaluation import Experiment, RandomSplits

class Own(FirstFeatures):
    pass

def main():
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 2
    once = RandomSplits(n_runs=1)
    result = Experiment({"own": Own()}, {"data": (X, y)}, ["knn"], once).run()
    print(result.failures())

"""


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_script_may_define_its_own_selector_if_it_is_guarded(tmp_path, is_guarded):
    path = tmp_path / "own.py"
    guard = "if __name__ == '__main__':\n    " if is_guarded else ""
    path.write_text(f"{OWN_SELECTOR}{guard}main()\n")
    process = begin(str(path))
    out, err = process.communicate(timeout=120)
    if is_guarded:
        assert (process.returncode, out.strip()) == (0, "[]"), err
    else:
        assert process.returncode == 1
        assert err.strip().splitlines()[-1].endswith('if __name__ == "__main__":')


def test_a_selector_of_a_notebook_gets_advice(monkeypatch):
    """Of a module that no other process can import."""
    monkeypatch.setitem(sys.modules, "notebook", types.ModuleType("notebook"))
    own = type("Own", (spies.FirstFeatures,), {"__module__": "notebook"})
    sys.modules["notebook"].Own = own
    result = Experiment({"own": own()}, DATA, ["knn"], ONCE).run()
    ((*_, reason),) = result.failures()
    assert "notebook" in reason
    assert "in a module" in reason


@pytest.mark.jit_only
def test_time_and_memory_are_those_of_the_selection_alone():
    selectors = {
        "idle": spies.FirstFeatures(),
        "slow": spies.FirstFeatures(seconds=0.5),
        "large": spies.Hungry(megabytes=300),
        "compiling": spies.Compiling(seconds=0.2),
    }
    slow = {"slow": spies.SlowClassifier(0.5)}
    result = Experiment(selectors, DATA, slow, ONCE).run()
    assert result.failures() == []
    seconds, memory = result.table("seconds"), result.table("memory")
    assert seconds.value("d", "idle") < 0.5  # though the classifier took longer
    assert 0.5 <= seconds.value("d", "slow") < 10
    assert 0.2 <= seconds.value("d", "compiling") < 0.7
    if memory.text("d", "large") != "-":
        assert 300 <= memory.value("d", "large") / 2**20 < 340
        assert memory.value("d", "idle") / 2**20 < 20

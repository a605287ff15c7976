"""``update`` and ``resume`` of files that are refused, stopped or given twice."""

import shlex
import shutil
import time

import numpy as np
import pytest

import checks
import featstream
from crash_runs import start_command
from featstream import SAOLA
from featstream.cli import main
from featstream.datasets import make_stream
from featstream.runs.session import Recorder
from featstream.sources import memory

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=60, n_features=90, n_informative=4, seed=2)


def write_table(path, X, begin, y=None):
    header = [f"g{j}" for j in range(begin, begin + X.shape[1])]
    columns = X.astype(int)
    if y is not None:
        header, columns = [*header, "class"], np.c_[columns, y]
    lines = [header, *columns.tolist()]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    return path


@pytest.fixture
def folder(tmp_path, stream, run):
    """A finished run of thirty features."""
    table = write_table(tmp_path / "first.csv", stream.X[:, :30], 0, stream.y)
    flags = ["--selector", "saola", "--measure", "su", "-q"]
    run("select", table, "-o", tmp_path / "run", *flags)
    return tmp_path / "run"


@pytest.fixture
def later(tmp_path, stream):
    """Features that come later, in a table without a target."""
    return write_table(tmp_path / "later.csv", stream.X[:, 30:], 30)


def outcome(folder):
    return checks.outcome(featstream.resume(folder))


@pytest.fixture
def expected(stream):
    return checks.outcome(SAOLA(measure="su").fit(stream.X, stream.y))


def spoil(path):
    """A missing value in the last column of a table."""
    lines = path.read_text().splitlines()
    lines[7] = lines[7].rpartition(",")[0] + ","
    bad = path.with_name("bad.csv")
    bad.write_text("\n".join(lines) + "\n")
    return bad


def test_a_refused_file_can_be_repaired_and_given_again(
    folder, later, run, fail, expected
):
    before, table = outcome(folder), (folder / "selected.csv").read_text()
    bad = spoil(later)
    said = fail("update", folder, bad, "-q")
    assert "'g89' has 1 missing value" in said
    assert f"the run is as it was before '{bad}', which is refused" in said
    assert outcome(folder) == before
    assert (folder / "selected.csv").read_text() == table
    assert "(done)" in run("info", folder)
    bad.write_text(later.read_text())  # repaired in place
    run("update", folder, bad, "-q")
    assert outcome(folder) == expected


def test_names_that_are_there_already_are_refused(folder, stream, fail, tmp_path):
    before = outcome(folder)
    again = write_table(tmp_path / "again.csv", stream.X[:, 20:40], 20)
    assert "the run is as it was" in fail("update", folder, again, "-q")
    assert outcome(folder) == before


def test_a_first_file_that_is_refused_leaves_nothing(
    tmp_path, stream, run, fail, folder
):
    table = write_table(tmp_path / "new.csv", stream.X[:, :30], 0, stream.y)
    good, bad = table.read_text(), spoil(table).read_text()
    table.write_text(bad.replace(",\n", ",0\n", 1))  # the last column is the target
    lines = good.splitlines()
    lines[5] = "," + lines[5].partition(",")[2]
    table.write_text("\n".join(lines) + "\n")
    other = tmp_path / "other"
    assert "missing value" in fail("select", table, "-o", other, "-q")
    assert not other.exists()
    table.write_text(good)
    run("select", table, "-o", other, "-q", "--selector", "saola", "--measure", "su")
    assert outcome(other) == outcome(folder)


@pytest.fixture
def narrow_blocks(monkeypatch):
    """Tables in blocks of ten columns."""
    monkeypatch.setattr(memory, "MAX_FRAME_COLUMNS", 10)


@pytest.fixture
def stopped(folder, later, narrow_blocks, monkeypatch, run):
    """A run that was interrupted in the middle of its second file; what was said."""
    count = []

    def interrupt(self):
        count.append(0)
        if len(count) == 3:
            self.is_interrupted = True
            return after_block(self)
        return None

    after_block = Recorder.after_block
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "after_block", interrupt)
        return run("update", folder, later, "-q", code=130)


def test_an_interrupted_update_without_a_target_is_resumed(
    stopped, folder, run, expected
):
    assert "30 of 60 features are taken" in stopped
    assert shlex.join(["featstream", "resume", str(folder)]) in stopped
    assert featstream.resume(folder).n_seen_ == 60
    run("resume", folder, "-q")
    assert outcome(folder) == expected


def test_an_interrupted_update_can_be_dropped(
    stopped, folder, later, run, fail, expected, capsys
):
    assert "--drop-unfinished" in stopped
    assert "--drop-unfinished" in fail("update", folder, later, "-q")
    later.write_text(later.read_text().replace("g31,", "h31,"))  # another file now
    said = fail("resume", folder, "-q")
    assert "This is a different data set" in said
    assert "--drop-unfinished" in said
    out = run("resume", folder, "-q", "--drop-unfinished")
    assert "of 30 features selected" in out
    run("update", folder, later, "-q")
    assert outcome(folder)[:2] == expected[:2]
    assert main(["resume", str(folder), "-q", "--drop-unfinished"]) == 0
    assert "there is nothing to drop" in capsys.readouterr().err


def test_an_early_interrupt_says_that_nothing_was_taken(
    folder, later, run, monkeypatch
):
    before = outcome(folder)

    def stop(*paths, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("featstream.sources.open_features", stop)
        said = run("update", folder, later, "-q", code=130)
    assert f"nothing of '{later}' was taken, and the run is as it was" in said
    assert shlex.join(["featstream", "update", str(folder), str(later)]) in said
    assert "featstream resume" not in said
    assert outcome(folder) == before


def test_an_interrupt_before_the_first_feature_says_so(
    folder, later, run, monkeypatch, narrow_blocks
):
    def stop(self):
        save(self)
        raise KeyboardInterrupt

    save = Recorder.save
    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "save", stop)
        said = run("update", folder, later, "-q", code=130)
    assert "none is taken yet; to continue: featstream resume" in said


def test_an_interrupt_after_the_end_says_that_it_is_complete(
    folder, later, run, monkeypatch, expected
):
    def stop(*given, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("featstream.cli.runs.print_result", stop)
        said = run("update", folder, later, "-q", code=130)
    assert "the run is complete" in said
    assert outcome(folder) == expected


@pytest.mark.parametrize("what", ["missing", "stale"])
def test_a_lost_table_of_the_selection_is_written_again(
    what, folder, later, run, monkeypatch
):
    """As after a kill just before it is written."""

    def die(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("featstream.runs.session._write_selection", die)
        run("update", folder, later, "-q", code=130)
    table = folder / "selected.csv"
    stale = table.read_text()
    if what == "missing":
        table.unlink()
    run("resume", folder, "-q")
    expected = featstream.resume(folder).result_.as_csv()
    assert table.read_bytes().decode() == expected
    assert table.read_text() != stale


def test_the_same_file_is_not_added_twice(tmp_path, folder, stream, capsys, run):
    """It has no names, so that nothing else would tell."""
    path = tmp_path / "later.npy"
    np.save(path, stream.X[:, 30:])
    run("update", folder, path, "-q")
    after = outcome(folder)
    (folder / "selected.csv").unlink()
    assert main(["update", str(folder), str(path), "-q"]) == 0
    out, err = capsys.readouterr()
    assert "is in the run already, as features 30 to 89: nothing was added" in err
    assert "of 90 features selected" in out
    assert outcome(folder) == after
    assert (folder / "selected.csv").exists()
    np.save(path, stream.X[:, :30])  # other features in a file of that name
    run("update", folder, path, "-q")
    assert featstream.resume(folder).n_seen_ == 120


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_killed_command_is_resumed_or_dropped(suffix, tmp_path, folder, stream, run):
    """Killed by the system, in the middle of a table without a target."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    names = [f"h{j}" for j in range(6000)]
    table = pd.DataFrame(rng.integers(0, 3, (60, 6000)), columns=names)
    path = tmp_path / f"wide{suffix}"
    if suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    before, killed = outcome(folder), tmp_path / "killed"
    run("update", folder, path, "-q")
    expected = outcome(folder)
    n_landed = 0
    for attempt in range(20):
        if not killed.exists():
            flags = ["--selector", "saola", "--measure", "su", "-q"]
            run("select", tmp_path / "first.csv", "-o", killed, *flags)
        begin = (killed / "run.json").read_bytes()
        process = start_command("update", str(killed), str(path), "-q")
        while process.poll() is None and (killed / "run.json").read_bytes() == begin:
            time.sleep(0.001)
        process.kill()
        process.communicate()
        unfinished = featstream.resume(killed)._run.unfinished
        n_landed += unfinished is not None
        if attempt % 2:
            run("resume", killed, "-q", "--drop-unfinished")
            assert outcome(killed) in (before, expected)
        elif unfinished is not None:
            run("resume", killed, "-q")
            assert outcome(killed) == expected
        if featstream.resume(killed).n_seen_ > 30:
            shutil.rmtree(killed)
        if n_landed == 6:
            return
    raise AssertionError(f"only {n_landed} kills landed")

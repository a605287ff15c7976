"""A conversion on workers makes the same store, to the byte."""

import filecmp
import gzip

import numpy as np
import pytest

from engines.simulated import SimulatedEngine
from featstream.engines import convert_svmlight
from featstream.errors import DataError
from featstream.sources import convert
from featstream.sources.values import LIMITS


def text_of(rng, n_rows, labels, lowest, values):
    """Rows of a few entries; some are empty, some have zeros written out."""
    lines = []
    for _ in range(n_rows):
        indices = np.unique(rng.integers(lowest, 40, rng.integers(0, 9)))
        entries = [f"{i}:{rng.choice(values)}" for i in indices]
        lines.append(" ".join([str(rng.choice(labels)), *entries]))
    return "\n".join(lines)


def same_folders(first, second):
    """Whether two folders have the same files, with the same bytes."""
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    _, differ, errors = filecmp.cmpfiles(first, second, names, shallow=False)
    return not differ and not errors


@pytest.mark.parametrize(
    ("labels", "lowest", "values", "ending"),
    [
        (["1", "-1"], 1, ["1"], "\n"),
        (["1", "-1"], 0, ["0", "2", "-7"], ""),
        (["ham", "spam"], 1, ["0.5", "1e-3", "3"], "\n\n# end"),
    ],
)
def test_the_store_is_the_same_to_the_byte(
    labels, lowest, values, ending, tmp_path, monkeypatch
):
    rng = np.random.default_rng(len(values))
    text = text_of(rng, 60, labels, lowest, values) + ending
    (tmp_path / "x.svm").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "x.svm.gz").write_bytes(gzip.compress(text.encode()))
    convert(tmp_path / "x.svm", tmp_path / "local.cols")
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 200)
    for name in ("x.svm", "x.svm.gz"):
        engine = SimulatedEngine(rng, 2, death=0.3)
        store = tmp_path / f"{name}.cols"
        found = convert_svmlight(tmp_path / name, store, engine)
        assert found.n_samples == 60
        assert engine.n_messages > 10
        assert same_folders(tmp_path / "local.cols", store)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "flaw", ["1 3:x", "1 3:1 3:2", "spam 1:1"], ids=["value", "order", "label"]
)
def test_a_flaw_is_the_same_error(flaw, tmp_path, monkeypatch):
    lines = ["1 1:1 2:1"] * 50
    lines[37] = flaw
    path = tmp_path / "x.svm"
    path.write_text("\n".join(lines))
    monkeypatch.setattr(LIMITS, "svmlight_chunk", 100)
    messages = []
    engine = SimulatedEngine(np.random.default_rng(0), 2)
    for turn in (
        lambda: convert(path, tmp_path / "x.cols"),
        lambda: convert_svmlight(path, tmp_path / "x.cols", engine),
    ):
        with pytest.raises(DataError) as error:
            turn()
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "line 38" in messages[0]
    assert [path.name for path in tmp_path.iterdir()] == ["x.svm"]


def test_a_worker_that_sees_another_file_is_an_error(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("1 1:1\n-1 2:1\n")

    class Elsewhere(SimulatedEngine):
        def submit(self, function, given, *arguments, **options):
            other = given._replace(size=given.size + 1)
            return super().submit(function, other, *arguments, **options)

    with pytest.raises(DataError, match="use shared storage"):
        convert_svmlight(path, tmp_path / "x.cols", Elsewhere(np.random.default_rng(0)))

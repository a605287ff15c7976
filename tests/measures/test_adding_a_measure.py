"""The page on adding a measure, run as it is, in a file outside the package."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from featstream import SAOLA
from featstream.errors import DataTypeError, ParameterError
from featstream.measures import MEASURES, FisherZ, register_measure
from featstream.measures.storages.dispatch import storage_of

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-measure.md"


@pytest.fixture
def blocks(tmp_path, monkeypatch):
    """The code of the page; the first block is a file that can be imported."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (tmp_path / "distance_measure.py").write_text(found[0])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield found
    MEASURES.pop("distance-correlation", None)
    sys.modules.pop("distance_measure", None)


def test_the_page_runs_with_selectors_runs_and_a_comparison(blocks, capsys):
    names = {}
    for code in blocks[1:3]:
        exec(compile(code, str(PAGE), "exec"), names)
    assert "is kept: its relevance is" in capsys.readouterr().out
    assert 0 < names["selector"].selected_.size < 40
    assert names["selector"].measure_ == "distance-correlation"
    assert names["by_group"].selected_.size
    frame = names["result"].frame()
    assert set(frame["selector"]) == {"Fisher's Z", "distances"}
    assert frame["accuracy"].notna().all()


def test_the_compiled_function_is_the_plain_one(blocks, tmp_path):
    plain = importlib.import_module("distance_measure")
    text = (tmp_path / "distance_measure.py").read_text()
    begin, end = text.index("def distance_correlation"), text.index("class DistanceC")
    text = text[:begin] + blocks[3] + "\n\n" + text[end:]
    text = text.rpartition("register_measure(")[0]
    (tmp_path / "compiled_measure.py").write_text(text)
    compiled = importlib.import_module("compiled_measure")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = rng.normal(size=(40, 12)) + y[:, None] * (np.arange(12) % 3)
    for j in range(12):
        expected = plain.distance_correlation(X[:, j], X[:, 0])
        found = compiled.distance_correlation(X[:, j].copy(), X[:, 0].copy())
        assert found == pytest.approx(expected, rel=1e-12)
    results = [
        SAOLA(measure=module.DistanceCorrelation()).fit(X, y)
        for module in (plain, compiled)
    ]
    assert results[0].selected_.tolist() == results[1].selected_.tolist()
    sys.modules.pop("compiled_measure")


def test_a_measure_needs_a_name_of_its_own_and_a_method_bind():
    with pytest.raises(ParameterError, match=r"'su' already, .*SymmetricalUncertainty"):
        register_measure("su", FisherZ)
    with pytest.raises(ParameterError, match="words joined by hyphens"):
        register_measure("a b", FisherZ)
    with pytest.raises(DataTypeError, match=r"method bind\(y\)"):
        register_measure("new", object)
    register_measure("fisher-z", FisherZ)  # again is fine


def test_columns_without_a_storage_are_refused():
    with pytest.raises(DataTypeError, match="returns columns of a storage"):
        storage_of(np.zeros((2, 3)))

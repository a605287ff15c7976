"""What notebooks and terminals show."""

import io
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from featstream import SAOLA, GroupSAOLA
from featstream.cli.select import print_result
from featstream.evaluation.results import ScoreTable

HOSTILE = "<script>alert(1)</script>"


def data():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 40)), rng.integers(0, 2, 60)
    return X, y


def test_decisions_results_and_selectors_have_html_without_foreign_markup():
    X, y = data()
    selector = SAOLA(measure="su").start(y)
    decision = selector.update(X[:, 0], name=HOSTILE)
    for j in range(1, 40):
        selector.update(X[:, j], name=f"{HOSTILE}{j}")
    groups = GroupSAOLA(measure="su").start(y)
    grouped = groups.update_group(X[:, :5], group=HOSTILE)
    for shown in (decision, selector.result_, selector, groups, grouped):
        text = shown._repr_html_()
        assert "<table>" in text
        assert "<script" not in text
    assert "&lt;script&gt;" in selector._repr_html_()


def test_a_selector_shows_its_parameters_before_it_has_seen_anything():
    fresh = SAOLA(measure="su")
    bundle = fresh._repr_mimebundle_()
    assert bundle["text/plain"] == "SAOLA(measure='su')"
    assert "SAOLA" in bundle["text/html"]
    X, y = data()
    assert "features" in fresh.fit(X, y)._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("width", [80, 60])
def test_the_table_fits_the_terminal(width):
    file = io.StringIO()
    console = Console(file=file, width=width, highlight=False)
    names, indices = ["x" * 500, "[b]short[/b]"], np.array([1_999_999, 3])
    found = SAOLA(measure="su").fit(*data()).result_
    found = replace(
        found,
        names=(*names, *map(str, range(24))),
        indices=np.append(indices, range(24)),
        scores=np.append([0.123456, 1.0], np.zeros(24)),
        measure_reason="every value is a whole number " * 8,
    )
    print_result(SimpleNamespace(result_=found), None, as_json=False, console=console)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" in text
    assert "1999999" in text
    assert "0.123456" in text
    assert "[b]short[/b]" in text
    assert "... and 6 more" in text


def test_a_score_table_is_cut_to_the_width():
    names = tuple(f"selector-{j}" for j in range(9))
    values = np.arange(18.0).reshape(2, 9) / 18
    what = ("accuracy", "knn", "mean", ("one", "two"))
    table = ScoreTable(*what, names, values, values, (3, 3))
    narrow = table.lines(80)
    assert max(map(len, narrow[1:])) <= 80
    whole = table.lines()
    assert len(whole) == 4
    found, expected = (Counter(" ".join(t[1:]).split()) for t in (narrow, whole))
    for repeated in ("data", "set", "one", "two"):
        assert found.pop(repeated) > expected.pop(repeated)
    assert found == expected

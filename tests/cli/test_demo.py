import json

import pytest

from featstream.cli import main
from featstream.jit import compilation


@pytest.fixture(autouse=True)
def leave_the_clock(monkeypatch):
    monkeypatch.setattr(compilation, "announce", None)


def test_the_demo_shows_the_words_that_tell_the_novels_apart(tmp_path, capsys):
    report = tmp_path / "demo.html"
    assert main(["demo", "--report", str(report)]) == 0
    out = capsys.readouterr().out
    words = {line.split()[0]: line.split()[2:] for line in out.splitlines() if line}
    heroines = {"elizabeth": 0, "emma": 1, "elinor": 2}
    for name, novel in heroines.items():
        shares = [0 if cell == "-" else int(cell) for cell in words[name]]
        assert max(shares) == shares[novel] > 40
    reason = "'mr darcy' is redundant: no evidence that it adds anything once"
    assert f"{reason} 'darcy' is known" in out
    assert report.as_uri() in out
    assert report.read_text("utf-8").startswith("<!doctype html>")
    assert max(map(len, out.split("Why")[0].splitlines())) <= 80
    assert main(["demo", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["n_features"] > 10_000
    assert facts["n_selected"] < 0.01 * facts["n_features"]
    assert facts["accuracy_of_selected"] > 0.9
    assert facts["report"] is None

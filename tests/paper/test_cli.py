"""``featstream paper``: what is listed, what is run, and how mistakes are answered."""

import csv
import json

import numpy as np
import pytest

from featstream.cli import main
from featstream.evaluation import paper_table

pytestmark = pytest.mark.jit_only


@pytest.fixture
def run(capsys, data, tmp_path):
    """Run ``featstream paper run`` on the data, into a folder of its own."""

    def run(*arguments, data=data, out=tmp_path / "out"):
        command = ["paper", "run", *arguments, "--data", data, "-o", out, "-q"]
        code = main([str(word) for word in command])
        return code, *capsys.readouterr()

    return run


def test_list_names_every_table_and_what_it_lacks(capsys, data):
    assert main(["paper", "list", "--data", str(data)]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    (line,) = (line for line in lines if line.startswith("table10 "))
    assert "tb9" in line
    assert "2/14" in line
    assert any(line.startswith("figure18 ") for line in lines)
    assert "data sets here: madelon, leukemia" in out
    assert "dexter: dexter_train.data and dexter_train.labels" in out


def test_list_works_without_data_and_as_json(capsys, monkeypatch):
    monkeypatch.delenv("FEATSTREAM_DATA", raising=False)
    assert main(["paper", "list", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert len(facts["exhibits"]) == 39
    assert facts["data"] == []
    assert facts["exhibits"][0]["datasets_not_here"] == facts["exhibits"][0]["datasets"]


def test_run_writes_pages_numbers_and_figures(run, tmp_path):
    out_folder = tmp_path / "out"
    wanted = ["table18", "tb14", "Figure 12", "figure5", "figure6", "table9"]
    code, out, err = run(*wanted, "--quick")
    assert (code, err) == (0, "")
    assert "| madelon |" in out
    assert "figure5: nothing to show, no data of connect-4" in out
    assert "table9: nothing to show, no data of connect-4" in out

    page = (out_folder / "table18.md").read_text()
    assert page.startswith("# Table 18 (`tb13`): Accuracy: SAOLA and SAOLA-max")
    assert "| data set | SAOLA | paper | Δ | SAOLA-max | paper | Δ |" in page
    assert "Above is the best of 3 random splits" in page
    assert "No data: dexter. Put there dexter_train.data" in page
    assert "**Average ranks**" in page
    assert (out_folder / "table18-ranks-1.png").stat().st_size > 1000
    assert (out_folder / "figure12.png").stat().st_size > 1000
    assert not (out_folder / "figure5.png").exists()

    with open(out_folder / "table18.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == paper_table(18).values.size
    by_place = {(r["dataset"], r["method"], r["classifier"]): r for r in rows}
    found = by_place["madelon", "SAOLA", "KNN"]
    assert float(found["paper"]) == 0.5617
    gap = float(found["ours"]) - 0.5617
    assert float(found["difference"]) == pytest.approx(gap)
    assert by_place["leukemia", "SAOLA", "KNN"]["statistic"] == "best"
    assert by_place["leukemia", "SAOLA", "KNN"]["runs"] == "3"
    assert by_place["dexter", "SAOLA", "KNN"]["reason"] == "no data"

    summary = (out_folder / "README.md").read_text()
    assert "[Table 18](table18.md)" in summary
    assert "not drawn, no data of connect-4" in summary
    assert "A quick run: three repetitions" in summary
    with open(out_folder / "results.csv") as file:
        assert {r["dataset"] for r in csv.DictReader(file)} == {"madelon", "leukemia"}

    # Once more: nothing is run, the same is written.
    assert run(*wanted, "--quick")[0] == 0
    assert (out_folder / "table18.md").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table99"], "'table99'. Did you mean"),
        (["3"], "'3' may be a table or a figure. Write table3"),
        (["table3", "--time-limit", "0"], "--time-limit must be"),
        (["table3", "--jobs", "0"], "--jobs"),
    ],
)
def test_wrong_input_is_answered_with_what_to_do(run, arguments, words):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("featstream: error: ")
    assert words in err


def test_a_folder_with_other_files_is_refused(run, tmp_path):
    for file in ("mine/README.md", "theirs/work/thesis.txt"):
        path = tmp_path / file
        path.parent.mkdir(parents=True)
        path.write_text("mine")
        code, _, err = run("table3", out=tmp_path / file.partition("/")[0])
        assert code == 1
        assert "holds " in err
        assert repr(path.name) in err
        assert path.read_text() == "mine"


def test_no_data_at_all_is_a_failure_that_says_where_to_look(run, tmp_path):
    code, _, err = run("table3", data="/nowhere/at/all")
    assert code == 1
    assert "There is no folder" in err
    (tmp_path / "empty").mkdir()
    code, _, err = run("table3", data=tmp_path / "empty")
    assert code == 1
    assert "none of the data sets is there" in err
    page = (tmp_path / "out" / "table3.md").read_text()
    assert "0 of its 14 data sets are here" in page
    assert "No data: dexter. Put there" in page


def test_a_file_that_cannot_be_read_does_not_stop_the_others(run, data, tmp_path):
    (data / "dexter.npz").write_text("404 not found")
    np.savez(data / "leukemia.npz", X=np.zeros((9, 7_129)), y=np.zeros(9))
    code, _, err = run("table18", "--quick")
    assert code == 1
    first, second = err.splitlines()
    assert first.startswith("featstream: error: dexter is left out. ")
    assert "dexter.npz: it is not an archive of arrays" in first
    assert second.startswith("featstream: error: leukemia is left out. ")
    assert "a single class" in second
    with open(tmp_path / "out" / "results.csv") as file:
        assert {row["dataset"] for row in csv.DictReader(file)} == {"madelon"}
    assert "No data: dexter. Put there" in (tmp_path / "out/table18.md").read_text()

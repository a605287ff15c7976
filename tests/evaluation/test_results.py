"""Tables and statistics of a comparison, from records made by hand."""

import json
import math
from itertools import product

import numpy as np
import pytest

from featstream.errors import DataError, ParameterError
from featstream.evaluation import ExperimentResult, paper_table
from featstream.reporting import comparison_markdown, comparison_text, plot_scores


def make_result(scores, *, sizes=None, reasons=None, rules=None, unscored=()):
    """A result from accuracies by (data set, selector), one per split.

    Of the splits ``unscored`` the classifier failed, but not the selector.
    """
    records = []
    for (dataset, selector), values in scores.items():
        for i, value in enumerate(values):
            size = (sizes or {}).get((dataset, selector), [5] * len(values))[i]
            costs = {"n_features": size, "n_groups": None, "measure": "su"}
            costs |= {"seconds": size / 10, "memory": size << 20}
            selection = {"value": None, "selected": list(range(size)), **costs}
            record = {"selections": [selection], "scores": {}, "reason": None}
            if value is None:
                record |= {"selections": [], "reason": reasons[dataset, selector]}
            elif (dataset, selector, i) in unscored:
                record["reason"] = reasons[dataset, selector]
            else:
                metrics = ("accuracy", "balanced_accuracy", "auc", "auc_hard")
                record["scores"]["key"] = dict.fromkeys(metrics, value)
            place = {"dataset": dataset, "selector": selector, "split": i}
            records.append(record | place | {"label": (rules or {}).get(selector)})
    facts = {"n_samples": 10, "n_features": 20, "n_classes": 2}
    facts["protocol"] = "RandomSplits()"
    origin = {"date": "today", "platform": "here", "n_cores": 2, "n_jobs": 1}
    about = {
        "settings": {"seed": 0, "time_limit": None, "memory_limit": None},
        "datasets": {dataset: facts for dataset, _ in scores},
        "provenance": {**origin, "versions": {"python": "3"}},
    }
    return ExperimentResult(records, {"knn": "key"}, about)


SMALL = {
    ("a", "one"): [0.7, 0.9, 0.8],
    ("a", "two"): [0.5, 0.7, 0.6],
    ("b", "one"): [0.6, 0.6, 0.9],
    ("b", "two"): [0.6, 0.6, 0.9],
}


def test_tables_over_splits():
    result = make_result(SMALL, sizes={("a", "one"): [3, 4, 8]})
    mean = result.table()
    np.testing.assert_allclose(mean.values, [[0.8, 0.6], [0.7, 0.7]])
    np.testing.assert_allclose(mean.spreads[0], [0.1, 0.1])
    assert mean.text("a", "one") == "0.8000 ± 0.1000"
    assert result.table(statistic="best").value("a", "one") == 0.9
    assert result.table(statistic="worst").value("a", "one") == 0.7
    assert result.table(statistic="median").value("b", "two") == 0.6
    assert result.table(statistic="sd").value("a", "two") == pytest.approx(0.1)
    # The run with the best accuracy is the second, with four features.
    assert result.table("n_features", statistic="best").value("a", "one") == 4
    assert result.table("seconds", statistic="best").value("a", "one") == 0.4
    assert result.table("n_features").text("a", "one") == "5.0 ± 2.6"
    assert result.table("memory").text("b", "one") == "5.0 ± 0.0"


def test_a_failed_split_leaves_a_dash_with_its_reason():
    scores = SMALL | {("b", "two"): [0.6, None, 0.9]}
    result = make_result(scores, reasons={("b", "two"): "exceeded 300 s"})
    table = result.table()
    assert math.isnan(table.value("b", "two"))
    assert table.reasons == {("b", "two"): "1 of 3 splits failed: exceeded 300 s"}
    assert str(table).splitlines()[2:] == [
        "a         0.8000 ± 0.1000  0.6000 ± 0.1000",
        "b         0.7000 ± 0.1732                -",
        "- two on b: 1 of 3 splits failed: exceeded 300 s",
    ]
    assert result.failures() == [("b", "two", 1, "exceeded 300 s")]
    comparison = result.statistics()
    assert comparison.datasets == ("a",)
    assert comparison.left_out == {"b": "no score of two"}
    assert comparison.win_tie_lose["one", "two"] == (1, 0, 0)
    assert "Left out: b (no score of two)." in comparison.conclusion


@pytest.mark.parametrize("statistic", ["best", "worst"])
def test_no_best_split_is_chosen_where_an_accuracy_is_missing(statistic):
    """The classifier failed on one selection; its size is known all the same."""
    reasons = {("a", "one"): "exceeded 300 s"}
    result = make_result(SMALL, reasons=reasons, unscored=[("a", "one", 1)])
    table = result.table("n_features", statistic=statistic)
    assert math.isnan(table.value("a", "one"))
    assert table.reasons == {("a", "one"): "1 of 3 splits failed: exceeded 300 s"}
    assert result.table("n_features").value("a", "one") == 5


def test_statistics_of_the_papers_table():
    """Table 3, J48: four of fourteen data sets have no scores of two methods."""
    table = paper_table(3)
    methods = ["SAOLA", "Fast-OSFS", "Alpha-investing"]
    places = product(table.datasets, methods)
    scores = {
        place: [None if math.isnan(value) else value]
        for place, value in zip(places, table.scores(methods).flat, strict=True)
    }
    reasons = dict.fromkeys(scores, "exceeded three days")
    found = make_result(scores, reasons=reasons).statistics()
    assert found.datasets == table.datasets[:10]
    assert set(found.left_out) == set(table.datasets[10:])
    ranks = list(found.paper_ranks.values())
    np.testing.assert_allclose(ranks, [2.35, 2.40, 1.25])
    np.testing.assert_allclose(list(found.ranks.values()), 4 - np.array(ranks))
    assert found.friedman.is_rejected()
    assert found.nemenyi.critical_difference == pytest.approx(2.343 * 0.2**0.5, 1e-3)
    for rival, printed in (("Fast-OSFS", "1/8/1"), ("Alpha-investing", "5/5/0")):
        assert str(found.win_tie_lose["SAOLA", rival]) == printed


def test_means_that_differ_by_rounding_alone_are_ties():
    up, down = [0.7, 0.8, 0.9], [0.9, 0.8, 0.7]
    assert np.mean(up) != np.mean(down)
    names = [(dataset, selector) for dataset in "AB" for selector in ("a", "b")]
    scores = dict(zip(names, [up, down, up, down], strict=True))
    found = make_result(scores).statistics("accuracy", "knn")
    assert found.ranks == {"a": 1.5, "b": 1.5}


def test_low_is_best_for_what_it_costs():
    sizes = {("a", "one"): [9] * 3, ("b", "one"): [9] * 3}
    result = make_result(SMALL, sizes=sizes)
    assert result.statistics().win_tie_lose["one", "two"] == (1, 1, 0)
    found = result.statistics("n_features")
    assert found.win_tie_lose["two", "one"] == (2, 0, 0)
    assert found.ranks == {"one": 2.0, "two": 1.0}
    assert found.conclusion.startswith("In number of selected features on 2 data sets")


def test_one_data_set_is_no_ground_for_ranks():
    scores = {place: values for place, values in SMALL.items() if place[0] == "a"}
    found = make_result(scores).statistics()
    assert (found.friedman, found.nemenyi) == (None, None)
    assert "one is significantly better than two" in found.conclusion
    assert "ranks need at least two" in found.conclusion


def test_tidy_rows_in_every_form(tmp_path):
    pandas = pytest.importorskip("pandas")
    result = make_result(SMALL, rules={"two": "best of k=1, 2"})
    frame = result.frame()
    means = frame.groupby(["dataset", "selector"])["accuracy"].mean()
    np.testing.assert_allclose(means.to_numpy(), [0.8, 0.6, 0.7, 0.7])
    assert set(frame.query("selector == 'two'")["rule"]) == {"best of k=1, 2"}
    assert result.frame("polars").shape == (12, len(result.rows()[0]))
    result.to_csv(tmp_path / "results.csv")
    again = pandas.read_csv(tmp_path / "results.csv")
    np.testing.assert_array_equal(again["accuracy"], frame["accuracy"])
    parquet = pytest.importorskip("pyarrow.parquet")
    result.to_parquet(tmp_path / "results.parquet")
    table = parquet.read_table(tmp_path / "results.parquet")
    assert table.num_rows == 12
    assert json.loads(table.schema.metadata[b"featstream"])["settings"]["seed"] == 0


def test_wrong_names_are_refused():
    result = make_result(SMALL)
    for call, words in (
        (lambda: result.table("acuracy"), r"Unknown metric 'acuracy'.+Did you mean"),
        (lambda: result.table(classifier="svm"), "Unknown classifier 'svm'"),
        (lambda: result.table(statistic="max"), "Unknown statistic 'max'"),
        (lambda: result.selections("a", "onee"), r"Unknown selector 'onee'.+Did you"),
    ):
        with pytest.raises(ParameterError, match=words):
            call()
    with pytest.raises(DataError, match="are not at hand"):
        result.stability()


def test_text_and_markdown_say_the_same():
    result = make_result(
        SMALL | {("b", "two"): [None] * 3},
        reasons={("b", "two"): "exceeded 2 GB"},
        rules={"two": "best of k=1, 2 on the test rows"},
    )
    text, document = comparison_text(result), comparison_markdown(result)
    for page in (text, document):
        assert "two: best of k=1, 2 on the test rows" in page
        assert "two on b: exceeded 2 GB" in page
        assert "0.8000 ± 0.1000" in page
        assert "best of the splits, not an estimate of what to expect" in page
    assert "| b | 0.7000 ± 0.1732 | - |" in document
    assert "- Machine: here, 2 cores" in document


def test_scores_are_drawn_with_error_bars():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    scores, reasons = SMALL | {("b", "two"): [None] * 3}, {("b", "two"): "x"}
    ax = plot_scores(make_result(scores, reasons=reasons).table())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one", "two"]
    assert [text.get_text() for text in ax.texts] == ["–"]
    (line, _, _), (_, _, _) = ax.containers
    np.testing.assert_allclose(line.get_xdata(), [0.8, 0.7])
    matplotlib.pyplot.close("all")

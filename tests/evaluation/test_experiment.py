"""Experiments: what selectors are shown, what is kept, what fails and how."""

import json
import math
import pkgutil
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_selection import RFECV, SelectKBest, mutual_info_classif
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import featstream
import spies
from featstream import SAOLA, Experiment, FisherZ, Task
from featstream import evaluation as ev
from featstream.datasets import make_stream
from featstream.errors import DataError, ParameterError, RunError
from featstream.evaluation.entrants import deciding_files, describe, key_of


@dataclass(frozen=True)
class SameRows(ev.SplitProtocol):
    """A protocol of one's own."""

    n_splits = 5

    def split(self, index, shape, seed):
        rows = np.arange(len(shape.y))
        return ev.Split(rows[:80], rows[80:])


STREAM = make_stream(n_samples=120, n_features=60, seed=3)
X, Y = STREAM.X, STREAM.y
GIVEN = Task(X[:80], Y[:80], X[80:], Y[80:])
ONCE = ev.RandomSplits(n_runs=1)


def run(selectors, datasets=None, classifiers=("knn",), *, folder=None, **options):
    n_jobs = options.pop("n_jobs", 1)
    experiment = Experiment(
        selectors, datasets or {"data": GIVEN}, classifiers, **options
    )
    return experiment.run(folder, n_jobs=n_jobs)


def spy_on(path, n_features=2):
    """A selector that keeps what it was shown in a new folder."""
    path.mkdir(exist_ok=True)
    return spies.FirstFeatures(n_features, folder=str(path))


@pytest.mark.parametrize("name", sorted(ev.SELECTORS))
def test_every_selector_by_name_takes_part(name):
    result = run([name], {"stream": (X, Y)}, protocol=ONCE)
    assert result.failures() == []
    assert 0 <= result.table().value("stream", name) <= 1
    assert result.rows()[0]["seconds"] < 30
    train = ONCE.split(0, GIVEN.rows().shape, 0).train
    kept = ev.as_selector(name).fit(X[train], Y[train]).get_support(indices=True)
    assert sorted(result.selections("stream", name)[0]) == sorted(kept)


def test_scores_are_those_of_selecting_and_judging_by_hand():
    classifiers = {
        "knn": "knn",
        "scaled svm": make_pipeline(StandardScaler(), ev.as_classifier("svm")),
    }
    result = run({"ours": SAOLA(measure="su")}, classifiers=classifiers)
    kept = SAOLA(measure="su").fit(X[:80], Y[:80]).selected_
    np.testing.assert_array_equal(result.selections("data", "ours")[0], kept)
    for name, classifier in classifiers.items():
        fitted = ev.as_classifier(classifier).fit(X[:80][:, kept], Y[:80])
        expected = np.mean(fitted.predict(X[80:][:, kept]) == Y[80:])
        assert result.table(classifier=name).value("data", "ours") == expected
    assert result.table("n_features").value("data", "ours") == kept.size
    assert [row["measure"] for row in result.rows()] == ["su", "su"]


def test_a_selector_is_shown_the_training_rows_and_no_others(tmp_path):
    protocol = ev.RandomSplits(n_runs=3)
    run({"spy": spy_on(tmp_path)}, {"data": (X, Y)}, protocol=protocol)
    for i, fit in enumerate(spies.fits(tmp_path)):
        train = protocol.split(i, GIVEN.rows().shape, 0).train
        np.testing.assert_array_equal(fit["X"], X[train])
        np.testing.assert_array_equal(fit["y"], Y[train])
    assert i == 2


@pytest.mark.parametrize("name", ["saola", "best"])
def test_poisoned_test_rows_change_no_selection(name):
    selector = name
    if name == "best":  # the choice of a parameter must not see them either
        selector = ev.BestOf("ofs", "n_features", [1, 2, 5, 20])
    rng = np.random.default_rng(0)
    poisoned = np.where(np.arange(X.shape[1]) % 2, X[80:], np.nan)
    garbled = rng.permuted(X[80:], axis=0)
    selections, accuracies = [], []
    for X_test in (X[80:], poisoned, garbled):
        result = run({"s": selector}, {"d": replace(GIVEN, X_test=X_test)})
        selections.append(result.selections("d", "s")[0].tolist())
        accuracies.append(result.table().value("d", "s"))
    assert selections[0] == selections[1] == selections[2] != []
    assert len(set(map(str, accuracies))) > 1  # the scores do change, so it was seen


def test_choosing_by_test_rows_is_possible_and_labelled():
    values = [1, 2, 5, 20]
    entry = ev.BestOf("ofs", "n_features", values, judged_on="test")
    singles = ev.sweep("ofs", "n_features", values)
    result = run({"best": entry, **singles}, classifiers=("knn", "svm"))
    for row, classifier in zip(result.rows()[:2], ("knn", "svm"), strict=True):
        table = result.table(classifier=classifier)
        alone = [table.value("data", name) for name in singles]
        best = values[int(np.argmax(alone))]
        assert row["accuracy"] == table.value("data", "best") == max(alone)
        assert (row["chosen"], row["n_features"]) == (f"n_features={best}", best)
    assert "best of n_features=1, 2, 5, 20 on the test rows" in str(result.table())


def test_choosing_within_the_training_rows():
    """The last feature alone decides; the value that reaches it is best."""
    y = np.repeat([0, 1], 50)
    data = np.c_[np.random.default_rng(0).normal(size=(100, 3)), 10 * y]
    entry = ev.BestOf(spies.FirstFeatures(), "n_features", [1, 3, 4])
    result = run({"s": entry}, {"d": (data, y)}, protocol=ev.RandomSplits(n_runs=2))
    assert [row["chosen"] for row in result.rows()] == ["n_features=4"] * 2
    assert [row["accuracy"] for row in result.rows()] == [1.0, 1.0]


@pytest.mark.parametrize("judged_on", ["training", "test"])
def test_nested_selections_are_made_by_one_fit(judged_on, tmp_path):
    """The same rows as with a fit for each value; one fit each time one is needed."""
    values, found, n_fits = [1, 2, 3, 5], [], []
    for is_nested in (True, False):
        folder = tmp_path / str(is_nested)
        entry = ev.BestOf(spy_on(folder), "n_features", values, judged_on, is_nested)
        found.append(spies.without_costs(run({"s": entry})))
        n_fits.append(len(spies.fits(folder)))
    assert found[0] == found[1]
    assert n_fits == ([1, 4] if judged_on == "test" else [6, 21])


def test_a_classifier_may_join_the_best_of_several_later(tmp_path):
    for judged_on in ("training", "test"):
        entry = {"s": ev.BestOf("ofs", "n_features", [1, 2, 5, 20], judged_on)}
        first = run(entry, folder=tmp_path).rows()
        both = run(entry, classifiers=("knn", "svm"), folder=tmp_path).rows()
        assert [row for row in both if row["classifier"] == "knn"] == first
        alone = run(entry, classifiers=("svm",)).rows()
        keys = ("accuracy", "chosen", "n_features")
        assert [both[1][key] for key in keys] == [alone[0][key] for key in keys]


def test_an_empty_selection_is_judged_as_the_majority_class():
    y = np.repeat([0, 1, 0, 1], [30, 10, 12, 8])
    data = np.zeros((60, 3))
    data[:, 1] = np.arange(60)
    task = Task(data[:40], y[:40], data[40:], y[40:])
    result = run({"none": spies.FirstFeatures(0)}, {"d": task}, ("knn", "svm", "j48"))
    for row in result.rows():
        assert row["accuracy"] == 12 / 20
        assert row["balanced_accuracy"] == row["auc"] == 0.5
        assert row["n_features"] == 0
        assert "majority class" in row["note"]


def test_failures_are_reported_and_stay_in_the_table(tmp_path):
    selectors = {how: spies.Misfit(how) for how in ("raise", "crash", "exit")}
    selectors |= {"not": spies.FailingClassifier(), "fine": spies.FirstFeatures()}
    result = run(selectors, n_jobs=2, folder=tmp_path)
    reasons = {selector: reason for _, selector, _, reason in result.failures()}
    assert reasons["raise"] == "ValueError: no such thing"
    assert reasons["crash"] == "its process was killed (SIGSEGV)"
    assert reasons["exit"] == "its process ended with exit code 3"
    assert "neither get_support() nor support_" in reasons["not"]
    table = result.table()
    assert [math.isnan(v) for v in table.values[0]] == [True] * 4 + [False]
    assert table.cells()[1][1] == "-"
    assert "- raise on data: ValueError: no such thing" in str(table)
    comparison = result.statistics()
    assert comparison.selectors == ("fine",)
    assert "no score on any data set" in comparison.conclusion


SLOW = spies.FirstFeatures(seconds=0.6)  # each of four values is within 2 s


@pytest.mark.parametrize(
    ("selector", "limits", "reason"),
    [
        (ev.BestOf(SLOW, "n_features", [1, 2, 3, 4], "test"), {"time_limit": 2}, "2 s"),
        (spies.Misfit("hoard"), {"memory_limit": "600MB"}, "600 MB"),
    ],
    ids=["time of all values together", "memory"],
)
def test_a_limit_ends_a_cell(selector, limits, reason):
    result = run({"s": selector}, **{"time_limit": 60, **limits})
    assert result.failures() == [("data", "s", 0, f"exceeded {reason}")]


def test_a_slow_classifier_does_not_take_the_others_with_it():
    classifiers = {
        "slow": spies.SlowClassifier(),
        "failing": spies.FailingClassifier(),
        "knn": "knn",
    }
    result = run({"first": spies.FirstFeatures()}, None, classifiers, time_limit=3)
    assert result.failures() == []
    rows = {row["classifier"]: row for row in result.rows()}
    assert rows["slow"]["reason"] == "exceeded 3 s"
    assert rows["failing"]["reason"] == "RuntimeError: not today"
    assert rows["knn"]["reason"] is None
    assert rows["knn"]["accuracy"] > 0


def test_what_is_done_is_not_done_again(tmp_path):
    seen = tmp_path / "seen"
    spy = spy_on(seen)

    def go(expected, **changes):
        before = len(spies.fits(seen))
        options = {"selectors": {"spy": spy}, "datasets": {"data": (X, Y)}}
        options |= {"protocol": ev.RandomSplits(n_runs=2), "folder": tmp_path / "out"}
        result = run(**(options | changes))
        assert len(spies.fits(seen)) - before == expected
        return result

    first = go(2)
    again = go(0)
    assert first.as_csv() == again.as_csv()
    go(0, selectors={"another name": spy}, datasets={"another": (X, Y)})
    more = go(0, classifiers=("knn", "svm"))  # the selection is known
    assert {row["classifier"] for row in more.rows()} == {"knn", "svm"}
    assert all(row["accuracy"] is not None for row in more.rows())
    go(1, protocol=ev.RandomSplits(n_runs=3))
    go(2, protocol=ev.RandomSplits(n_runs=2, test_size=0.25))
    go(2, seed=1)
    other = X.copy()
    other[0, 0] = 1 - other[0, 0]
    go(2, datasets={"data": (other, Y)})
    go(2, selectors={"spy": spy_on(seen, 3)})
    go(0)


def test_a_damaged_cell_is_done_again(tmp_path):
    seen, out = tmp_path / "seen", tmp_path / "out"
    spy = {"spy": spy_on(seen)}
    first = spies.without_costs(run(spy, folder=out))
    (cell,) = (out / "cells").glob("*.json")
    text = cell.read_text()
    number = f'"accuracy": {first[0]["accuracy"]}'
    flipped = text.replace(number, '"accuracy": 0.999')
    assert flipped != text
    for i, damaged in enumerate((text[:-40], flipped, "", '{"sha256": 1}')):
        cell.write_text(damaged)
        assert spies.without_costs(run(spy, folder=out)) == first
        assert len(spies.fits(seen)) == 2 + i


def test_limits_are_kept_until_they_are_raised_and_errors_tried_again(tmp_path):
    def reason_and_progress(how, limit):
        at = []
        experiment = Experiment(
            {"s": spies.Misfit(how)}, {"d": GIVEN}, ["knn"], time_limit=limit
        )
        result = experiment.run(
            tmp_path, progress=lambda now: at.append((now.n_kept, now.n_done))
        )
        return result.failures()[0][3], at[-1]

    assert reason_and_progress("sleep", 1) == ("exceeded 1 s", (0, 1))
    assert reason_and_progress("sleep", 0.5) == ("exceeded 1 s", (1, 0))
    assert reason_and_progress("sleep", 1.5) == ("exceeded 1.5 s", (0, 1))
    for _ in range(2):
        assert reason_and_progress("raise", 60)[1] == (0, 1)


def test_keys_tell_apart_what_differs():
    different = [
        SelectKBest(k=3),
        SelectKBest(k=4),
        SelectKBest(mutual_info_classif, k=3),
        SelectKBest(partial(mutual_info_classif, n_neighbors=3), k=3),
        SelectKBest(partial(mutual_info_classif, n_neighbors=5), k=3),
        SAOLA(measure=FisherZ(alpha=0.01)),
        SAOLA(measure=FisherZ(alpha=0.05)),
        ev.BestOf("ofs", "n_features", [1, 2]),
        ev.BestOf("ofs", "n_features", [1, 2], judged_on="test"),
        RFECV(ev.as_classifier("svm"), cv=KFold(3)),
        RFECV(ev.as_classifier("svm"), cv=KFold(4)),
        spies.FirstFeatures(np.int64(3)),
        spies.RandomFeature(np.random.default_rng(1)),
        spies.RandomFeature(np.random.default_rng(2)),
    ]
    assert len({key_of({"x": describe(s)}) for s in different}) == len(different)
    for selector in different:
        assert describe(selector) == describe(deepcopy(selector))


def test_a_random_selector_is_seeded_by_the_experiment():
    selectors = {"random": spies.RandomFeature()}

    def chosen(seed):
        result = run(selectors, {"d": (X, Y)}, protocol=SameRows(), seed=seed)
        return [s.tolist() for s in result.selections("d", "random")]

    assert chosen(1) == chosen(1) != chosen(2)
    assert len({str(s) for s in chosen(1)}) > 1  # each split has its own


@pytest.mark.parametrize(
    ("name", "protocol", "labels"),
    [
        ("saola", ev.FeatureOrders(n=3), None),
        ("group-saola", ev.RandomGroups(n_groups=6, n_runs=2), None),
        ("group-saola", ev.GivenSplit(), np.array(list("abc") * 20)),
    ],
    ids=["orders", "random groups", "groups of the task"],
)
def test_features_arrive_in_the_order_and_the_groups_that_are_asked_for(
    name, protocol, labels
):
    selector = ev.as_selector(name).set_params(measure="su")
    data = {"d": replace(GIVEN, groups=labels)}
    result = run({"s": selector, "ogfs": "ogfs"}, data, protocol=protocol)
    assert result.failures() == []
    rows = [row for row in result.rows() if row["selector"] == "s"]
    for i, selected in enumerate(result.selections("d", "s")):
        split = protocol.split(i, GIVEN.rows().shape, 0)
        order = np.arange(60) if split.order is None else split.order
        groups = labels if split.groups is None else split.groups
        options = {} if groups is None else {"groups": groups}
        selector.fit(X[:80][:, order], Y[:80], **options)
        assert selected.tolist() == order[selector.selected_].tolist()
        n_groups = None if groups is None else len(selector.selected_groups_)
        assert rows[i]["n_groups"] == n_groups


def test_the_folder_says_what_was_selected_and_with_what(tmp_path):
    names = [f"g{i}" for i in range(X.shape[1])]
    task = replace(GIVEN, names=names)
    result = run({"s": SAOLA(measure="su")}, {"data": task}, folder=tmp_path, seed=7)
    (cell,) = (tmp_path / "cells").glob("*.json")
    (selection,) = json.loads(cell.read_text())["selections"]
    assert selection["names"] == [f"g{i}" for i in result.selections("data", "s")[0]]
    about = json.loads((tmp_path / "experiment.json").read_text())
    assert about["settings"]["seed"] == 7
    assert set(about["provenance"]["versions"]) >= {"featstream", "numpy", "python"}
    selector = about["settings"]["selectors"]["s"]
    assert selector["class"].startswith("featstream.selectors.saola.saola.SAOLA")
    assert selector["parameters"]["measure"] == "su"
    assert about["datasets"]["data"]["n_features"] == 60
    assert result.about["settings"] == about["settings"]
    assert not (tmp_path / "data").exists()


def test_one_folder_one_run(tmp_path):
    out = tmp_path / "out"
    inner = Experiment({"first": spies.FirstFeatures()}, {"d": GIVEN}, ["knn"])

    def meddle(at):
        with pytest.raises(RunError, match="is being written by another process"):
            inner.run(out)

    inner.run(out, progress=meddle)


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunError, match=r"not the folder of a comparison.*thesis\.tex"):
        run(["saola"], folder=tmp_path)
    for path in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "out"):
        with pytest.raises(RunError, match=r"is a file\. Choose a folder"):
            run(["saola"], folder=path)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"selectors": ["saolo"]}, "Unknown selector 'saolo'. Did you mean 'saola'"),
        ({"selectors": [SAOLA]}, "A selector must be a name or"),
        ({"selectors": [SAOLA(), SAOLA(bound="max")]}, "Two selectors are called 'SAO"),
        ({"selectors": []}, "`selectors` of Experiment is empty"),
        ({"classifiers": ["knm"]}, "Unknown classifier 'knm'. Did you mean 'knn'"),
        ({"datasets": [(X, Y)]}, "need names"),
        ({"protocol": "cv"}, "`protocol` of Experiment must be a protocol such as"),
        ({"protocol": {"x": ev.GivenSplit()}}, "Unknown data set in `protocol` 'x'"),
        ({"seed": None}, "`seed` of Experiment must be an integer"),
        ({"time_limit": 0}, "`time_limit` of Experiment must be a positive number"),
        ({"time_limit": math.nan}, "a positive number. Got nan"),
        ({"memory_limit": "much"}, "a size such as 500MB or 2GB. Got 'much'"),
    ],
)
def test_mistakes_are_named(change, text):
    options = {"selectors": ["saola"], "datasets": {"data": GIVEN}} | change
    with pytest.raises(ParameterError, match=text):
        Experiment(**options)


@pytest.mark.parametrize(
    ("task", "error", "text"),
    [
        ((X, Y[:-1]), DataError, "X_train has 120 rows, and y_train 119"),
        ((X, np.zeros(120)), DataError, "single class"),
        (Task(X, Y, X[:, :5], Y), DataError, "X_test has 5 features, and X_train 60"),
        (Task(X, Y, X), DataError, "both X_test and y_test"),
        (Task(X, Y, groups=[1, 2]), DataError, "`groups` of a Task has 2 entries for"),
        ((X, None), DataError, "needs y_train"),
        ((X[:, :5], Y), ParameterError, "`n_groups` of random_groups"),
    ],
)
def test_wrong_data_are_named_before_anything_is_done(task, error, text, tmp_path):
    datasets, groups = {"good": (X, Y), "bad": task}, ev.RandomGroups(n_groups=6)
    with pytest.raises(error, match="Data set 'bad': .*" + text):
        run(["saola"], datasets, folder=tmp_path, protocol=groups)
    assert list((tmp_path / "cells").iterdir()) == []


@pytest.mark.parametrize(
    "protocol", [ev.FeatureOrders(n=2), ev.RandomGroups(n_groups=5, n_runs=2)]
)
def test_errors_name_features_and_rows_as_the_data_do(protocol):
    holes = X.astype(float)
    row = int(ev.RandomSplits().split(0, GIVEN.rows().shape, 0).train[20])
    holes[row, 50] = np.nan
    names = [f"gene {i}" for i in range(60)]
    task = replace(GIVEN, X_train=holes[:80], names=names)
    options = {"selectors": ["saola"], "protocol": protocol}
    result = run(**options, datasets={"named": task, "plain": (holes, Y)})
    reasons = {dataset: reason for dataset, *_, reason in result.failures()}
    fault = f"has 1 missing value (NaN), the first at row {row}."
    assert f"Feature 'gene 50' {fault}" in reasons["named"]
    assert f"Feature 'x50' {fault}" in reasons["plain"]


def test_a_class_with_fewer_rows_than_folds_is_reported_once(recwarn):
    labels = np.where(np.arange(120) < 2, "rare", np.where(Y[-1] == Y, "a", "b"))
    run(["saola"], {"data": (X, labels)}, protocol=ev.CrossValidation(4))
    (message,) = (str(warning.message) for warning in recwarn)
    assert message.startswith("Data set 'data': class 'rare' has 2 rows for 4 folds.")


def test_choosing_within_too_few_rows_is_said():
    rows = np.r_[np.flatnonzero(Y == 0)[:5], np.flatnonzero(Y == 1)[:5]]
    chosen = {"chosen": ev.BestOf("ofs", "n_features", [1, 2])}
    result = run(chosen, {"few": (X[rows], Y[rows])}, protocol=ONCE)
    ((*_, reason),) = result.failures()
    assert reason.startswith("DataError: BestOf chooses by 5 folds of the training")


def test_what_cannot_be_sent_to_a_process_is_said():
    class Local(spies.FirstFeatures):
        pass

    with pytest.raises(ParameterError, match=r"cannot be sent to another.*Local"):
        run({"local": Local()})


def test_every_module_that_can_decide_is_in_the_key_of_a_cell():
    """By the listing of the package: a module that moves or is new stays in the key."""
    root = Path(featstream.__file__).parent
    modules = pkgutil.walk_packages(featstream.__path__, "featstream.")
    names = {m.name.partition(".")[2].split(".")[0] for m in modules}
    paths = [path.relative_to(root) for path in deciding_files()]
    found = {path.parts[0].removesuffix(".py") for path in paths}
    assert names - found == {"cli", "reporting"}
    assert Path("paper/j48.py") in paths

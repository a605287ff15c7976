import base64
import json
import re
import urllib.error
import urllib.request
import zlib
from functools import partial

import numpy as np
import pytest

import featstream
from featstream import FCBF, OGFS, SAOLA, FastOSFS, SymmetricalUncertainty
from featstream.cli import main
from featstream.errors import DataError, ParameterError
from featstream.protocols import Fate
from featstream.reporting import fates
from featstream.reporting.alerts import find_alerts
from featstream.reporting.fates import pack_fates
from featstream.reporting.history import History
from featstream.reporting.live import live
from featstream.reporting.page import policy
from featstream.reporting.report import selection_page
from scores import relevances


def unpack(text):
    return zlib.decompress(base64.b64decode(text))


def words(raw, n):
    """Numbers of four bytes: first the lowest bytes of all."""
    planes = np.frombuffer(raw, np.uint8, 4 * n).reshape(4, n)
    return planes.T.copy().view("<u4")[:, 0]


def numbers(packed):
    return np.cumsum(words(unpack(packed["data"]), packed["n"]), dtype=np.int64)


def read_back(packed):
    """Fates, scores and witnesses, in the way of the page."""
    raw, n = unpack(packed["data"]), packed["n"]
    fate = np.frombuffer(raw, np.uint8, n)
    n_witness, n_scores = int((fate >= 2).sum()), n
    if packed["relevantOnly"]:
        n_scores = int((fate >= 1).sum())
    scores = None
    if packed["digits"]:
        scores = words(raw[n + 4 * n_witness :], n_scores).view("<f4")
    return fate, scores, numbers(packed["witnesses"])[words(raw[n:], n_witness)]


@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.9])
@pytest.mark.parametrize("room", [10**6, 2_000, 1_500, 1_300, 600, 200])
def test_less_room_means_fewer_digits_then_fewer_features(
    monkeypatch, room, threshold, fitted
):
    monkeypatch.setattr(fates, "ROOM", room)
    result = fitted(measure=SymmetricalUncertainty(threshold=threshold)).result_
    packed = pack_fates(History(result))
    fate, scores, witness = read_back(packed)
    places, records = np.arange(300), result.trace.records
    if packed["scope"] == "all":
        assert len(packed["data"]) <= room
    else:
        places = numbers(packed["places"])
        ever = np.isin(records["fate"], (Fate.KEPT, Fate.DISPLACED))
        assert places.tolist() == np.flatnonzero(ever).tolist()
    assert fate.tolist() == records["fate"][places].tolist()
    assert witness.tolist() == records["witness"][places][fate >= 2].tolist()
    if scores is not None:
        chosen = records["relevance"][places]
        if packed["relevantOnly"]:
            chosen = chosen[fate != 0]
        tolerance = {2: 2**-8, 6: 0.0}[packed["digits"]]
        np.testing.assert_allclose(scores, chosen, rtol=tolerance)
    if room == 10**6:
        assert (packed["scope"], packed["digits"]) == ("all", 6)


def test_names_are_found_where_they_fit(monkeypatch, fitted):
    names = [f"gene_{i * 7919 % 1000}_{i}" for i in range(300)]
    history = History(fitted(names).result_)
    packed = pack_fates(history)
    assert unpack(packed["names"]).decode().split("\n") == names
    monkeypatch.setattr(fates, "ROOM_FOR_NAMES", 700)
    fewer = pack_fates(history)
    assert fewer["named"] == "once kept"
    found = unpack(fewer["names"]).decode().split("\n")
    assert found == [names[i] for i in numbers(fewer["namedAt"])]
    monkeypatch.setattr(fates, "ROOM", 200)  # room for the features once kept alone
    records, least = history.trace.records, pack_fates(history)
    assert least["scope"] == "once kept"
    witnesses = records["witness"][numbers(least["places"])]
    assert set(witnesses[witnesses >= 0]) <= set(numbers(least["namedAt"]))


def test_reasons_are_those_of_explain(fitted, data):
    selector = fitted()
    reasons, trace = (
        pack_fates(History(selector.result_))["reasons"],
        selector.result_.trace,
    )
    for arrival in range(300):
        if (fate := trace.fate(arrival)) is not Fate.KEPT:
            names = {"name": f"'x{arrival}'", "other": f"'x{trace.witness(arrival)}'"}
            relevance = f"{trace.relevance(arrival):.6g}"
            said = reasons[fate].format(**names, relevance=relevance)
            assert said == selector.explain(arrival)
    # Reasons that name further features are not repeated for all.
    reasons = pack_fates(History(FastOSFS(test="g2").fit(*data).result_))["reasons"]
    text = "{name} is redundant beside {other}; its relevance {relevance}."
    assert reasons[Fate.REDUNDANT] == text


def codes(X, y, threshold=0.0):
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=threshold)).fit(X, y)
    return {alert.code for alert in find_alerts(History(selector.result_))}


def test_alerts_name_what_is_wrong(data):
    X, y = data
    found = codes(X, y)
    assert "nearly-all-relevant" in found
    assert not found & {"class-imbalance", "constant-columns", "nothing-kept"}
    assert "class-imbalance" in codes(X, np.arange(60) < 4)
    with_constants = X.copy()
    with_constants[:, 100:150] = 1
    assert "constant-columns" in codes(with_constants, y)
    assert "nearly-all-relevant" not in codes(X, y, 0.2)
    scores = relevances(SymmetricalUncertainty(), X, y)
    chosen = int(np.argsort(scores)[-40])
    twice, at = np.column_stack([X, X[:, chosen]]), float(scores[chosen])
    assert "ties-at-threshold" in codes(twice, y, at)
    assert "ties-at-threshold" not in codes(twice, y, at * 1.00001)
    assert "ties-among-kept" in codes(np.column_stack([X, X]), y)


@pytest.mark.parametrize(
    ("n_rare", "n_others", "is_said"),
    [
        (15, 185, True),  # 15 rows are enough, 7.5% of all are not
        (9, 11, True),  # 45% are enough, 9 rows are not
        (10, 90, False),  # ten rows, and a tenth of all
    ],
)
def test_a_class_is_rare_by_its_share_or_by_its_rows(n_rare, n_others, is_said):
    y = np.repeat([1, 0], [n_rare, n_others])
    assert ("class-imbalance" in codes(y[:, None], y)) == is_said


def test_unrelated_features_are_called_chance_and_a_real_one_is_not():
    rng = np.random.default_rng(0)
    y, noise = rng.integers(0, 2, 80), rng.integers(0, 2, (80, 200))
    alerts = find_alerts(History(SAOLA(measure="su").fit(noise, y).result_))
    (alert,) = (a for a in alerts if a.code == "chance-level")
    assert alert.is_serious
    assert "chance-level" not in codes(np.column_stack([noise, y]), y, 0.5)


def test_a_set_that_grows_to_the_end_is_said_to_grow():
    y = np.repeat([0, 1], 64)
    X = np.zeros((128, 400), int)
    X[:, :20] = np.random.default_rng(0).integers(0, 2, (128, 20))
    for j in range(300, 400):  # rare features apart from each other: all stay
        X[64 + (j - 300) % 64, j] = 1
    assert "still-growing" in codes(X, y)
    assert "still-growing" not in codes(X[:, :300], y)


def test_the_page_has_one_script_and_allows_no_other(fitted):
    text = selection_page(fitted(["</script>"] + [f"f{i}" for i in range(299)]).result_)
    assert text.count("</script>") == 2  # the data and the script
    assert "style=" not in text
    assert "https://" not in text
    (said,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert said == policy()
    assert "unsafe" not in said
    assert said.startswith("default-src 'none'")


def test_a_report_replaces_reports_only(tmp_path, fitted):
    result = fitted().result_
    path = result.report(tmp_path / "report.html")
    assert result.report(path) == path
    other = tmp_path / "other.html"
    other.write_text("<html>mine</html>")
    for refused, reason in (
        (other, "is not a report"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "report.html", "There is no folder"),
    ):
        with pytest.raises(ParameterError, match=reason):
            result.report(refused)
    assert other.read_text() == "<html>mine</html>"


HIGH = SymmetricalUncertainty(threshold=0.99)


@pytest.mark.parametrize(
    ("selector", "shown", "hidden"),
    [
        (SAOLA(), ["figure-timeline", "figure-redundancy"], "group-table"),
        (SAOLA(trace="kept"), ["figure-timeline", "not recorded"], "group-table"),
        (SAOLA(trace=None), ["figure-redundancy", "without a trace"], "timeline"),
        (SAOLA(measure=HIGH), ["No feature is kept.", "nothing-kept"], "kept-table"),
        (FCBF(measure="su"), ["figure-distribution"], "figure-timeline"),
        (OGFS(group_size=10), ["group-table", "figure-timeline"], "without a trace"),
    ],
)
def test_a_report_shows_what_a_selector_has_recorded(selector, shown, hidden, data):
    result = selector.fit(*data).result_
    text = selection_page(result).partition("<script")[0]
    assert [words for words in shown if words not in text] == []
    assert hidden not in text
    listed = re.findall(r"<bdi>(x\d+)</bdi>", text.partition('"kept-table"')[2])
    assert listed[: len(result)] == [name for name, _, _ in result.ranked()]


def test_the_command_writes_the_report_of_a_run(tmp_path, capsys, data):
    X, y = data
    run = tmp_path / "run"
    SAOLA(measure="su").start(y).consume(X, checkpoint=run)
    assert main(["report", str(run)]) == 0
    assert "written" in capsys.readouterr().out
    text = (run / "report.html").read_text("utf-8")
    assert str(run) in text
    assert "featstream explain" in text
    assert main(["report", str(run), "-o", str(tmp_path / "x.html"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bytes"] == (tmp_path / "x.html").stat().st_size
    assert main(["report", str(tmp_path / "nothing")]) == 1
    assert "no folder" in capsys.readouterr().err
    assert featstream.resume(run).result_.peak_memory > 1e6


def test_the_live_page_answers_requests_with_the_token_only(tmp_path, capsys, data):
    X, y = data
    ask = partial(urllib.request.urlopen, timeout=10)
    selector = SAOLA(measure="su").start(y)
    with live(selector) as page:
        selector.consume(X, progress=page)
        with ask(page.url) as answer:
            assert "Waiting for the first features" in answer.read().decode()
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        root = page.url.rsplit("/", 2)[0]
        for wrong in (f"{root}/", page.url[:-2] + "/", page.url[:-1], page.url + "x"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                ask(wrong)
        elsewhere = urllib.request.Request(page.url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            ask(elsewhere)
    with pytest.raises(urllib.error.URLError):
        ask(page.url)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    assert main(["select", str(tmp_path / "data.npz"), "--live", "-q"]) == 0
    assert "live: http://127.0.0.1:" in capsys.readouterr().err


def test_what_a_selection_may_have_lost_is_bounded_by_hand():
    """Of eight samples x0 leaves five alike, one of them of the second class."""
    y = [0, 0, 0, 1, 1, 1, 1, 0]
    X = np.c_[[0, 0, 0, 1, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 1]]
    result = SAOLA(measure="su").fit(X, y).result_
    assert result.names == ("x0",)
    gap = result.gap_bound()
    left = -(1 / 5 * np.log2(1 / 5) + 4 / 5 * np.log2(4 / 5)) * 5 / 8
    assert gap.bits == pytest.approx(left, abs=1e-12)
    assert (gap.entropy, gap.n_patterns) == (1.0, 2)
    assert "at most 0.45 bits about the class" in selection_page(result)


def test_where_every_row_is_another_the_bound_says_little():
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = (y[:, None] + (rng.random((20, 12)) < 0.35)) % 2
    result = SAOLA(measure="su").fit(X, y).result_
    gap = result.gap_bound()
    assert gap.n_patterns == len(np.unique(X[:, result.indices], axis=0)) > 10
    assert "this bound says little" in selection_page(result)


def test_only_discrete_selections_have_a_gap_bound():
    X = np.random.default_rng(0).normal(size=(40, 5))
    result = SAOLA(measure="fisher-z").fit(X, X[:, 0] > 0).result_
    with pytest.raises(DataError, match="discrete columns"):
        result.gap_bound()
    assert "gap_bound()" not in selection_page(result)

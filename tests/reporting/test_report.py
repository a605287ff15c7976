import base64
import json
import re
import urllib.error
import urllib.request
import zlib

import numpy as np
import pytest

import featstream
from featstream import FCBF, SAOLA, FastOSFS, SymmetricalUncertainty
from featstream.cli import main
from featstream.errors import ParameterError
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


@pytest.mark.parametrize("threshold", [0.0, 0.9], ids=["some", "nothing relevant"])
def test_fates_come_back_as_they_were(threshold, fitted):
    selector = fitted(measure=SymmetricalUncertainty(threshold=threshold))
    records = selector.result_.trace.records
    packed = pack_fates(History(selector.result_))
    fate, scores, witness = read_back(packed)
    assert packed["scope"] == "all"
    assert fate.tolist() == records["fate"].tolist()
    assert scores.tolist() == records["relevance"].tolist()
    assert witness.tolist() == records["witness"][fate >= 2].tolist()


@pytest.mark.parametrize("room", [2_000, 1_500, 1_300, 600, 200])
def test_less_room_means_fewer_digits_then_fewer_features(monkeypatch, room, fitted):
    monkeypatch.setattr(fates, "ROOM", room)
    result = fitted(measure=SymmetricalUncertainty(threshold=0.02)).result_
    packed = pack_fates(History(result))
    fate, scores, _ = read_back(packed)
    records = result.trace.records
    places = np.arange(300)
    if packed["scope"] == "all":
        assert len(packed["data"]) <= room
    else:
        places = numbers(packed["places"])
        ever = np.isin(records["fate"], (Fate.KEPT, Fate.DISPLACED))
        assert places.tolist() == np.flatnonzero(ever).tolist()
    assert fate.tolist() == records["fate"][places].tolist()
    if scores is not None:
        chosen = records["relevance"][places]
        if packed["relevantOnly"]:
            chosen = chosen[fate != 0]
        tolerance = {2: 2**-8, 6: 0.0}[packed["digits"]]
        np.testing.assert_allclose(scores, chosen, rtol=tolerance)


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


def test_reasons_are_those_of_explain(fitted):
    selector = fitted()
    packed = pack_fates(History(selector.result_))
    trace = selector.result_.trace
    for arrival in range(300):
        fate = trace.fate(arrival)
        if fate is Fate.KEPT:
            continue
        other = trace.witness(arrival)
        said = packed["reasons"][int(fate)].format(
            name=f"'x{arrival}'",
            relevance=f"{trace.relevance(arrival):.6g}",
            other=f"'x{other}'",
        )
        assert said == selector.explain(arrival)


def test_a_reason_that_names_other_features_is_not_repeated_for_all(data):
    result = FastOSFS(test="g2").fit(*data).result_
    reasons = pack_fates(History(result))["reasons"]
    text = "{name} is redundant beside {other}; its relevance {relevance}."
    assert reasons[2] == text


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
    assert "nothing-kept" in codes(X, y, 0.99)


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


def test_features_at_the_threshold_are_counted(data):
    X, y = data
    scores = relevances(SymmetricalUncertainty(), X, y)
    chosen = int(np.argsort(scores)[-40])
    X, at = np.column_stack([X, X[:, chosen]]), float(scores[chosen])
    assert "ties-at-threshold" in codes(X, y, at)
    assert "ties-at-threshold" not in codes(X, y, at * 1.00001)


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
    with pytest.raises(ParameterError, match="is not a report"):
        result.report(other)
    with pytest.raises(ParameterError, match="is a folder"):
        result.report(tmp_path)
    with pytest.raises(ParameterError, match="There is no folder"):
        result.report(tmp_path / "no" / "report.html")
    assert other.read_text() == "<html>mine</html>"


def test_a_trace_of_less_makes_a_report_of_less(fitted):
    full = selection_page(fitted().result_)
    kept = selection_page(fitted(trace="kept").result_)
    none = selection_page(fitted(trace=None).result_)
    for name in ("figure-timeline", "figure-redundancy", "kept-table"):
        assert name in full
        assert (name in none) == (name in ("figure-redundancy", "kept-table"))
    assert "figure-timeline" in kept
    assert "not recorded" in kept
    assert "without a trace" in none


def test_a_selection_of_nothing_has_a_report(fitted):
    result = fitted(measure=SymmetricalUncertainty(threshold=0.99)).result_
    text = selection_page(result)
    assert "No feature is kept." in text
    assert "nothing-kept" in text


def test_a_batch_selector_has_a_report_without_a_course(data):
    X, y = data
    result = FCBF(measure="su").fit(X, y).result_
    text = selection_page(result)
    assert "figure-timeline" not in text
    assert "figure-distribution" in text
    table = text[text.index("kept-table") :]
    order = [table.index(f">{name}</bdi></th>") for name in result.names]
    assert order == sorted(order)


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


def test_the_live_page_answers_who_knows_the_token_and_nobody_else(data):
    X, y = data
    selector = SAOLA(measure="su").start(y)
    with live(selector) as page:
        selector.consume(X, progress=page)
        with urllib.request.urlopen(page.url, timeout=10) as answer:
            text = answer.read().decode()
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert "Waiting for the first features" in text
        root = page.url.split("/", 3)[:3]
        for wrong in ("/".join([*root, ""]), page.url[:-2] + "/", page.url + "x"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(wrong, timeout=10)
        elsewhere = urllib.request.Request(page.url, headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(elsewhere, timeout=10)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(page.url, timeout=10)


def test_select_serves_a_live_page(tmp_path, capsys, data):
    X, y = data
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=y)
    assert main(["select", str(path), "--live", "-q"]) == 0
    assert "live: http://127.0.0.1:" in capsys.readouterr().err

"""Reports and the live page in a real browser."""

import re
import time
from itertools import pairwise

import numpy as np
import pytest

from browser import Tab, open_browser
from featstream import SAOLA
from featstream.datasets import make_stream
from featstream.evaluation import Experiment, RandomSplits
from featstream.protocols import Fate
from featstream.reporting.live import live
from featstream.reporting.report import selection_page
from featstream.sources import ArraySource
from shared import load, shared

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "<svg/onload=window.hacked=1>",
    "'; window.hacked = 1; //",
    "{{constructor.constructor('window.hacked=1')()}}",
    "gene\u202e\u2066evil\u2069",
    "\u200f\u200e",
    "line\nbreak\r\ttab\x00nul\x1b[31m",
    "&lt;b&gt;&amp;",
    "<!--",
    "]]>",
    "x" * 4096,
    "\u2028\u2029",
    "javascript:alert(1)",
    "</title><base href=//evil.example>",
    "{name} {other} $& $1",
]


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture
def tab(browser, request):
    """A page in which nothing goes wrong, and that asks for nothing from elsewhere."""
    with Tab(browser, **getattr(request, "param", {})) as found:
        yield found


@pytest.fixture(scope="module")
def dorothea(tmp_path_factory):
    arrays = load(shared("data", "dorothea.npz"))
    selector = SAOLA(measure="su").fit(arrays["X_train"], arrays["y_train"])
    path = tmp_path_factory.mktemp("dorothea") / "report.html"
    return selector, selector.result_.report(path)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    streams = {
        name: make_stream(n_samples=90, n_features=60, seed=seed)
        for seed, name in enumerate(("first", "<b>second</b>", "third"))
    }
    experiment = Experiment(
        {
            "SAOLA": SAOLA(measure="su"),
            "<i>max</i>": SAOLA(measure="su", bound="max"),
            "SAOLA without equal features": SAOLA(measure="su", ties="drop"),
        },
        {name: (s.X, s.y) for name, s in streams.items()},
        classifiers=["knn"],
        protocol=RandomSplits(n_runs=2),
    )
    path = tmp_path_factory.mktemp("comparison") / "report.html"
    return experiment.run().report(path)


def ask(page, name, answer):
    """Search for a feature, wait for the answer, and return its first line."""
    page.fill("#why-name", name)
    page.press("#why-name", "Enter")
    page.wait_for_selector(f"#answer p:has-text('{answer}')")
    return page.locator("#answer p").first.inner_text()


def test_the_report_of_dorothea_sorts_searches_and_explains(dorothea, tab):
    selector, path = dorothea
    page = tab.open(path)
    names = page.locator("#kept-table tbody tr:not([hidden]) th")
    head = page.locator("#kept-table th:nth-child(3)")
    assert names.first.inner_text() == selector.result_.ranked()[0][0]
    assert names.count() == 63
    first, last = selector.selected_.min(), selector.selected_.max()
    for order, top in (("descending", last), ("ascending", first)):  # by position
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        assert names.first.inner_text() == f"x{top}"
    page.fill("#filter", f"x{last}")
    assert f"x{last}" in names.all_inner_texts()
    assert names.count() < 63
    for fate in Fate:
        records = selector.result_.trace.records
        arrival = int(np.flatnonzero(records["fate"] == fate)[-1])
        said = ask(page, f"x{arrival}", f"x{arrival} ")
        if fate is Fate.KEPT:
            assert "is kept" in said
        else:  # scores have six digits in both
            assert said == selector.explain(arrival).replace("'", "")
    ask(page, "x100000", "No feature x100000 is recorded")


def test_marks_show_their_detail_on_hover_and_by_arrow_keys(dorothea, tab):
    page = tab.open(dorothea[1])
    mark = page.locator("#figure-size svg.wide rect.hit").nth(60)
    mark.scroll_into_view_if_needed()
    mark.hover()
    tip = page.locator(".tip")
    assert tip.is_visible()
    said = r"after [\d,]+ features: \d+ kept; \d+ displaced"
    assert re.search(said, tip.inner_text())
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    page.locator("#figure-accuracy .picture").focus()
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("1 features: accuracy")
    page.keyboard.press("ArrowRight")
    assert tip.inner_text().startswith("2 features: accuracy")


LOOKS = [{"width": w, "scheme": s} for w in (390, 1280) for s in ("light", "dark")]


@pytest.mark.parametrize("tab", LOOKS, indirect=True, ids=lambda look: str(look))
def test_nothing_is_wider_than_the_screen(tab, dorothea, comparison):
    for report in (dorothea[1], comparison):
        page = tab.open(report)
        assert page.evaluate("document.documentElement.scrollWidth") <= tab.width
        shown = page.locator(".picture svg:visible").count()
        assert shown == page.locator(".picture svg").count() / 2  # wide or narrow
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", colour)[:3]))
        assert (brightness < 200) == (tab.scheme == "dark")


def test_all_controls_have_names_and_headings_descend(dorothea, tab):
    page = tab.open(dorothea[1])
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll('input, button, [tabindex], svg[role]')]
          .filter(e => !(e.labels?.length || e.getAttribute('aria-label')
            || e.textContent.trim())).length"""
    )
    assert unnamed == 0
    levels = page.evaluate(
        "() => [...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])"
    )
    assert (levels[0], levels.count(1)) == (1, 1)
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_hostile_names_add_no_element(tab, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 200)), rng.integers(0, 2, 300)
    X[:, :40] = (X[:, :40] + y[:, None]) % 3  # some are kept, some removed
    counts = []
    hostile = [f"{HOSTILE[i % len(HOSTILE)]}{i or ''}" for i in range(200)]
    for names in ([f"f{i}" for i in range(200)], hostile):
        selector = SAOLA(measure="su").start(y).consume(ArraySource(X, names=names))
        path = selector.result_.report(tmp_path / f"{len(counts)}.html")
        page = tab.open(path)
        # Names in the timeline are drawn where there is room, by their length.
        others = "[...document.querySelectorAll(':not(.halo)')]"
        counts.append(page.evaluate(f"() => {others}.map(e => e.tagName).sort()"))
        assert page.locator(".halo").count() > 0
        assert page.locator(".halo *").count() == 0
        assert len(selector.result_) > 3
    assert counts[0] == counts[1]
    for i, name in enumerate(names[:16]):  # and each can be found by its own name
        ask(page, name if name.isprintable() else f"{i}", f"Position {i} in the source")
    assert page.evaluate("() => window.hacked") is None
    assert page.evaluate("() => document.querySelectorAll('img').length") == 0


def test_injected_script_is_refused(dorothea, tab):
    page = tab.open(dorothea[1])
    page.evaluate(
        """() => { const s = document.createElement('script');
        try { s.textContent = 'window.hacked = 1'; document.body.append(s); }
        catch (error) { /* trusted types refuse it */ } }"""
    )
    assert page.evaluate("() => window.hacked") is None
    tab.errors.clear()  # which say that it was refused


def test_the_report_of_a_comparison_on_three_data_sets(comparison, tab):
    page = tab.open(comparison)
    for name in ("ranks-0", "accuracy-0", "scatter-n_features", "scatter-seconds"):
        assert page.locator(f"#figure-{name} .picture svg:visible").count() == 1
    assert page.locator("b, i").count() == 0
    mark = page.locator("#figure-accuracy-0 svg.wide path[data-tip]").first
    mark.scroll_into_view_if_needed()
    mark.hover()
    assert page.locator(".tip").inner_text().startswith("SAOLA on first: 0.")
    page.click("#tables th:nth-child(2) button >> nth=0")


def test_the_live_page_follows_a_run_and_ends_with_it(tab):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 4000)), rng.integers(0, 2, 60)
    selector = SAOLA(measure="su").start(y)
    source = ArraySource(X, block_bytes=X.itemsize * 60 * 10)
    seen = []
    with live(selector) as served:
        page = tab.open(served.url)
        page.wait_for_selector("text=Waiting for the first features")

        def slowly(progress):
            served(progress)
            wanted, deadline = progress.n_seen, time.monotonic() + 20
            while wanted % 1000 == 0 and wanted not in seen:
                assert time.monotonic() < deadline
                served(progress)
                page.wait_for_timeout(100)
                shown = page.locator("#status").inner_text()
                if shown.startswith(f"{wanted:,} of 4,000"):
                    seen.append(wanted)

        selector.consume(source, progress=slowly)
    assert seen[:3] == [1000, 2000, 3000]
    page.wait_for_selector("text=The run is over")
    kept = page.locator("#kept-table tbody tr").count()
    assert kept == len(selector.result_)
    assert page.locator("#figure-timeline .picture svg:visible").count() == 1


def test_the_page_is_small_and_opens_soon(tab, tmp_path):
    n = 200_000
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (40, n), dtype=np.uint8)
    result = SAOLA(measure="su").fit(X, rng.integers(0, 2, 40)).result_
    path = tmp_path / "large.html"
    path.write_text(selection_page(result), "utf-8")
    assert path.stat().st_size < 3e6
    began = time.process_time()
    page = tab.open(path)
    assert page.evaluate("() => performance.timing.loadEventEnd > 0")
    assert time.process_time() - began < 2

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


LOCAL = "http://127.0.0.1:"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found


@pytest.fixture
def tab(browser):
    """A page in which nothing goes wrong, and that asks for nothing from elsewhere."""
    found = Tab(browser)
    yield found
    found.close()
    assert not found.errors
    assert not [url for url in found.foreign if not url.startswith(LOCAL)]


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


def test_the_report_of_dorothea_sorts_searches_and_explains(dorothea, tab):
    selector, path = dorothea
    page = tab.open(path)
    column = "#kept-table tbody tr:not([hidden]) th"
    assert page.locator(column).first.inner_text() == selector.result_.ranked()[0][0]
    assert page.locator(column).count() == 63

    page.click("#kept-table th:nth-child(3) button")  # by position, largest first
    last = int(selector.selected_.max())
    assert page.locator(column).first.inner_text() == f"x{last}"
    head = page.locator("#kept-table th:nth-child(3)")
    assert head.get_attribute("aria-sort") == "descending"
    page.click("#kept-table th:nth-child(3) button")
    assert page.locator(column).first.inner_text() == f"x{selector.selected_.min()}"

    page.fill("#filter", f"x{last}")
    assert f"x{last}" in page.locator(column).all_inner_texts()
    assert page.locator(column).count() < 63
    page.fill("#filter", "")

    trace = selector.result_.trace
    fates = trace.records["fate"]
    for fate in range(4):
        arrival = int(np.flatnonzero(fates == fate)[-1])
        page.fill("#why-name", f"x{arrival}")
        page.press("#why-name", "Enter")
        page.wait_for_function(
            "name => document.querySelector('#answer p')?.textContent.includes(name)",
            arg=f"x{arrival} ",
        )
        said = page.locator("#answer p").first.inner_text()
        expected = selector.explain(arrival).replace("'", "")
        if fate == 1:
            assert "is kept" in said
        else:  # scores have six digits in both
            assert said == expected
    page.fill("#why-name", "x100000")
    page.press("#why-name", "Enter")
    page.wait_for_selector("text=No feature x100000 is recorded")


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


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("report", ["dorothea", "comparison"])
def test_nothing_is_wider_than_the_screen(report, browser, width, scheme, request):
    tab = Tab(browser, width=width, scheme=scheme)
    found = request.getfixturevalue(report)
    page = tab.open(found if report == "comparison" else found[1])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    shown = page.locator(".picture svg:visible").count()
    assert shown == page.locator(".picture svg").count() / 2  # wide or narrow
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", dark)[:3]))
    assert (brightness < 200) == (scheme == "dark")
    assert not tab.errors
    tab.close()


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


def hostile_names(n):
    return [f"{HOSTILE[i % len(HOSTILE)]}{i or ''}" for i in range(n)]


def test_hostile_names_add_no_element(tab, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 200)), rng.integers(0, 2, 300)
    X[:, :40] = (X[:, :40] + y[:, None]) % 3  # some are kept, some removed
    plain = [f"f{i}" for i in range(200)]
    counts = []
    for names in (plain, hostile_names(200)):
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
        shown = name if name.isprintable() else f"{i}"
        page.fill("#why-name", shown)
        page.press("#why-name", "Enter")
        page.wait_for_selector(f"text=Position {i} in the source")
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
            if progress.n_seen % 1000 == 0:
                wanted = progress.n_seen
                deadline = time.monotonic() + 20
                while time.monotonic() < deadline:
                    served(progress)
                    page.wait_for_timeout(100)
                    shown = page.locator("#status").inner_text()
                    if shown.startswith(f"{wanted:,} of 4,000"):
                        seen.append(wanted)
                        break

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

"""Time and size of the report of 2,000,000 features, and the cost of the live page.

    python -m benchmarks.report [--features N]

The page is opened in headless chromium through playwright, where both are installed.
The live page is watched by a reader of its events in another process; the processor
time of drawing and sending is compared with that of the run.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from featstream import SAOLA, SymmetricalUncertainty
from featstream.reporting.live import _Handler, live
from featstream.sources import ArraySource


def bits(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Unrelated bits, and classes."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 256, (n_features, n_samples), dtype=np.uint8)
    return np.asfortranarray((drawn < 128).view(np.uint8).T), rng.integers(0, 2, 100)


def open_page(path: Path) -> float | None:
    """Seconds until the page is loaded; None without a browser."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if chromium is None:
        return None
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page()
        page.goto(path.as_uri())
        took = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"
        seconds = float(page.evaluate(took))
        browser.close()
    return seconds


WATCH = """
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
with urllib.request.urlopen(sys.argv[1] + "events") as events:
    while events.readline():
        pass
"""
"""A reader of the page and of its events, in a process of its own."""


class Cost(NamedTuple):
    """What a live page cost a run."""

    share: float  # of the processor time of the run
    n_drawn: int
    seconds: float  # of the processor, for the run


def cost_of_page(X: np.ndarray, y: np.ndarray, rounds: int) -> Cost:
    """Processor time of drawing and of sending, against that of the whole run."""
    sending = 0.0
    plain = _Handler._answer

    def timed(handler: _Handler, *answer: object) -> None:
        nonlocal sending
        began = time.thread_time()
        plain(handler, *answer)
        sending += time.thread_time() - began

    _Handler._answer = timed
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.05)).start(y)
    try:
        with live(selector) as page:
            reader = subprocess.Popen([sys.executable, "-c", WATCH, page.url])
            while not page._n_watching:
                time.sleep(0.01)
            began = time.process_time()
            for _ in range(rounds):
                selector.consume(ArraySource(X), progress=page)
            seconds = time.process_time() - began
            spent, n_drawn = page.spent, page.n_drawn
        reader.wait()
    finally:
        _Handler._answer = plain
    return Cost((spent + sending) / seconds, n_drawn, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--rounds", type=int, default=16, help="how often they arrive, for the page"
    )
    arguments = parser.parse_args()
    X, y = bits(100, arguments.features)
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.05)).fit(X, y)
    path = Path(tempfile.mkdtemp()) / "report.html"
    began, cpu = time.perf_counter(), time.process_time()
    selector.result_.report(path)
    print(
        f"report of {arguments.features:,} features: "
        f"{time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s CPU), "
        f"{path.stat().st_size / 1e6:.2f} MB"
    )
    opened = open_page(path)
    if opened is not None:
        print(f"opened in {opened:.2f} s")
    costs = [cost_of_page(X, y, arguments.rounds) for _ in range(arguments.repeats)]
    shares = [cost.share for cost in costs]
    drawn = [cost.n_drawn for cost in costs]
    seconds = statistics.median(cost.seconds for cost in costs)
    print(
        f"live page during {arguments.rounds * X.shape[1]:,} features: "
        f"{statistics.median(shares):.2%} of the processor time of the run, at most "
        f"{max(shares):.2%} in {arguments.repeats} runs; figures drawn {min(drawn)} to "
        f"{max(drawn)} times in {seconds:.1f} s of it"
    )


if __name__ == "__main__":
    main()

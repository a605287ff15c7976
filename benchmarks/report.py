"""Time and size of the report of 2,000,000 features, and the cost of the live page.

    python -m benchmarks.report [--features N]

The page is opened in headless chromium through playwright, where both are installed.
The live page is watched by a reader of its events; the time in which the run was held
up by it is compared with the time of the run.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from featstream import SAOLA, SymmetricalUncertainty
from featstream.reporting.live import live
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


def watch(url: str) -> None:
    """Read the page and its events until the run is over."""
    urllib.request.urlopen(url).read()
    with urllib.request.urlopen(url + "events") as events:
        while events.readline():
            pass


def share_of_drawing(X: np.ndarray, y: np.ndarray) -> float:
    """Share of a run in which it was held up by its live page."""
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.05)).start(y)
    with live(selector) as page:
        threading.Thread(target=watch, args=(page.url,), daemon=True).start()
        began = time.perf_counter()
        selector.consume(ArraySource(X), progress=page)
        return page.spent / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    X, y = bits(100, arguments.features)
    long = np.hstack([X] * 4)
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.05)).fit(X, y)
    path = Path(tempfile.mkdtemp()) / "report.html"
    began, cpu = time.perf_counter(), time.process_time()
    selector.result_.report(path)
    print(
        f"report of {arguments.features:,} features: "
        f"{time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s CPU), "
        f"{path.stat().st_size / 1e6:.2f} MB"
    )
    seconds = open_page(path)
    if seconds is not None:
        print(f"opened in {seconds:.2f} s")
    shares = [share_of_drawing(long, y) for _ in range(arguments.repeats)]
    print(
        f"live page during {long.shape[1]:,} features: held the run up for "
        f"{statistics.median(shares):.2%} of its time, at most {max(shares):.2%} "
        f"in {arguments.repeats} runs"
    )


if __name__ == "__main__":
    main()

"""Time and size of the report of 2,000,000 features, and the cost of the live page.

    python -m benchmarks.report [--features N]

The page is opened in headless chromium through playwright, where both are installed.
The live page is watched by a reader of its events; runs with and without it
alternate, and CPU seconds of the whole process are compared.
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


def run(X: np.ndarray, y: np.ndarray, *, is_live: bool) -> tuple[float, float]:
    """Wall and CPU seconds of a run."""
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.05)).start(y)
    source = ArraySource(X)
    began, cpu = time.perf_counter(), time.process_time()
    if is_live:
        with live(selector) as page:
            threading.Thread(target=watch, args=(page.url,), daemon=True).start()
            selector.consume(source, progress=page)
            took = time.perf_counter() - began, time.process_time() - cpu
    else:
        selector.consume(source)
        took = time.perf_counter() - began, time.process_time() - cpu
    return took


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
    wall, cpu_ratio = [], []
    for _ in range(arguments.repeats):
        plain, served = run(long, y, is_live=False), run(long, y, is_live=True)
        wall.append(served[0] / plain[0])
        cpu_ratio.append(served[1] / plain[1])
    print(
        f"live page during {long.shape[1]:,} features: "
        f"{statistics.median(cpu_ratio):.3f} times the CPU seconds, "
        f"{statistics.median(wall):.3f} times the wall time "
        f"(median of {arguments.repeats})"
    )


if __name__ == "__main__":
    main()

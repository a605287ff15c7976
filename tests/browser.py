"""A real browser for tests of pages: Debian's chromium through playwright."""

import shutil
from contextlib import contextmanager

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OWN = ("file:", "data:", "http://127.0.0.1:")


@contextmanager
def open_browser():
    """A headless browser; the test is skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install playwright"
    )
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page in which nothing may go wrong, and that may ask only this machine."""

    def __init__(self, browser, *, width=1280, scheme="light"):
        self.width, self.scheme, self.errors = width, scheme, []
        viewport = {"width": width, "height": 900}
        self._context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self._page = self._context.new_page()
        self._page.on("console", self._note)
        self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._page.on("request", self._check)

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _check(self, request):
        if not request.url.startswith(OWN):
            self.errors.append(f"asks for {request.url}")

    def open(self, where):
        self._page.goto(where if isinstance(where, str) else where.as_uri())
        return self._page

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._context.close()
        assert not self.errors

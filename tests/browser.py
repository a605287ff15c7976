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
    """A page that notes what goes wrong in it, and what it asks the network for."""

    def __init__(self, browser, *, width=1280, scheme="light"):
        viewport = {"width": width, "height": 900}
        self._context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.page = self._context.new_page()
        self.errors, self.requests = [], []
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, where):
        self.page.goto(where if isinstance(where, str) else where.as_uri())
        return self.page

    def close(self):
        self._context.close()

    @property
    def foreign(self):
        """Requests that left the page."""
        own = ("file:", "data:")
        return [url for url in self.requests if not url.startswith(own)]

"""The live page of a run: served on this machine alone, and gone with the run.

The server listens on 127.0.0.1, at an address with a random token that only the
starting process knows. The page is drawn by the thread that selects, between two
blocks, when a browser is looking and at most for a small share of the time.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from featstream.progress import Observer, Progress
from featstream.reporting.history import History
from featstream.reporting.page import policy
from featstream.reporting.report import live_page, live_pieces, status

_SHARE = 50  # drawing takes at most about a fiftieth of the processor time
_EVERY = 0.5
_FIRST_COST, _COST_PER_FEATURE = 0.05, 1e-8
"""Seconds that drawing is expected to take, before it is known."""
_HEARTBEAT = 5.0
MAX_CONNECTIONS = 32
"""Others are closed: each is a thread, and any process of the machine can connect."""

_FAREWELL = 2.0  # seconds for browsers to hear that the run is over


class Live:
    """A page about a selector at work.

    Call it with every `Progress`, as `consume` does with ``progress=live``.

    ``show`` is a further observer, such as the line in the terminal. ``url`` is where
    the page is; ``page`` is sent first, and what has changed since follows as events.
    ``spent`` is the processor time, in seconds, that drawing took from the run, and
    ``n_drawn`` how often the whole page was drawn, figures included.
    """

    def __init__(self, selector: Any, show: Observer | None = None) -> None:
        self._selector, self._show = selector, show
        self._token = secrets.token_urlsafe(24)
        self._changed = threading.Condition()
        self._pieces: dict[str, tuple[int, str]] = {}
        self.page = live_page(selector.result_).encode()
        self._number = 0
        self._last: str | None = None  # what browsers are told at the end
        self._n_watching = 0
        self._progress: Progress | None = None
        self._drawn = time.perf_counter()
        self._began = time.process_time()
        self.spent = self._cost = 0.0
        self.n_drawn = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.live = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/{self._token}/"

    def __call__(self, progress: Progress) -> None:
        """Draw the page again, if a browser is watching and it is time."""
        self._progress = progress
        if self._show is not None:
            self._show(progress)
        if not self._n_watching or time.perf_counter() - self._drawn < _EVERY:
            return
        cost = self._cost or _FIRST_COST + _COST_PER_FEATURE * progress.n_seen
        has_time = time.process_time() - self._began >= _SHARE * (self.spent + cost)
        self._draw(progress, is_whole=has_time)

    def _draw(self, progress: Progress, *, is_whole: bool = True) -> None:
        began = time.thread_time()  # others may use the processor meanwhile
        found = {"status": status(progress)}
        if is_whole:
            found = live_pieces(History(self._selector.result_), progress)
        with self._changed:
            self._number += 1
            self._pieces |= {name: (self._number, str(p)) for name, p in found.items()}
            self._changed.notify_all()
        self._drawn = time.perf_counter()
        took = time.thread_time() - began
        self.spent += took
        if is_whole:
            self._cost = took
            self.n_drawn += 1

    def close(self, said: str) -> None:
        """Tell the browsers that the run is over, and end the server."""
        if self._n_watching and self._progress is not None:
            self._draw(self._progress)
        with self._changed:
            self._last = said
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._n_watching, _FAREWELL)
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def events(self) -> Iterator[bytes]:
        """The events that a browser receives, until the run is over."""
        seen = 0
        with self._changed:
            self._n_watching += 1
        try:
            while True:
                with self._changed:
                    if self._last is None and self._number == seen:
                        self._changed.wait(_HEARTBEAT)
                    number, last = self._number, self._last
                    pieces = self._pieces.items()
                    changed = {name: text for name, (at, text) in pieces if at > seen}
                if changed:
                    yield _event("update", changed)
                elif last is None:
                    yield b": still here\n\n"
                seen = number
                if last is not None:
                    yield _event("end", last)
                    return
        finally:
            with self._changed:
                self._n_watching -= 1
                self._changed.notify_all()


def _event(name: str, content: Any) -> bytes:
    """One server-sent event; JSON has no line breaks."""
    return f"event: {name}\ndata: {json.dumps(content)}\n\n".encode()


class _Server(ThreadingHTTPServer):
    """A thread per connection, and no more connections than a person needs."""

    live: Live
    allow_reuse_address = False
    _n_open = 0

    def __init__(self, *where: Any) -> None:
        self._counting = threading.Lock()
        super().__init__(*where)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse a connection if there are too many; it is closed without an answer."""
        with self._counting:
            is_welcome = self._n_open < MAX_CONNECTIONS
            self._n_open += is_welcome
        return is_welcome

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; afterwards there is room for another connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._counting:
                self._n_open -= 1


class _Handler(BaseHTTPRequestHandler):
    """Answers requests for the page and its events that have the token."""

    server: _Server
    server_version = "featstream"
    sys_version = ""
    timeout = 20

    def do_GET(self) -> None:
        """Answer a request."""
        live, host = self.server.live, self.headers.get("Host", "")
        token, slash, rest = self.path[1:].partition("/")
        is_known = secrets.compare_digest(token.encode(), live._token.encode())
        if not (is_known and slash) or rest not in ("", "events"):
            self._answer(404, "text/plain", [b"Not found.\n"])
        elif host.rpartition(":")[0] not in ("127.0.0.1", "localhost"):
            self._answer(403, "text/plain", [b"Ask 127.0.0.1.\n"])
        elif rest:
            self._answer(200, "text/event-stream", live.events())
        else:
            self._answer(200, "text/html; charset=utf-8", [live.page])

    def _answer(self, status: int, kind: str, parts: Iterable[bytes]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        rules = f"{policy(is_live=True)}; frame-ancestors 'none'"
        self.send_header("Content-Security-Policy", rules)
        self.end_headers()
        with suppress(OSError):  # the browser has gone
            for part in parts:
                self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the run."""


@contextmanager
def live(selector: Any, show: Observer | None = None) -> Iterator[Live]:
    """Serve the page of a selector while it consumes.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_features=200)
    >>> selector = SAOLA(measure="su").start(stream.y)
    >>> with live(selector) as page:
    ...     print(page.url.startswith("http://127.0.0.1:"))
    ...     _ = selector.consume(stream.X, progress=page)
    True
    """
    page = Live(selector, show)
    try:
        yield page
    except BaseException:
        page.close("The run was stopped.")
        raise
    page.close(f"The run is over: {selector.result_!r}.")

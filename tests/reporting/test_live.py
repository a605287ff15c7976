"""The server of the live page."""

import socket
import time
from urllib.request import urlopen

import numpy as np

from featstream import SAOLA
from featstream.reporting.live import MAX_CONNECTIONS, live


def test_the_live_page_has_a_limit_of_connections():
    """Each is a thread: whoever opens thousands must not exhaust the process."""
    selector = SAOLA(measure="su").start(np.arange(10) % 2)
    with live(selector) as page:
        place = "127.0.0.1", page._server.server_port
        held = [socket.create_connection(place) for _ in range(MAX_CONNECTIONS)]
        deadline = time.monotonic() + 10
        while page._server._n_open < MAX_CONNECTIONS and time.monotonic() < deadline:
            time.sleep(0.01)
        refused = socket.create_connection(place)
        refused.settimeout(10)
        assert refused.recv(1) == b""  # closed without an answer
        for connection in (*held, refused):
            connection.close()
        while page._server._n_open and time.monotonic() < deadline:
            time.sleep(0.01)
        assert b"<html" in urlopen(page.url).read()  # there is room again

"""Imported by the server that processes are forked from, and by nobody else.

Numba takes a quarter of a second to load its first kernel, in every process anew,
and a cell may need less than that. What is loaded here is inherited.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from featstream.evaluation.j48 import J48
from featstream.selectors import SAOLA

__all__ = ["load_kernels"]


def load_kernels() -> None:
    """Select from and judge a few numbers, as most cells do."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    J48().fit(X, y).predict(X)
    SAOLA(measure="fisher-z").fit(X, y)
    SAOLA(measure="su").fit((X > 0).astype(np.uint8), y)


with suppress(Exception):  # without it cells are slower, and no more
    load_kernels()

"""Engines: how the work on blocks is spread."""

from featstream.engines.interrupts import handling_interrupts, uninterrupted
from featstream.engines.local import (
    count_cores,
    count_threads,
    prepared_ahead,
    single_blas,
)

__all__ = [
    "count_cores",
    "count_threads",
    "handling_interrupts",
    "prepared_ahead",
    "single_blas",
    "uninterrupted",
]

"""Engines: how the work on blocks is spread."""

from featstream.engines.local import blas_threads, count_threads, prepared_ahead

__all__ = ["blas_threads", "count_threads", "prepared_ahead"]

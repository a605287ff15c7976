"""Where blocks are prepared: threads of this process, or a Dask cluster."""

from __future__ import annotations

from featstream.engines.dask import (
    DaskEngine,
    as_engine,
    connected,
    is_cancelled,
    local_cluster,
)
from featstream.engines.loop import Engine, in_order, prepared_ahead

__all__ = [
    "DaskEngine",
    "Engine",
    "as_engine",
    "connected",
    "in_order",
    "is_cancelled",
    "local_cluster",
    "prepared_ahead",
]

"""A scan on two workers of little memory against one process, and what it sends.

    python -m benchmarks.cluster make wide.cols             # 20,000 x 1,000,000
    python -m benchmarks.cluster run wide.cols              # here, then on workers
    python -m benchmarks.cluster run wide.cols --selector SAOLA

Columns are like those of text: most have few entries, some have many, 28 on average.
One of 20 prefers the rows of a class, more or less.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from featstream.protocols import Block, Fate, SparseColumns

N_SAMPLES = 20_000
BLOCK = 50_000


class GeneratedSource:
    """Random sparse columns of ones."""

    n_samples = N_SAMPLES

    def __init__(self, n_features, y):
        self.n_features = n_features
        self._rows = [np.flatnonzero(y == c) for c in (0, 1)]

    def blocks(self, start=0):
        for first in range(start, self.n_features, BLOCK):
            rng = np.random.default_rng(first)
            n = min(BLOCK, self.n_features - first)
            bias = np.where(rng.random(n) < 0.05, rng.exponential(0.15, n), 0.0)
            bias *= rng.choice([-1, 1], n)
            sizes = np.minimum(8 * rng.pareto(1.2, n) + 2, N_SAMPLES / 10).astype(int)
            column = np.repeat(np.arange(n), sizes)
            is_second = rng.random(column.size) < 0.5 + bias[column]
            zero, one = (rng.choice(rows, column.size) for rows in self._rows)
            rows = np.where(is_second, one, zero)
            entries = np.unique(column * N_SAMPLES + rows)
            sizes = np.bincount(entries // N_SAMPLES, minlength=n)
            indptr = np.concatenate([[0], np.cumsum(sizes)])
            rows = (entries % N_SAMPLES).astype(np.int32)
            ones = np.ones(rows.size, np.uint8)
            yield Block(SparseColumns(indptr, rows, ones, N_SAMPLES), first)


def make(path, n_features):
    """Write a store."""
    from featstream.sources import write_store

    y = np.random.default_rng(0).integers(0, 2, N_SAMPLES)
    write_store(path, GeneratedSource(n_features, y), y)


def run(path, name, n_workers, memory):
    """Select twice in this process, then twice on workers, and print a table."""
    from featstream.engines import DaskEngine, local_cluster
    from featstream.parallel import peak_memory
    from featstream.selectors.saola import workers
    from featstream.sources import open_store

    replies, receive = [], workers._received

    def noted(part, like):
        arrays = part.columns.values()
        replies.append((part.scored.newcomers, sum(a.nbytes for a in arrays)))
        return receive(part, like)

    workers._received = noted
    source = open_store(path)
    print("| | |\n|---|---|")
    for state in ("just started", "warm"):
        local, seconds = select(name, source)
        print(f"| one process and thread, {state} | {seconds:.1f} s |", flush=True)
    with local_cluster(n_workers, memory) as client:
        for state in ("just started", "warm"):
            engine = DaskEngine(client)
            replies.clear()
            remote, seconds = select(name, source, engine=engine)
            print(f"| {n_workers} workers, {state} | {seconds:.1f} s |", flush=True)
        peaks = client.run(peak_memory).values()
    fates = local.result_.trace.records["fate"]
    n_kept = int(((fates == Fate.KEPT) | (fates >= Fate.DISPLACED)).sum())
    n_columns = sum(new.column.size for new, _ in replies if new is not None)
    n_bytes = sum(size for _, size in replies)
    for label, value in {
        "ever kept, kept at the end": f"{n_kept:,}, {local.selected_.size:,}",
        "identical": decided(remote) == decided(local),
        "blocks, tasks": f"{len(replies)}, {engine.n_messages}",
        "relevant": f"{int((fates != Fate.IRRELEVANT).sum()):,}",
        "columns to the driver": f"{n_columns:,}, {n_bytes / 2**20:.1f} MiB",
        "memory of workers": ", ".join(f"{peak / 2**20:.0f} MiB" for peak in peaks),
    }.items():
        print(f"| {label} | {value} |")


def select(name, source, **engine):
    """A selector that has seen all features, and the seconds that it took."""
    import featstream

    began = time.perf_counter()
    selector = getattr(featstream, name)(measure="su").start(source.y)
    selector.consume(source, **engine)
    return selector, time.perf_counter() - began


def decided(selector):
    """All that a scan decides."""
    found, trace = selector.result_, selector.result_.trace
    arrays = found.indices, found.scores, trace.arrivals, trace.records
    return [array.tobytes() for array in arrays]


def main() -> None:
    """Make a store, or select from it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("store")
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--selector", default="SelectFromStream")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="512MiB")
    given = parser.parse_args()
    if given.what == "make":
        make(given.store, given.features)
    else:
        run(given.store, given.selector, given.workers, given.memory)


if __name__ == "__main__":
    main()

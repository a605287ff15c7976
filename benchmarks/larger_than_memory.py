"""Selection from a column store: memory by number of features, time by stage.

    python -m benchmarks.larger_than_memory memory 1 4 16   # million columns
    python -m benchmarks.larger_than_memory news20          # file, store, selection

Stores are generated in a temporary folder and removed. Every size is selected from
in a process of its own, whose peak of resident memory is the figure.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.timing import SHARED

N_SAMPLES = 20_000
N_ENTRIES = 20  # of a column
N_INFORMATIVE = 200  # whatever the number of columns
BLOCK = 50_000


class GeneratedSource:
    """Random sparse columns, and some, evenly spread, that know the class."""

    n_samples = N_SAMPLES

    def __init__(self, n_features, y):
        self.n_features, self._positive = n_features, np.flatnonzero(y)

    def blocks(self, start=0):
        from featstream.protocols import Block, SparseColumns

        apart = self.n_features // N_INFORMATIVE
        for first in range(start, self.n_features, BLOCK):
            rng = np.random.default_rng(first)
            n = min(BLOCK, self.n_features - first)
            step = N_SAMPLES // N_ENTRIES
            rows = rng.integers(0, step, (n, N_ENTRIES), dtype=np.int32)
            rows += np.arange(0, N_SAMPLES, step, dtype=np.int32)
            for j in range(-first % apart, n, apart):
                chosen = rng.choice(self._positive, N_ENTRIES, replace=False)
                rows[j] = np.sort(chosen)
            indptr = np.arange(0, rows.size + 1, N_ENTRIES, dtype=np.int64)
            ones = np.ones(rows.size, np.uint8)
            yield Block(SparseColumns(indptr, rows.ravel(), ones, N_SAMPLES), first)


def measure_memory(millions):
    y = np.random.default_rng(0).integers(0, 2, N_SAMPLES)
    peaks = {}
    _select_from(0.01, y)  # kernels are compiled and cached
    for million in millions:
        size, found = _select_from(million, y)
        peaks[million] = found["peak_mib"]
        print(
            f"{million:g}M columns, store {size:,.0f} MiB: "
            f"peak {found['peak_mib']:.0f} MiB ({found['before_mib']:.0f} before "
            f"selecting), {found['n_kept']} kept",
            flush=True,
        )
    if len(peaks) > 1:
        ratio = max(peaks.values()) / min(peaks.values())
        print(f"largest peak over smallest: {ratio:.3f} (required: at most 1.1)")
    print(f"largest peak: {max(peaks.values()):.0f} MiB (required: below 1024)")


def _select_from(million, y):
    """Size of a generated store in MiB, and what a child found in it."""
    from featstream.sources import write_store

    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "wide.cols"
        write_store(store, GeneratedSource(int(million * 1e6), y), y)
        size = sum(path.stat().st_size for path in store.iterdir()) / 2**20
        return size, _in_child("select", str(store))


def _in_child(*arguments):
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", *arguments]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(out.stdout)


def select(store):
    """Select, and print the peak of resident memory as JSON."""
    import resource

    from featstream import SAOLA, SymmetricalUncertainty
    from featstream.sources import open_store

    source = open_store(store)
    measure = SymmetricalUncertainty(threshold=0.001)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    selector = SAOLA(measure=measure, trace="kept").start(source.y).consume(source)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "peak_mib": peak / 1024,
        "before_mib": before / 1024,
        "n_kept": len(selector.result_),
    }
    print(json.dumps(found))


def news20():
    """Stages of the way from a svmlight file to a selection, as fractions."""
    with np.load(SHARED / "data" / "news20_bigram.npz") as data:
        X = sparse.csc_array(
            (data["X_data"], data["X_indices"].astype(np.int32), data["X_indptr"]),
            shape=data["X_shape"],
        ).tocsr()
        y = data["y"]
    with tempfile.TemporaryDirectory() as name:
        text = Path(name) / "news20.svm"
        with open(text, "w", encoding="ascii") as file:
            for i in range(X.shape[0]):
                own = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[own] + 1, X.data[own], strict=True)
                file.write(f"{y[i]} " + " ".join(f"{c}:{v}" for c, v in pairs) + "\n")
        for turn in ("compiling", "measured"):  # kernels compile on first use
            folder = Path(name) / turn
            folder.mkdir()
            seconds, result = _stages(text, folder)
    print("| stage | fraction |\n|---|---:|")
    for stage, taken in seconds.items():
        print(f"| {stage} | {taken / sum(seconds.values()):.1%} |")
    print(result)


def _stages(text, folder):
    """Seconds of each stage, and the selection."""
    from featstream import SAOLA, SymmetricalUncertainty
    from featstream.sources import convert, open_store

    ends = {}
    began = time.perf_counter()
    convert(
        text,
        folder / "data.cols",
        progress=lambda stage, *_: ends.update({stage: time.perf_counter()}),
    )
    converted = time.perf_counter()
    store = open_store(folder / "data.cols")
    opened = time.perf_counter()
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.001)).start(store.y)
    with _time_of_saving() as saving:
        selector.consume(store, checkpoint=folder / "run")
    done = time.perf_counter()
    seconds = {
        "file to store: reading the text": ends["reading"] - began,
        "file to store: writing columns": converted - ends["reading"],
        "opening the store": opened - converted,
        "selection": done - opened - sum(saving),
        "checkpoints": sum(saving),
    }
    return seconds, selector.result_


@contextmanager
def _time_of_saving():
    """Seconds of each checkpoint."""
    from featstream.runs.folder import RunFolder

    taken, save = [], RunFolder.save

    def timed(self, *arguments):
        began = time.perf_counter()
        generation = save(self, *arguments)
        taken.append(time.perf_counter() - began)
        return generation

    RunFolder.save = timed
    try:
        yield taken
    finally:
        RunFolder.save = save


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("news20")
    commands.add_parser("memory").add_argument("millions", nargs="+", type=float)
    commands.add_parser("select").add_argument("store")
    arguments = parser.parse_args()
    if arguments.command == "memory":
        measure_memory(arguments.millions)
    elif arguments.command == "select":
        select(arguments.store)
    else:
        news20()


if __name__ == "__main__":
    main()

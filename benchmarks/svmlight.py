"""Reading, converting and streaming svmlight data, as ratios within one run.

    python benchmarks/svmlight.py read     # 64 MB, against scikit-learn
    python benchmarks/svmlight.py convert  # 2 GB: conversion against reading
    python benchmarks/svmlight.py stream   # memory over 1, 4 and 16 million columns

Data are generated in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

MIB = 1 << 20


def write_text(path: Path, n_bytes: int, digits: int = 7) -> None:
    """Real-valued rows of about 120 entries among 100,000 columns.

    Beyond 64 MB the same rows are repeated.
    """
    rng = np.random.default_rng(0)
    lines = []
    size = 0
    while size < min(n_bytes, 64 * MIB):
        columns = np.unique(rng.integers(1, 100_001, rng.poisson(120) + 1)).tolist()
        values = rng.normal(size=len(columns)).tolist()
        entries = [f"{j}:{v:.{digits}g}" for j, v in zip(columns, values, strict=True)]
        lines.append(f"{rng.choice([-1, 1])} {' '.join(entries)}\n")
        size += len(lines[-1])
    text = "".join(lines).encode()
    with open(path, "wb") as file:
        for _ in range(-(-n_bytes // size)):
            file.write(text)


def best_of(rounds: int, **tasks: Callable[[], object]) -> dict[str, float]:
    """Least seconds of each task; the tasks take turns."""
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(rounds):
        for name, task in tasks.items():
            begin = time.perf_counter()
            task()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def read(folder: Path, rounds: int) -> None:
    """Throughput of `read_svmlight` against scikit-learn, and the same matrix."""
    from sklearn.datasets import load_svmlight_file

    from featstream.sources.svmlight import read_svmlight

    for digits in (7, 17):
        path = folder / f"{digits}.svm"
        write_text(path, 64 * MIB, digits)
        size = path.stat().st_size
        X, y = read_svmlight(path)
        Z, z = load_svmlight_file(str(path))
        same = all(
            a.tobytes() == b.tobytes()
            for a, b in [
                (X.data, Z.data),
                (X.indices, Z.indices.astype(X.indices.dtype)),
                (X.indptr, Z.indptr.astype(X.indptr.dtype)),
                (y, z),
            ]
        )
        del X, Z
        best = best_of(
            rounds,
            scikit=lambda path=path: load_svmlight_file(str(path)),
            one=lambda path=path: read_svmlight(path, n_jobs=1),
            again=lambda path=path: read_svmlight(path, n_jobs=1),
            all=lambda path=path: read_svmlight(path),
        )
        one = min(best["one"], best["again"])
        print(
            f"read   {digits:2d} digits  {size / 1e6:.0f} MB  "
            f"scikit-learn {size / best['scikit'] / 1e6:.0f} MB/s  "
            f"one thread x{best['scikit'] / one:.1f}  "
            f"{os.cpu_count()} threads x{best['scikit'] / best['all']:.1f}  "
            f"same matrix to the bit: {same}"
        )


CHILD = """
import json, resource, sys, time
from featstream.sources import convert, open_store, read_svmlight
task, *paths = sys.argv[1:]
begin, cpu = time.perf_counter(), time.process_time()
if task == "read":
    read_svmlight(paths[0])
elif task == "convert":
    convert(*paths, memory=1 << 30)
else:
    n = sum(int(b.columns.rows.max()) >= 0 for b in open_store(paths[0]).blocks())
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
seconds = time.perf_counter() - begin
print(json.dumps([seconds, time.process_time() - cpu, peak]))
"""


def child(task: str, *paths: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor and peak MiB of a task in its own process."""
    command = [sys.executable, "-c", CHILD, task, *map(str, paths)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, cpu, peak = json.loads(run.stdout)
    return seconds, cpu, peak


def convert(folder: Path, rounds: int) -> None:
    """Speed of conversion within 1 GiB against the speed of reading."""
    import shutil

    path, out = folder / "big.svm", folder / "big.cols"
    write_text(path, 2_000_000_000)
    reads, converts = [], []
    for _ in range(rounds):
        reads.append(child("read", path))
        converts.append(child("convert", path, out))
        shutil.rmtree(out)
    (t_read, cpu_read), (t_convert, cpu_convert) = (
        [min(run[i] for run in runs) for i in (0, 1)] for runs in (reads, converts)
    )
    size = path.stat().st_size
    print(
        f"convert  {size / 1e9:.2f} GB  read {size / t_read / 1e6:.0f} MB/s  "
        f"convert at {t_read / t_convert:.2f} of that "
        f"(of processor time: {cpu_read / cpu_convert:.2f})  "
        f"peak {max(run[2] for run in converts):.0f} MiB"
    )


def stream(folder: Path, rounds: int) -> None:
    """Peak memory of walking stores of more and more columns."""
    from featstream.protocols import Block, SparseColumns
    from featstream.sources import write_store

    step = 20_000

    class Wide:
        n_samples = 20_000

        def __init__(self, n_features: int) -> None:
            self.n_features = n_features

        def blocks(self, start: int = 0):  # type: ignore[no-untyped-def]
            rng = np.random.default_rng(0)
            rows = np.sort(rng.integers(0, 2000, (step, 10))) * 10
            rows = (rows + np.arange(10)).astype(np.int32).ravel()
            values = rng.integers(1, 4, 10 * step)
            columns = SparseColumns(
                np.arange(0, 10 * step + 1, 10), rows, values, 20_000
            )
            for begin in range(0, self.n_features, step):
                yield Block(columns, begin)

    for millions in (1, 4, 16):
        path = folder / f"{millions}.cols"
        write_store(path, Wide(millions * 1_000_000))
        seconds, _, peak = child("stream", path)
        rate = millions / seconds
        print(f"stream {millions:3d} M columns  peak {peak:.0f} MiB  {rate:.1f} M/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["read", "convert", "stream"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for what in options.what:
        with tempfile.TemporaryDirectory() as folder:
            {"read": read, "convert": convert, "stream": stream}[what](
                Path(folder), options.rounds
            )


if __name__ == "__main__":
    main()

"""Pairs: the kernel with a plain loop, planted pairs, and PLINK where it is installed.

``python -m benchmarks.interactions [--small]`` prints ratios of processor time. The
planted data are 100,000 binary features of 1,000 rows (10,000 with ``--small``), of
which ten pairs tell the class by their XOR, with a quarter of the rows wrong.
"""

import argparse
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from benchmarks.timing import table
from featstream import InteractionScreen
from featstream.measures.inputs import as_labels
from featstream.measures.storages.dense_codes import ones_of_word
from featstream.selectors.interactions.kernels import (
    ALIVE,
    TILE,
    Hits,
    Order,
    compare_tiles,
    tile_scratch,
)
from featstream.selectors.interactions.pools import DensePool, Group

N_PAIRS, NOISE = 10, 0.25


def planted(n_samples=1000, n_features=100_000, seed=0):
    """Binary features, the target, and the pairs whose XOR is nearly the target."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_features, n_samples), dtype=np.uint8)
    y = rng.integers(0, 2, n_samples, dtype=np.uint8)
    pairs = np.sort(rng.permutation(n_features)[: 2 * N_PAIRS].reshape(-1, 2), axis=1)
    for first, second in pairs:
        X[second] = X[first] ^ y ^ (rng.random(n_samples) < NOISE)
    return X.T, y, sorted(map(tuple, pairs.tolist()))


@numba.njit(nogil=True)
def plain_loop(new, pool, common):
    """AND and popcount of all pairs, and nothing else."""
    for first in range(0, pool.shape[0], TILE):
        for q in range(new.shape[0]):
            for s in range(first, first + TILE):
                count = 0
                for w in range(pool.shape[1]):
                    count += ones_of_word(new[q, w] & pool[s, w])
                common[q, s] = count


def cpu(function, rounds=5):
    """Least processor time of a function, which has run before."""
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        function()
        best = min(best, time.process_time() - began)
    return best


def kernel(n_new=512, n_pool=16_384):
    """Nanoseconds per pair of the plain loop and of the kernel with its test."""
    X, y, _ = planted(n_features=n_new + n_pool, seed=1)
    labels = as_labels(y)
    pool = DensePool(labels)
    words = np.packbits(X.T, axis=1, bitorder="little")
    padded = np.zeros((words.shape[0], -(-words.shape[1] // 8) * 8), np.uint8)
    padded[:, : words.shape[1]] = words
    columns = pool.as_members(padded.view(np.uint64), 2)
    new = type(columns)(columns.words[:n_new], *(c[..., :n_new] for c in columns[1:]))
    old = type(columns)(columns.words[n_new:], *(c[..., n_new:] for c in columns[1:]))
    group = Group(2, pool._classes)
    group.add(old, np.arange(n_pool))
    left = np.full(n_pool, ALIVE, np.int32)
    order = Order(np.full(n_new, n_pool), np.zeros(n_new, np.int32), left)
    least = np.array([1.0, 1.0]) * 45.0 / 2
    least[0] *= float(pool.nlogn[2]) / np.log(4)
    found = np.empty((1 << 20, 3), np.int64)
    hits = Hits(found, np.zeros(1, np.int64), np.zeros(n_new, np.int64))
    scratch = tile_scratch(2, 1, 1)
    common = np.empty((n_new, n_pool), np.int32)

    def run():
        hits.size[0] = 0
        tiles = np.array([0, n_pool // TILE])
        compare_tiles(
            new, group.columns, order, pool._classes, least, tiles, scratch, hits
        )

    assert n_new < ALIVE
    functions = {
        "plain": lambda: plain_loop(new.words, old.words, common),
        "kernel": run,
    }
    for function in functions.values():
        function()
    return {name: cpu(f) / (n_new * n_pool) * 1e9 for name, f in functions.items()}


def screen(X, y, n_jobs=2):
    """The pairs found, wall time and processor time."""
    warm = InteractionScreen(n_jobs=n_jobs).fit(X[:, :256], y)
    began, spent = time.perf_counter(), time.process_time()
    found = InteractionScreen(n_jobs=n_jobs).fit(X, y)
    wall, used = time.perf_counter() - began, time.process_time() - spent
    assert warm.n_tested_ <= found.n_tested_
    return found, wall, used


def plink(X, y, folder, *options):
    """Processor time of PLINK's screen of the same pairs, as homozygous genotypes."""
    n, p = X.shape
    codes = np.where(X.T > 0, 0, 3).astype(np.uint8)
    codes = np.pad(codes, ((0, 0), (0, -n % 4)))
    packed = codes[:, ::4] | codes[:, 1::4] << 2 | codes[:, 2::4] << 4
    packed |= codes[:, 3::4] << 6
    stem = Path(folder) / "planted"
    stem.with_suffix(".bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    lines = (f"{1 + j * 22 // p}\tx{j}\t0\t{1 + j}\tA\tG\n" for j in range(p))
    stem.with_suffix(".bim").write_text("".join(lines))
    lines = (f"s{i} s{i} 0 0 1 {1 + c}\n" for i, c in enumerate(y))
    stem.with_suffix(".fam").write_text("".join(lines))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["plink1.9", "--bfile", stem, "--fast-epistasis", *options]
    command += ["--epi1", "1e-11", "--allow-no-sex", "--threads", "2", "--out", stem]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = stem.with_suffix(".epi.cc").read_text().splitlines()[1:]
    found = {
        tuple(sorted((int(r.split()[1][1:]), int(r.split()[3][1:])))) for r in rows
    }
    return after.ru_utime - before.ru_utime, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tenth of the features")
    n_features = 10_000 if parser.parse_args().small else 100_000
    times = kernel()
    rows = [
        ("plain AND-popcount loop, ns per pair", times["plain"], ""),
        ("pair kernel with its test, ns per pair", times["kernel"], ""),
        (
            "speed of the kernel / plain loop",
            times["plain"] / times["kernel"],
            ">= 0.6",
        ),
    ]
    table(rows, "Kernel: 1,000 rows, two classes")
    X, y, pairs = planted(n_features=n_features)
    found, wall, used = screen(X, y)
    listed = [(pair.first, pair.second) for pair in found.pairs_]
    rows = [
        ("pairs tested, millions", found.n_tested_ / 1e6, ""),
        ("planted pairs found", len(set(listed) & set(pairs)), f"= {N_PAIRS}"),
        ("false pairs", len(set(listed) - set(pairs)), "= 0"),
        ("processor time, s", used, ""),
        ("wall time on two threads, s", wall, "<= 180"),
        ("ns of processor time per pair", used / found.n_tested_ * 1e9, ""),
    ]
    table(rows, f"Planted pairs: {n_features:,} binary features of 1,000 rows")
    if shutil.which("plink1.9") is None:
        print("\nPLINK: not installed (Debian has it as plink1.9)")
        return
    X, y, pairs = planted(n_features=10_000)
    found, _, used = screen(X, y)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for options in ((), ("boost",)):
            theirs, listed = plink(X, y, folder, *options)
            what = " ".join(["plink1.9 --fast-epistasis", *options])
            ratio = theirs / used
            rows.append((f"{what}: processor time / ours", ratio, ">= 1"))
            rows.append(("  planted pairs it found", len(listed & set(pairs)), ""))
            rows.append(("  other pairs it found", len(listed - set(pairs)), ""))
    table(rows, "PLINK: 10,000 of these features, 50 million pairs")


if __name__ == "__main__":
    main()

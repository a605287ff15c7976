"""Walking a file of each format: time, and memory beyond what the imports take.

    python -m benchmarks.sources             # all formats
    python -m benchmarks.sources plink zarr  # some

Files of 2,000 samples are generated in a temporary folder and removed. Each is walked
in a process of its own. "Values" is what the columns take as blocks, which a reader
that holds the whole would need.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N_SAMPLES = 2_000
MIB = 1 << 20

CHILD = """
import json, re, sys, time, warnings
import numpy as np
from featstream.sources import open_dataset
path, options = sys.argv[1], json.loads(sys.argv[2])
def peak():  # of this process alone; getrusage knows its parent's as well
    status = open("/proc/self/status").read()
    return int(re.search("VmHWM:\\s*([0-9]+)", status)[1]) / 1024
for tiny in json.loads(sys.argv[3]):  # what is imported and compiled on first use
    for block in open_dataset(tiny, **options).source.blocks():
        pass
warnings.simplefilter("ignore")
before, began = peak(), time.perf_counter()
source = open_dataset(path, **options).source
opened = time.perf_counter()
n = size = 0
for block in source.blocks():
    n += block.n_columns
    values = block.columns.values if block.is_sparse else block.columns
    size += values.nbytes
walked = time.perf_counter()
next(source.blocks(n // 2))
print(json.dumps({
    "n": n, "size": size, "open": opened - began, "walk": walked - opened,
    "middle": time.perf_counter() - walked, "before": before, "peak": peak()}))
"""


def write_parquet(path, n_features):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = _matrix(n_features)
    pq.write_table(pa.table({f"g{j}": X[j] for j in range(n_features)}), path)
    return {"target": "g0"}


def write_feature_rows(path, n_features):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = _matrix(n_features)
    names = [f"g{j}" for j in range(n_features)]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), N_SAMPLES)
    pq.write_table(pa.table({"gene": names, "values": lists}), path)
    return {"orient": "features"}


def write_csv(path, n_features):
    rng = np.random.default_rng(0)
    with open(path, "w", encoding="ascii") as file:
        file.write(",".join(f"g{j}" for j in range(n_features)) + ",y\n")
        for i in range(N_SAMPLES):
            row = rng.normal(size=n_features)
            file.write(",".join([f"{v:.5f}" for v in row.tolist()]) + f",{i % 2}\n")
    return {}


def write_zarr(path, n_features, chunks=(N_SAMPLES, 256)):
    import zarr

    X = np.ascontiguousarray(_matrix(n_features).T)
    zarr.create_array(path, data=X, chunks=chunks)
    return {}


def write_zarr_by_rows(path, n_features):
    return write_zarr(path, n_features, chunks=(64, n_features))


def write_h5ad(path, n_features, kind="csr"):
    import h5py
    from scipy import sparse

    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        if kind == "dense":
            file["X"] = np.ascontiguousarray(_matrix(n_features).T)
        else:
            shape = (N_SAMPLES, n_features)
            X = sparse.random_array(shape, density=0.05, format=kind, rng=rng)
            for part in ("data", "indices", "indptr"):
                values = getattr(X, part)
                values = values.astype(np.float32) if part == "data" else values
                file.create_dataset(f"X/{part}", data=values, chunks=True)
            file["X"].attrs["encoding-type"] = f"{kind}_matrix"
            file["X"].attrs["shape"] = shape
        file["obs/_index"] = [f"c{i}" for i in range(N_SAMPLES)]
        file["var/_index"] = [f"g{j}" for j in range(n_features)]
    return {}


def write_h5ad_csc(path, n_features):
    return write_h5ad(path, n_features, "csc")


def write_h5ad_dense(path, n_features):
    return write_h5ad(path, n_features, "dense")


def write_plink(path, n_features):
    rng = np.random.default_rng(0)
    bits = np.array([0b00, 0b10, 0b11], np.uint8)  # 2, 1 and 0 copies
    with open(path, "wb") as file:
        file.write(b"\x6c\x1b\x01")
        for first in range(0, n_features, 1000):
            n = min(1000, n_features - first)
            drawn = bits[rng.integers(0, 3, (n, N_SAMPLES // 4, 4))]
            file.write((drawn << np.array([0, 2, 4, 6], np.uint8)).sum(2, np.uint8))
    path.with_suffix(".bim").write_text(
        "".join(f"1\trs{j}\t0\t{j}\tA\tG\n" for j in range(n_features))
    )
    path.with_suffix(".fam").write_text(
        "".join(f"f s{i} 0 0 1 {1 + i % 2}\n" for i in range(N_SAMPLES))
    )
    return {}


def _matrix(n_features):
    """Features by samples."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_features, N_SAMPLES)).astype(np.float32)


FORMATS = {
    "parquet": ("parquet", write_parquet, 100_000),
    "csv": ("csv", write_csv, 40_000),
    "features": ("parquet", write_feature_rows, 200_000),
    "zarr": ("zarr", write_zarr, 200_000),
    "zarr-rows": ("zarr", write_zarr_by_rows, 200_000),
    "h5ad-csr": ("h5ad", write_h5ad, 400_000),
    "h5ad-csc": ("h5ad", write_h5ad_csc, 400_000),
    "h5ad-dense": ("h5ad", write_h5ad_dense, 200_000),
    "plink": ("bed", write_plink, 1_000_000),
}


def measure(name):
    suffix, write, n_features = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{suffix}"
        options = write(path, n_features)
        tiny = Path(folder) / f"tiny.{suffix}"
        write(tiny, 20)
        size = sum(p.stat().st_size for p in Path(folder).rglob("data*") if p.is_file())
        if path.is_dir():
            size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
        arguments = [str(path), json.dumps(options), json.dumps([str(tiny)])]
        command = [sys.executable, "-c", CHILD, *arguments]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    facts = json.loads(run.stdout)
    print(
        f"| {name} | {n_features:,} | {size / MIB:,.0f} | {facts['size'] / MIB:,.0f} | "
        f"{facts['open']:.1f} | {facts['walk']:.1f} | "
        f"{facts['n'] / facts['walk']:,.0f} | {facts['middle']:.2f} | "
        f"{facts['peak'] - facts['before']:,.0f} |",
        flush=True,
    )


def main():
    print(
        "| format | features | file, MiB | values, MiB | open, s | walk, s "
        "| features/s | to the middle, s | memory, MiB |"
    )
    print("|---" + "|---:" * 8 + "|")
    for name in sys.argv[1:] or FORMATS:
        measure(name)


if __name__ == "__main__":
    main()

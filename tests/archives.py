"""Runs and stores as they are on disk today, kept to be read for ever.

    PYTHONPATH=src:. python tests/archives.py

writes ``tests/data/archives/version-N.zip``. It is run when a version of the format
goes up, and never again for the same version: old archives are never written again.
"""

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from fuzz.runs import KINDS, newest_state, save_run, small_data
from scipy import sparse

from featstream.runs import folder
from featstream.sources import ArraySource, SparseSource, store, write_store

FOLDER = Path(__file__).parent / "data" / "archives"
VERSION = max(folder.VERSION, store.VERSION)
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def write_archive(folder):
    """Fill a folder: the data, runs of every kind, stores of every form."""
    X, y = small_data()
    np.savez(folder / "data.npz", X=X, y=y)
    for kind in KINDS:
        run = folder / "runs" / kind
        save_run(kind, run, X)
        newest = newest_state(run)
        for path in run.iterdir():  # one generation tells as much as two
            if path.name not in ("run.json", newest.name):
                path.unlink()
    names = [f"gene_{j}" for j in range(X.shape[1])]
    words = np.where(y == 1, "ill", "well")
    stores = folder / "stores"
    stores.mkdir()
    write_store(stores / "dense.cols", ArraySource(X, names), words)
    write_store(stores / "real.cols", ArraySource(X / 3, names), y)
    write_store(stores / "large.cols", ArraySource(X.astype(np.uint64) + 2**63), y)
    write_store(stores / "sparse.cols", SparseSource(sparse.csc_array(X)), y)
    write_store(stores / "ones.cols", SparseSource(sparse.csc_array(1 * (X > 0))))


def main():
    path = FOLDER / f"version-{VERSION}.zip"
    if path.exists():
        sys.exit(f"{path} exists. An old archive is never written again.")
    folder = Path(tempfile.mkdtemp())
    write_archive(folder)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "x", zipfile.ZIP_LZMA) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = zipfile.ZipInfo(str(file.relative_to(folder)), _LONG_AGO)
                entry.compress_type = zipfile.ZIP_LZMA
                archive.writestr(entry, file.read_bytes())
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

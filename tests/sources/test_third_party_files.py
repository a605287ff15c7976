"""Files as other tools write them give the selection of the arrays in memory."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from featstream import SAOLA
from featstream.sources import open_dataset

RNG = np.random.default_rng(7)
Y = np.arange(60) % 2 + 1
X = RNG.integers(0, 3, (60, 25)).astype(np.int8)
X[:, 4] = np.where(RNG.random(60) < 0.9, Y, X[:, 4])  # informative
X[:, 9] = np.where(RNG.random(60) < 0.9, X[:, 4], X[:, 9])  # redundant
X[:, 17] = np.where(RNG.random(60) < 0.7, Y - 1, X[:, 17])
NAMES = [f"g{j}" for j in range(25)]


def needs(package):
    """Skip with a reason where a tool is absent."""
    if find_spec(package) is None and shutil.which(package) is None:
        pytest.skip(f"{package} is not installed")


def labels(folder):
    np.savetxt(folder / "y.txt", Y, "%d")
    return str(folder / "y.txt")


def anndata_file(make, **options):
    def write(folder):
        needs("anndata")
        import anndata

        obs = pd.DataFrame({"kind": pd.Categorical(Y.astype(str))})
        obs.index = [f"cell{i}" for i in range(60)]
        adata = anndata.AnnData(
            make(X.astype(np.float32)), obs, pd.DataFrame(index=NAMES)
        )
        adata.write_h5ad(folder / "d.h5ad", **options)
        return folder / "d.h5ad", "kind"

    return write


def anndata_zarr(folder):
    needs("anndata")
    import anndata

    obs = pd.DataFrame({"kind": Y}, index=[f"cell{i}" for i in range(60)])
    with warnings.catch_warnings(action="ignore"):  # about versions of zarr
        anndata.AnnData(X.astype(float), obs, pd.DataFrame(index=NAMES)).write_zarr(
            folder / "d.zarr"
        )
    return folder / "d.zarr", "kind"


def bed_reader(folder):
    needs("bed_reader")
    from bed_reader import to_bed

    to_bed(folder / "d.bed", X, properties={"pheno": Y, "sid": NAMES})
    return folder / "d.bed", None


def plink(folder):
    """A text file of PLINK, which plink makes binary."""
    needs("plink")
    alleles = np.array(["G G", "A G", "A A"])
    (folder / "t.ped").write_text(
        "".join(
            f"f s{i} 0 0 1 {Y[i]} {' '.join(alleles[row])}\n"
            for i, row in enumerate(X.tolist())
        )
    )
    rows = "".join(f"1 {name} 0 {j + 1}\n" for j, name in enumerate(NAMES))
    (folder / "t.map").write_text(rows)
    subprocess.run(
        ["plink", "--file", "t", "--make-bed", "--keep-allele-order", "--out", "d"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "d.bed", None


def table(write):
    def make(folder):
        path = folder / f"d.{write.__name__.rpartition('_')[2]}"
        write(path)
        return path, "y"

    return make


def pandas_csv(path):
    pd.DataFrame(X, columns=NAMES).assign(y=Y).to_csv(path, index=False)


def pandas_parquet(path):
    pd.DataFrame(X, columns=NAMES).assign(y=pd.Categorical(Y)).to_parquet(path)


def polars_csv(path):
    pl.DataFrame(X, NAMES, orient="row").with_columns(y=pl.Series(Y)).write_csv(path)


def polars_parquet(path):
    frame = pl.DataFrame(X, NAMES, orient="row").with_columns(y=pl.Series(Y))
    frame.write_parquet(path, compression="zstd", row_group_size=13)


def pyarrow_parquet(path):
    import pyarrow as pa
    import pyarrow.parquet

    columns = dict(zip(NAMES, map(pa.array, X.T.copy()), strict=True))
    pyarrow.parquet.write_table(pa.table({**columns, "y": Y}), path)


def zarr_array(version):
    def write(folder):
        needs("zarr")
        import zarr

        zarr.create_array(
            folder / "d.zarr", data=X, chunks=(17, 6), zarr_format=version
        )
        return folder / "d.zarr", labels(folder)

    return write


def scipy_npz(kind):
    def write(folder):
        sparse.save_npz(folder / "d.npz", sparse.csr_array(X).asformat(kind))
        return folder / "d.npz", labels(folder)

    return write


def numpy_npy(folder):
    np.save(folder / "d.npy", X)
    return folder / "d.npy", labels(folder)


def numpy_npz(folder):
    np.savez_compressed(folder / "d.npz", X=np.asfortranarray(X), y=Y)
    return folder / "d.npz", None


def svmlight(*, zero_based):
    def write(folder):
        path = str(folder / "d.svm")
        comment = "written by scikit-learn"
        dump_svmlight_file(
            X.astype(float), Y, path, zero_based=zero_based, comment=comment
        )
        return path, None

    return write


FILES = {
    "anndata, csr": anndata_file(sparse.csr_matrix),
    "anndata, csc": anndata_file(sparse.csc_array),
    "anndata, dense": anndata_file(np.asarray, compression="gzip"),
    "anndata, lzf": anndata_file(sparse.csr_array, compression="lzf"),
    "anndata, zarr": anndata_zarr,
    "bed-reader": bed_reader,
    "plink": plink,
    "pandas, csv": table(pandas_csv),
    "pandas, parquet": table(pandas_parquet),
    "polars, csv": table(polars_csv),
    "polars, parquet": table(polars_parquet),
    "pyarrow, parquet": table(pyarrow_parquet),
    "zarr 2": zarr_array(2),
    "zarr 3": zarr_array(3),
    **{
        f"scipy, {kind}": scipy_npz(kind)
        for kind in ("csr", "csc", "coo", "bsr", "dia")
    },
    "numpy, npy": numpy_npy,
    "numpy, npz": numpy_npz,
    "scikit-learn, from 0": svmlight(zero_based=True),
    "scikit-learn, from 1": svmlight(zero_based=False),
}


@pytest.mark.parametrize("tool", FILES)
def test_the_selection_is_that_of_the_arrays(tmp_path, tool):
    expected = SAOLA(measure="su").fit(X, Y)
    assert 4 in expected.selected_
    path, target = FILES[tool](tmp_path)
    data = open_dataset(path, target)
    assert [str(int(float(label))) for label in data.y] == [str(label) for label in Y]
    found = SAOLA(measure="su").start(data.y).consume(data.source)
    assert found.selected_.tolist() == expected.selected_.tolist()
    assert found.scores_.tolist() == expected.scores_.tolist()
    if data.names is not None:
        assert list(data.names) == NAMES

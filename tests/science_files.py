"""Files of the sciences."""

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import zarr
from anndata.io import write_elem
from scipy import sparse

BITS = {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}
"""What PLINK writes for 2, 1 and 0 copies of the first allele, and for none known."""


def write_plink(path, genotypes, phenotypes, names=None, samples=None):
    """A ``.bed`` by variant, with its ``.bim`` and ``.fam``; -1 is missing."""
    n_samples, n_variants = genotypes.shape
    names = names or [f"x{j}" for j in range(n_variants)]
    samples = samples or [("fam", f"s{i}") for i in range(n_samples)]
    content = bytearray(b"\x6c\x1b\x01")
    for j in range(n_variants):
        for first in range(0, n_samples, 4):
            byte = 0
            for place, copies in enumerate(genotypes[first : first + 4, j].tolist()):
                byte |= BITS[copies] << (2 * place)
            content.append(byte)
    path.write_bytes(bytes(content))
    path.with_suffix(".bim").write_text(
        "".join(f"1\t{name}\t0\t{100 + j}\tA\tG\n" for j, name in enumerate(names))
    )
    people = zip(samples, phenotypes, strict=True)
    path.with_suffix(".fam").write_text(
        "".join(f"{family} {person} 0 0 1 {y}\n" for (family, person), y in people)
    )
    return path


def write_h5ad(path, X, obs, names, kind="csr", layers=(), **options):
    """AnnData in HDF5; ``options`` are those of the data set of a dense ``X``."""
    with h5py.File(path, "w") as file:
        write_anndata(file, X, obs, names, kind, layers)
        if options:
            attributes = dict(file["X"].attrs)
            del file["X"]
            file.create_dataset("X", data=X, **options).attrs.update(attributes)
    return path


def write_anndata(root, X, obs, names, kind="csr", layers=()):
    """``obs`` are columns by name; a pair of codes and words is a categorical."""
    make = {"csr": sparse.csr_array, "csc": sparse.csc_array, "dense": np.asarray}[kind]
    frame = pd.DataFrame(index=[f"cell{i}" for i in range(X.shape[0])])
    for name, values in obs.items():
        is_pair = isinstance(values, tuple)
        frame[name] = pd.Categorical.from_codes(*values) if is_pair else values
    adata = anndata.AnnData(make(X), frame, pd.DataFrame(index=list(names)))
    for name, values in layers:
        adata.layers[name] = make(values)
    write_elem(root, "/", adata)


def write_zarr(path, X, chunks, version=3):
    zarr.create_array(path, data=X, chunks=chunks, zarr_format=version)
    return path


def write_feature_rows(path, X, names, *, has_lists=False, group=7):
    """One row per feature: its name, and a list, or a column for each sample."""
    columns = {"gene": names}
    if has_lists:
        columns["values"] = list(X.T)
    else:
        columns |= {f"s{i}": row for i, row in enumerate(X)}
    pyarrow.parquet.write_table(pa.table(columns), path, row_group_size=group)
    return path

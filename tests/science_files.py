"""Files of the sciences."""

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import zarr
from anndata.io import write_elem
from bed_reader import to_bed
from scipy import sparse


def write_plink(path, genotypes, phenotypes, names=None, samples=None):
    """A ``.bed`` by variant, with its ``.bim`` and ``.fam``; -1 is missing."""
    n_samples, n_variants = genotypes.shape
    samples = samples or [("fam", f"s{i}") for i in range(n_samples)]
    families, people = zip(*samples, strict=True)
    properties = {
        "fid": families,
        "iid": people,
        "sex": [1] * n_samples,
        "pheno": list(map(str, phenotypes)),
        "chromosome": ["1"] * n_variants,
        "sid": list(names or (f"x{j}" for j in range(n_variants))),
        "bp_position": range(100, 100 + n_variants),
        "allele_1": ["A"] * n_variants,
        "allele_2": ["G"] * n_variants,
    }
    values = np.where(genotypes < 0, -127, genotypes).astype(np.int8)
    to_bed(path, values, properties=properties)
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

"""Files of the sciences, written by their descriptions, slowly and plainly."""

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zarr
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
    """AnnData, by the description of its format; ``obs`` are columns by name."""
    with h5py.File(path, "w") as file:
        write_anndata(file, X, obs, names, kind, layers, **options)
    return path


def write_anndata(root, X, obs, names, kind="csr", layers=(), n_cells=None, **options):
    _describe(root, "anndata", "0.1.0")
    _write_matrix(root, "X", X, kind, options)
    if layers:
        group = root.create_group("layers")
        for name, values in layers:
            _write_matrix(group, name, values, kind, options)
    cells = [f"cell{i}" for i in range(n_cells or X.shape[0])]
    if n_cells is not None:
        obs = {}
    for part, index, columns in (("obs", cells, obs), ("var", names, {})):
        group = root.create_group(part)
        _describe(group, "dataframe", "0.2.0")
        group.attrs["_index"] = "_index"
        group.attrs["column-order"] = list(columns)
        write_column(group, "_index", np.array(index, object))
        for name, values in columns.items():
            write_column(group, name, values)


def _describe(node, kind, version):
    node.attrs["encoding-type"], node.attrs["encoding-version"] = kind, version


def _write_matrix(group, name, X, kind, options):
    if kind == "dense":
        create(group, name, np.asarray(X), **options)
        return
    matrix = (sparse.csr_array if kind == "csr" else sparse.csc_array)(X)
    node = group.create_group(name)
    node.attrs["encoding-type"], node.attrs["shape"] = f"{kind}_matrix", list(X.shape)
    for part in ("data", "indices", "indptr"):
        create(node, part, getattr(matrix, part))


def create(group, name, values, **options):
    if isinstance(group, h5py.Group):
        return group.create_dataset(name, data=values, **options)
    return group.create_array(name, data=values, **options)


def write_column(group, name, values):
    """Words as text; a pair of codes and words as a categorical."""
    if isinstance(values, tuple):
        node = group.create_group(name)
        _describe(node, "categorical", "0.2.0")
        node.attrs["ordered"] = False
        create(node, "codes", np.asarray(values[0], np.int8))
        write_column(node, "categories", np.array(values[1], object))
    elif values.dtype == object and isinstance(group, h5py.Group):
        group.create_dataset(name, data=values.tolist(), dtype=h5py.string_dtype())
    elif values.dtype == object:
        node = group.create_array(name, shape=values.shape, dtype=str)
        node[:] = values.astype(np.dtypes.StringDType())
    else:
        create(group, name, values)


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

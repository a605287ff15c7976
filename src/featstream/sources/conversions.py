"""Files of other kinds: the line of code that turns one into a kind that is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from featstream.errors import ParameterError, printable

_FRAME = "pandas.{}.to_parquet('NEW.parquet')"
_H5 = (
    "numpy.save('NEW.npy', h5py.File(PATH)['NAME'][:]); of 10x Genomics: "
    "scanpy.read_10x_h5(PATH).write_h5ad('NEW.h5ad')"
)
_MAT = (
    "numpy.savez('NEW.npz', **{k: v for k, v in scipy.io.loadmat(PATH).items() if "
    "k in ('X', 'y')})"
)
_MTX = (
    "scipy.sparse.save_npz('NEW.npz', scipy.io.mmread(PATH).tocsc())  # with .T after "
    "mmread(PATH) if a row is a feature"
)
_R = "write.csv(readRDS(PATH), 'NEW.csv', row.names = FALSE)  # in R"
CONVERSIONS = {
    ".mtx": _MTX,
    ".mat": _MAT,
    ".h5": _H5,
    ".hdf5": _H5,
    ".loom": "anndata.io.read_loom(PATH).write_h5ad('NEW.h5ad')",
    ".arff": _FRAME.format("DataFrame(scipy.io.arff.loadarff(PATH)[0])"),
    ".xlsx": _FRAME.format("read_excel(PATH)"),
    ".xls": _FRAME.format("read_excel(PATH)"),
    ".ods": _FRAME.format("read_excel(PATH)"),
    ".vcf": "plink2 --vcf PATH --make-bed --out NEW  # in the shell",
    ".sas7bdat": _FRAME.format("read_sas(PATH)"),
    ".sav": _FRAME.format("read_spss(PATH)"),
    ".dta": _FRAME.format("read_stata(PATH)"),
    ".json": _FRAME.format("read_json(PATH)"),
    ".pkl": _FRAME.format("read_pickle(PATH)"),
    ".rds": _R,
}
"""One line of code that turns a file of another kind into one that is read."""


def unknown_format(path: Path, suffix: str, known: Iterable[str]) -> ParameterError:
    """The error for a file of another kind, with what converts it."""
    line = CONVERSIONS.get(suffix)
    if line is not None:
        return ParameterError(
            f"Files of the kind {suffix} are not read. Convert {printable(path)} with "
            f"one line: {line.replace('PATH', repr(path.name))}"
        )
    return ParameterError(
        f"Cannot tell what kind of file {printable(path)} is from its suffix "
        f"{printable(suffix)}. Known: {', '.join(known)}; text also as .gz, .xz, "
        ".bz2 or .zst. In Python, give arrays, or a pandas frame."
    )

"""Files as other tools write them give the selection of the arrays in memory.

anndata, zarr, scipy and pyarrow write the files of ``test_annotated.py``,
``test_every_format.py`` and ``test_open.py``.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
import polars as pl
import pytest
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
PANDAS = pd.DataFrame(X, columns=NAMES).assign(y=Y)
POLARS = pl.from_pandas(PANDAS)


def needs(tool):
    """Skip with a reason where a tool is absent."""
    if find_spec(tool) is None and shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")


def bed_reader(folder):
    needs("bed_reader")
    from bed_reader import to_bed

    to_bed(folder / "d.bed", X, properties={"pheno": Y, "sid": NAMES})
    return folder / "d.bed", None


def plink(folder):
    """A text file of PLINK, which plink makes binary."""
    needs("plink")
    alleles = np.array(["G G", "A G", "A A"])
    people = [
        f"f s{i} 0 0 1 {Y[i]} {' '.join(alleles[row])}\n" for i, row in enumerate(X)
    ]
    variants = [f"1 {name} 0 {j + 1}\n" for j, name in enumerate(NAMES)]
    (folder / "t.ped").write_text("".join(people))
    (folder / "t.map").write_text("".join(variants))
    make_bed = ["--make-bed", "--keep-allele-order", "--out", "d"]
    command = ["plink", "--file", "t", *make_bed]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "d.bed", None


def table(folder, suffix, write):
    write(folder / f"d{suffix}")
    return folder / f"d{suffix}", "y"


def svmlight(folder, zero_based):
    path = str(folder / "d.svm")
    numbers, comment = X.astype(float), "written by scikit-learn"
    dump_svmlight_file(numbers, Y, path, zero_based=zero_based, comment=comment)
    return path, None


FILES = {
    "bed-reader": bed_reader,
    "plink": plink,
    "pandas, csv": partial(
        table, suffix=".csv", write=partial(PANDAS.to_csv, index=False)
    ),
    "pandas, parquet": partial(table, suffix=".parquet", write=PANDAS.to_parquet),
    "polars, csv": partial(table, suffix=".csv", write=POLARS.write_csv),
    "polars, parquet": partial(
        table, suffix=".parquet", write=partial(POLARS.write_parquet, row_group_size=13)
    ),
    "scikit-learn, from 0": partial(svmlight, zero_based=True),
    "scikit-learn, from 1": partial(svmlight, zero_based=False),
}


@pytest.mark.parametrize("tool", FILES)
def test_the_selection_is_that_of_the_arrays(tmp_path, tool):
    expected = SAOLA(measure="su").fit(X, Y)
    assert 4 in expected.selected_
    path, target = FILES[tool](tmp_path)
    data = open_dataset(path, target)
    assert [int(float(label)) for label in data.y] == Y.tolist()
    found = SAOLA(measure="su").start(data.y).consume(data.source)
    assert found.selected_.tolist() == expected.selected_.tolist()
    assert found.scores_.tolist() == expected.scores_.tolist()
    assert data.names is None or list(data.names) == NAMES

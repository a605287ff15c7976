"""Files of every format at the command line: an error of one line, or the selection.

The reference is what another reader makes of the same bytes. Where it takes none, our
answer is not judged; where both take them, the selections must be the same.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from featstream import SAOLA
from featstream.cli import main
from featstream.sources import ArraySource, open_store, write_store
from fuzz.runs import save_run

_QUOTED = re.compile(r"'.*'|\".*\"|[0-9]+", re.DOTALL)
_SELECTOR = ("--selector", "saola", "--measure", "su")


def example() -> tuple[np.ndarray, np.ndarray]:
    """Eight columns of forty samples, two of which follow the classes."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.integers(0, 3, (40, 8)).astype(float)
    X[:, 2] = np.where(rng.random(40) < 0.8, y, X[:, 2])
    X[:, 5] = np.where(rng.random(40) < 0.9, 1 - y, X[:, 5])
    return X, y


def run_command(*words: object) -> tuple[int, str, str]:
    """The exit code of a command, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


def refusal(code: int, err: str, folder: Path) -> str:
    """The kind of an error, which must be one line of ours."""
    lines = err.strip().splitlines()
    assert code == 1, f"exit code {code}"
    assert lines, "no message"
    assert lines[-1].startswith("featstream: error: "), err
    assert "Traceback" not in err, err
    assert "not enough memory" not in err, err
    return "error:" + _QUOTED.sub("n", lines[-1].replace(str(folder), ""))[:100]


def selection(out: str) -> list[tuple[int, float]]:
    """Positions and scores of what a command says it selected."""
    found = json.loads(out)["selected"]
    return sorted((item["index"], round(item["relevance"], 9)) for item in found)


def select_from(X: Any, y: Any) -> list[tuple[int, float]]:
    """The same for data in memory."""
    selector = SAOLA(measure="su").fit(X, y)
    pairs = zip(selector.selected_.tolist(), selector.scores_.tolist(), strict=True)
    return sorted((index, round(score, 9)) for index, score in pairs)


class _Command(ABC):
    """``featstream select FILE`` on damaged content."""

    suffix = ""
    words: tuple[bytes, ...] = ()
    options: tuple[str, ...] = ()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / f"d{self.suffix}"

    @abstractmethod
    def seeds(self) -> Iterator[bytes]:
        """Content that is whole."""

    @abstractmethod
    def reference(self) -> list[tuple[int, float]]:
        """The selection from the file by another reader; any error if it takes none."""

    def write(self, content: bytes) -> None:
        """Put the content where the command finds it."""
        self._path.write_bytes(content)

    def run(self, content: bytes) -> str:
        """Select, and compare."""
        self.write(content)
        words = "select", self._path, "--json", "-q", *_SELECTOR, *self.options
        code, out, err = run_command(*words)
        if code:
            return refusal(code, err, self._folder)
        found = selection(out)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = self.reference()
        except Exception as error:  # whatever another library raises
            return f"not judged:{type(error).__name__}"
        assert found == expected, f"selected {found}, and not {expected}"
        return f"selection:{found}"


class Npy(_Command):
    """An array of numpy, with its target in another file."""

    suffix = ".npy"
    words = (
        *(
            b"<f8",
            b">f4",
            b"|O",
            b"<U9",
            b"<c16",
            b"|V8",
            b"<M8[s]",
            b"True",
            b"(40, 8)",
        ),
        *(b"(1099511627776, 8)", b"(40, 1099511627776)", b"(0, 8)", b"(40, 0)", b"()"),
        *(b"\x93NUMPY\x01\x00", b"\x93NUMPY\x03\x00", b"\xff\xff", b"\x00", b"-1"),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        np.save(folder / "y.npy", example()[1])
        self.options = ("--target", str(folder / "y.npy"))

    def seeds(self) -> Iterator[bytes]:
        X, _ = example()
        for array in (X, np.asfortranarray(X), X.astype(np.int8)):
            file = io.BytesIO()
            np.save(file, array)
            yield file.getvalue()

    def reference(self) -> list[tuple[int, float]]:
        return select_from(np.load(self._path, allow_pickle=False), example()[1])


class Npz(_Command):
    """An archive of arrays, dense and sparse."""

    suffix = ".npz"
    words = (
        *Npy.words,
        *(
            b"PK\x03\x04",
            b"PK\x01\x02",
            b"PK\x05\x06",
            b"X.npy",
            b"y.npy",
            b"X_data.npy",
        ),
        *(b"csc", b"bsr", b"\xff\xff\xff\xff", b"\x08\x00", b"\x00\x00\x00\x00"),
    )

    def seeds(self) -> Iterator[bytes]:
        X, y = example()
        csc = sparse.csc_array(X)
        parts = {"X_data": csc.data, "X_indices": csc.indices, "X_indptr": csc.indptr}
        parts |= {"X_shape": np.array(csc.shape), "X_format": np.array("csc")}
        for save, arrays in (
            (np.savez, {"X": X, "y": y}),
            (np.savez_compressed, {"X": X, "y": y}),
            (np.savez, {**parts, "y": y}),
        ):
            file = io.BytesIO()
            save(file, **arrays)
            yield file.getvalue()

    def reference(self) -> list[tuple[int, float]]:
        with np.load(self._path, allow_pickle=False) as arrays:
            if "X" in arrays:
                return select_from(arrays["X"], arrays["y"])
            stored = arrays["X_data"], arrays["X_indices"], arrays["X_indptr"]
            make = getattr(sparse, f"{arrays['X_format'].item()}_array")
            X = make(stored, shape=tuple(arrays["X_shape"]))
            X.check_format(full_check=True)
            return select_from(X, arrays["y"])


class NpzMember(Npz):
    """An archive that is whole, with one damaged array: no checksum finds that.

    The first byte says which array it is.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._whole: list[tuple[dict[str, bytes], str]] = []
        for content in super().seeds():
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                members = {name: archive.read(name) for name in archive.namelist()}
            self._whole += [(members, name) for name in members]

    def seeds(self) -> Iterator[bytes]:
        for i, (members, name) in enumerate(self._whole):
            yield bytes([i]) + members[name]

    def write(self, content: bytes) -> None:
        which = (content[:1] + b"\0")[0] % len(self._whole)
        members, name = self._whole[which]
        with zipfile.ZipFile(self._path, "w") as archive:
            for other, whole in members.items():
                archive.writestr(other, content[1:] if other == name else whole)


class Parquet(_Command):
    """A table of pyarrow's."""

    suffix = ".parquet"
    words = (b"PAR1", b"\x15", b"\x00", b"\xff\xff\xff\xff", b"\x19\x1c", b"schema")

    def seeds(self) -> Iterator[bytes]:
        X, y = example()
        columns = {f"g{j}": column for j, column in enumerate(X.T)}
        for options in ({}, {"compression": "none", "use_dictionary": False}):
            file = io.BytesIO()
            pq.write_table(pa.table({**columns, "y": y}), file, **options)
            yield file.getvalue()

    def reference(self) -> list[tuple[int, float]]:
        table = pq.read_table(self._path).to_pandas()
        return select_from(table.drop(columns="y"), table["y"])


class H5ad(_Command):
    """An AnnData file, dense and sparse."""

    suffix = ".h5ad"
    words = (
        b"\x89HDF",
        b"TREE",
        b"HEAP",
        b"SNOD",
        b"OHDR",
        b"\x00",
        b"\xff\xff\xff\xff",
    )

    def seeds(self) -> Iterator[bytes]:
        X, y = example()
        obs = pd.DataFrame({"y": y.astype(str)}, [f"c{i}" for i in range(len(y))])
        var = pd.DataFrame(index=[f"g{j}" for j in range(X.shape[1])])
        for matrix in (X, sparse.csr_matrix(X)):
            path = self._folder / "seed.h5ad"
            anndata.AnnData(matrix, obs, var).write_h5ad(path)
            yield path.read_bytes()

    def reference(self) -> list[tuple[int, float]]:
        adata = anndata.read_h5ad(self._path)
        return select_from(adata.X, adata.obs["y"].to_numpy())


class Cols(_Command):
    """A column store; the first byte says which of its files is damaged."""

    suffix = ".cols"
    words = (
        *(b"<f8", b"|u1", b'"n_samples": 99', b"1099511627776", b"null", b"[]", b"-1"),
        *(b"\x93NUMPY", b"{", b"}", b"\x00", b"\xff\xff"),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        X, y = example()
        self._whole = []
        for i, data in enumerate((X, sparse.csc_array(X))):
            store = folder / f"whole-{i}.cols"
            if sparse.issparse(data):
                from featstream.sources import SparseSource

                write_store(store, SparseSource(data), y)
            else:
                write_store(store, ArraySource(X, [f"g{j}" for j in range(8)]), y)
            self._whole += [(store, file.name) for file in sorted(store.iterdir())]

    def seeds(self) -> Iterator[bytes]:
        for i, (store, name) in enumerate(self._whole):
            yield bytes([i]) + (store / name).read_bytes()

    def write(self, content: bytes) -> None:
        which = (content[:1] + b"\0")[0] % len(self._whole)
        store, name = self._whole[which]
        shutil.rmtree(self._path, ignore_errors=True)
        shutil.copytree(store, self._path)
        (self._path / name).write_bytes(content[1:])

    def reference(self) -> list[tuple[int, float]]:
        open_store(self._path).verify()  # what differs from its checksums is not judged
        return select_from(*example())


class Table(_Command):
    """A small table of text; its own reader is judged by the target csv."""

    suffix = ".csv"
    words = (
        *(b",", b'"', b"\n", b"\r", b";", b"#", b"1,234", b"5%", b"-999", b"\xff\xfe"),
        *(b"y", b"\x00", b"\xe9", b"NA", b"1e400", b"a" * 300, b"\x1f\x8b", b"g1"),
    )

    def seeds(self) -> Iterator[bytes]:
        X, y = example()
        header = ",".join([*(f"g{j}" for j in range(8)), "y"])
        rows = [
            ",".join(map(str, [*row, label])) for row, label in zip(X, y, strict=True)
        ]
        text = "\n".join([header, *rows])
        yield text.encode()
        yield text.replace(",", "\t").encode()
        yield text.encode("utf-16")

    def reference(self) -> list[tuple[int, float]]:
        raise NotImplementedError


class SvmlightCommand(Table):
    """Svmlight text; its own reader is judged by the target svmlight."""

    suffix = ".svm"
    words = (b":", b" ", b"\n", b"2147483647:1", b"1:1 ", b"nan", b"\x00", b"\x1f\x8b")

    def seeds(self) -> Iterator[bytes]:
        X, y = example()
        lines = []
        for row, label in zip(X, y, strict=True):
            entries = (f"{j + 1}:{row[j]:g}" for j in np.flatnonzero(row))
            lines.append(" ".join([str(label), *entries]))
        yield "\n".join(lines).encode()


class RunFolder:
    """``featstream resume`` and ``info`` on a damaged run: the selection, or an error.

    The first byte says which file is damaged. Checksums find every change.
    """

    words = (b"null", b"{}", b"-1", b"1e999", b"PK\x03\x04", b"\x1b[31m", b"\x00", b'"')

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "run"
        self._whole = folder / "whole"
        save_run("SAOLA-su", self._whole, _small_columns())
        self._names = sorted(p.name for p in self._whole.iterdir() if p.name != "lock")
        code, out, _ = run_command("resume", self._whole, "--json")
        assert code == 0
        self._expected = selection(out)

    def seeds(self) -> Iterator[bytes]:
        for i, name in enumerate(self._names):
            yield bytes([i]) + (self._whole / name).read_bytes()

    def run(self, content: bytes) -> str:
        shutil.rmtree(self._path, ignore_errors=True)
        shutil.copytree(self._whole, self._path)
        which = (content[:1] + b"\0")[0] % len(self._names)
        (self._path / self._names[which]).write_bytes(content[1:])
        code, out, err = run_command("info", self._path)
        if code:
            refusal(code, err, self._folder)
        assert "\x1b" not in out
        assert "\x1b" not in err
        code, out, err = run_command("resume", self._path, "--json")
        if code:
            return refusal(code, err, self._folder)
        assert selection(out) == self._expected
        return "selection:"


def _small_columns() -> np.ndarray:
    from fuzz.runs import small_data

    return small_data()[0]


COMMANDS = {
    "npy": Npy,
    "npz": Npz,
    "npz-member": NpzMember,
    "parquet": Parquet,
    "h5ad": H5ad,
    "cols": Cols,
    "table": Table,
    "svm": SvmlightCommand,
    "run": RunFolder,
}

NOT_OURS = {"h5ad": "the HDF5 library is not safe against malicious files"}
"""Targets that a signal may end, or that may hang, and why that is not judged."""

"""What is fuzzed. A target says what came out: a class of outcome, and a detail."""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import sparse

import featstream
from featstream.errors import DataError, MissingFileError, RunError
from featstream.runs.arrays import write_arrays
from featstream.runs.folder import seal
from featstream.sources import read_svmlight
from fuzz.commands import COMMANDS
from fuzz.files import Csv, Plink
from fuzz.runs import KINDS, PAIRWISE, go_on, newest_state, save_run, small_data

_NUMBER = re.compile(r"[0-9]+")


class Svmlight:
    """The reader of svmlight text: a matrix or `DataError`."""

    words = (
        *(b":", b" ", b"\n", b"#", b"qid:1 ", b"1:1 ", b"-", b"+", b"e", b".", b"0:"),
        *(b"nan", b"inf", b"1e309", b"2147483647:1", b"2147483648:1", b"\x00", b"\r\n"),
        *(b"1_0", b"1,2 ", b"99999999999999999999", b"\xef\xbb\xbf", b"\x1f\x8b"),
    )

    def __init__(self, folder: Path) -> None:
        self._path = folder / "input.svm"

    def seeds(self) -> Iterator[bytes]:
        yield b"1 1:0.5 3:2 # first\n-1 2:25e-2\n"
        yield b"spam qid:3 1:1 2:1\nham 7:1.25\n\n# nothing\nspam\n"
        yield b"+1 0:1 5:-3.75e+10\r\n-1 1:.5\r\n"
        rng = np.random.default_rng(0)
        lines = []
        for label in rng.integers(0, 2, 12):
            columns = np.flatnonzero(rng.random(30) < 0.3)
            lines.append(
                f"{label} " + " ".join(f"{c + 1}:{rng.random()!r}" for c in columns)
            )
        yield "\n".join(lines).encode()

    def run(self, content: bytes) -> str:
        self._path.write_bytes(content)
        try:
            X, y = read_svmlight(self._path, n_jobs=1)
        except DataError as error:
            return "DataError:" + _NUMBER.sub("n", str(error))[:80]
        assert X.shape[0] == y.size
        assert np.isfinite(X.data).all()
        if X.nnz:
            assert 0 <= X.indices.min() <= X.indices.max() < X.shape[1]
        return "matrix:"


class State:
    """The loader of runs: a state, the previous generation, or `RunError`.

    Inputs damage the description, the file of arrays, or the values of one array.
    Most get checksums that are right again, or nothing would get past these.
    """

    words = (
        *(b"PK\x03\x04", b"PK\x05\x06", b"\x93NUMPY\x01\x00", b"|O", b"<f8", b"<i8"),
        *(b"'shape': (9,)", b"True", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"-1"),
        *(b"null", b"[]", b"{}", b"1e999", b'"n_seen": 99', b"trace_fate", b"kept/"),
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "run"
        self._folder.mkdir()
        self._cases: list[tuple[bytes, str, bytes]] = []
        X, _ = small_data()
        forms = [(kind, X) for kind in KINDS]
        forms += [(kind, sparse.csc_array(X)) for kind in PAIRWISE]
        for i, (kind, data) in enumerate(forms):
            saved = folder / f"saved-{i}"
            save_run(kind, saved, data)
            state = newest_state(saved)
            facts = (saved / "run.json").read_bytes()
            self._cases.append((facts, state.name, state.read_bytes()))

    def seeds(self) -> Iterator[bytes]:
        for which, (facts, _, state) in enumerate(self._cases):
            yield bytes([which, 0, 0]) + facts
            yield bytes([which, 1, 0]) + state
            for k, array in enumerate(_arrays(state).values()):
                yield bytes([which, 2, k]) + array.tobytes()

    def run(self, content: bytes) -> str:
        which, part, k = (content[:3] + b"\0\0\0")[:3]
        facts, name, state = self._cases[which % len(self._cases)]
        damaged = content[3:]
        if part % 4 == 0:
            facts = damaged
        elif part % 4 == 1:
            state = damaged
        else:
            state = _with_array(state, k, damaged)
        if which < 128:
            facts = _sealed(facts, state)
        for old in self._folder.iterdir():
            old.unlink()
        (self._folder / "run.json").write_bytes(facts)
        (self._folder / name).write_bytes(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                selector = featstream.resume(self._folder)
            except (RunError, MissingFileError) as error:
                return f"{type(error).__name__}:" + _NUMBER.sub("n", str(error))[40:160]
            try:
                go_on(selector)
            except Exception as error:  # a forged state may be nonsense: no crash
                return f"forged:{type(error).__name__}"
        return "state:"


def _arrays(state: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(state), allow_pickle=False) as archive:
        return dict(archive)


def _with_array(state: bytes, k: int, content: bytes) -> bytes:
    """The file of arrays with other values in one of them."""
    arrays = _arrays(state)
    name = list(arrays)[k % len(arrays)]
    old = arrays[name]
    width = old.itemsize * (old.shape[1] if old.ndim == 2 else 1) or 1
    content = content[: len(content) // width * width]
    if old.dtype == bool:
        content = bytes(byte & 1 for byte in content)
    shape = (-1, old.shape[1]) if old.ndim == 2 and old.shape[1] else (-1,)
    arrays[name] = np.frombuffer(content, old.dtype).reshape(shape)
    file = io.BytesIO()
    write_arrays(file, arrays)
    return file.getvalue()


def _sealed(facts: bytes, state: bytes) -> bytes:
    """A description with right checksums, if it is one at all."""
    try:
        content = json.loads(facts)
        content.pop("sha256", None)
        for name in content["files"]:
            content["files"][name] = hashlib.sha256(state).hexdigest()
        return seal(content)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return facts


TARGETS = {
    "svmlight": Svmlight,
    "state": State,
    "plink": Plink,
    "csv": Csv,
    **COMMANDS,
}

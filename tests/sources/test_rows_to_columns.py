"""From rows to columns: the same store however the work is cut."""

import gzip
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featstream.errors import DataError, ParameterError
from featstream.sources import rows_to_columns
from featstream.sources.rows_to_columns import convert
from featstream.sources.store import open_store
from featstream.sources.svmlight import read_svmlight
from featstream.sources.values import LIMITS
from gather import as_array
from reference_svmlight import random_text
from strategies import examples


def check_conversion(path, out, **options):
    X, y = read_svmlight(path, zero_based=options.get("zero_based", "auto"))
    read = convert(path, out, **options)
    np.testing.assert_array_equal(as_array(read), X.toarray())
    assert read.y.tolist() == y.tolist()
    assert read.n_entries == np.count_nonzero(X.data)
    assert {path.suffix for path in read.path.iterdir()} == {".npy", ".json"}
    return read


@examples(15)
@given(
    n_rows=st.integers(1, 60),
    n_features=st.integers(1, 40),
    seed=st.integers(0, 99),
    max_entries=st.sampled_from([1, 7, 50, 10**6]),
    max_columns=st.sampled_from([1, 3, 10**6]),
    chunk=st.sampled_from([16, 300, 10**6]),
    base=st.integers(0, 1),
)
def test_any_cut_gives_the_same_store(
    tmp_path_factory, n_rows, n_features, seed, max_entries, max_columns, chunk, base
):
    """The sample of a compressed file is its beginning: here it knows one column."""
    folder = tmp_path_factory.mktemp("cut")
    path = folder / "x.svm"
    text = f"1 {n_features}:1\n" + random_text(n_rows, n_features, seed, base=base)
    path.write_bytes(gzip.compress(text.encode()) if seed % 2 else text.encode())
    memory = rows_to_columns._LEAST_MEMORY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LIMITS, "svmlight_chunk", chunk)
        patch.setattr(LIMITS, "entry_bytes", memory // max_entries)
        patch.setattr(LIMITS, "column_bytes", memory // max_columns)
        check_conversion(path, folder / "x.cols", memory=memory)


@pytest.mark.parametrize(
    ("values", "dtype"), [(["1"], "u1"), (["1", "0"], "u1"), (["-3", "0.5"], "f4")]
)
def test_the_type_is_found_while_converting(tmp_path, values, dtype):
    path = tmp_path / "x.svm"
    path.write_text(random_text(20, 10, 0, values=values))
    assert check_conversion(path, tmp_path / "x.cols").dtype == np.dtype(dtype)


def test_columns_far_apart_and_columns_without_entries(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("a 1:1 3000000:2\nb\n")
    read = convert(path, tmp_path / "x.cols", memory=64 << 20)
    assert read.shape == (2, 3_000_000)
    assert sum(block.columns.rows.size for block in read.blocks()) == 2
    assert read.y.tolist() == ["a", "b"]


def test_progress_is_reported(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text(random_text(20, 10, 0))
    seen = []
    convert(path, tmp_path / "x.cols", progress=lambda *step: seen.append(step))
    size = path.stat().st_size
    assert seen == [("reading", size, size), ("writing", 10, 10)]


def test_a_failed_conversion_leaves_nothing(tmp_path):
    path = tmp_path / "x.svm"
    for text, message in [
        ("1 1:1\n1 1:x\n", "line 2"),
        ("1\n", "no columns"),
        ("", "no"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            convert(path, tmp_path / "x.cols")
        assert os.listdir(tmp_path) == ["x.svm"]
    with pytest.raises(ParameterError, match="memory"):
        convert(path, tmp_path / "x.cols", memory=1)
    with pytest.raises(ParameterError, match="y"):
        convert(path, tmp_path / "x.cols", y=[1])


CHILD = """
import sys
from featstream.sources.rows_to_columns import convert
print("started", flush=True)
convert(sys.argv[1], sys.argv[2], memory=64 << 20)
print("finished", flush=True)
"""


@pytest.mark.slow
def test_a_killed_conversion_leaves_no_store(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text(random_text(2000, 300, 0) * 5)
    landed = 0
    for attempt in range(20):
        out = tmp_path / f"{attempt}.cols"
        command = [sys.executable, "-c", CHILD, str(path), str(out)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "started\n"
        time.sleep(0.05 * attempt)
        child.send_signal(signal.SIGKILL)
        if "finished" not in child.communicate()[0]:
            landed += 1
        if out.exists():  # the rename may have happened already
            assert as_array(open_store(out)).shape == (10_000, 300)
    assert landed > 0

import numpy as np
import pytest
from scipy import sparse

from featstream import SAOLA
from featstream.cli import main
from featstream.errors import MissingExtraError, ParameterError
from featstream.sources import open_dataset
from featstream.sources.open import FORMATS, Format
from gather import as_array, refused

X = np.array([[0, 1, 2], [3, 0, 5]])
Y = np.array([1, -1])


def sparse_parts(prefix="", matrix=None):
    matrix = sparse.csc_array(X) if matrix is None else matrix
    return {
        f"{prefix}data": matrix.data,
        f"{prefix}indices": matrix.indices.astype(np.uint16),
        f"{prefix}indptr": matrix.indptr,
        f"{prefix}shape": np.array(matrix.shape),
        f"{prefix}format": np.array(matrix.format),
    }


def check(dataset, *, y=Y, names=None):
    np.testing.assert_array_equal(as_array(dataset.source), X)
    assert dataset.names == names
    assert dataset.y is y is None or dataset.y.tolist() == y.tolist()


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": X, "y": Y},
        {"X_train": X, "y_train": Y, "X_test": X + 1, "y_test": Y},
        {**sparse_parts("X_"), "y": Y},
        {**sparse_parts("X_", sparse.csr_array(X)), "y": Y},
        {**sparse_parts("X_train_"), **sparse_parts("X_test_"), "y_train": Y},
        {**sparse_parts(), "y": Y},
    ],
)
def test_npz_in_every_layout(tmp_path, arrays):
    np.savez_compressed(tmp_path / "d.npz", **arrays)
    check(open_dataset(tmp_path / "d.npz"))


@pytest.mark.parametrize("fmt", ["csc", "csr", "bsr", "coo", "dia"])
@pytest.mark.parametrize("make", [sparse.coo_array, sparse.coo_matrix])
def test_npz_written_by_scipy(tmp_path, fmt, make):
    sparse.save_npz(tmp_path / "d.npz", make(X).asformat(fmt))
    check(open_dataset(tmp_path / "d.npz"), y=None)


def test_npz_with_names_and_another_target(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, t=Y, names=["a", "b", "c"])
    check(open_dataset(tmp_path / "d.npz", target="t"), names=["a", "b", "c"])
    check(open_dataset(tmp_path / "d.npz"), y=None, names=["a", "b", "c"])
    target = str(tmp_path / "y.npy")
    np.save(target, Y)
    dataset = open_dataset(tmp_path / "d.npz", target)
    check(dataset, names=["a", "b", "c"])
    assert dataset.target_name == target


def save_object_array(path):
    np.save(path, np.array([[{}]], object), allow_pickle=True)


def save_cut(path):
    np.save(path, np.zeros((100, 100)))
    path.write_bytes(path.read_bytes()[:5000])


def saves(**arrays):
    return lambda path: np.savez(path, **arrays)


OUTSIDE = {**sparse_parts("X_"), "X_indices": np.array([9, 9, 9, 9])}
BAD_FILES = {
    "flat.npy": (lambda path: np.save(path, Y), ": Expected 2D array, got 1D"),
    "pickle.npy": (save_object_array, "it holds objects of Python"),
    "cut.npy": (save_cut, "mmap length is greater than file"),
    "rows.npz": (
        saves(**OUTSIDE),
        "its matrix is not a valid sparse matrix: row index 9 is outside [0, 2)",
    ),
    "junk.npz": (lambda path: path.write_bytes(b"junk"), "it is not an archive"),
    "format.npz": (
        saves(**{**sparse_parts("X_"), "X_format": "zzz"}),
        "its sparse format is 'zzz', not one of csc",
    ),
    "part.npz": (saves(X_format="csc"), "X_shape is not a file in the archive"),
    "other.npz": (
        saves(a=X, b=Y),
        "neither an array X or X_train, nor a sparse matrix (X_data, X_indices, "
        "X_indptr, X_shape, X_format). It holds: a, b.",
    ),
    "target.npz": (
        saves(X=X, y=Y),
        "it has no array 'z' for a target, and there is no such",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_unreadable_files_are_named_with_the_reason(tmp_path, name):
    write, reason = BAD_FILES[name]
    write(tmp_path / name)
    with refused(tmp_path / name, reason):
        open_dataset(tmp_path / name, "z" if name == "target.npz" else None)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv' .*Check the path"):
        open_dataset(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="empty folder"):
        open_dataset(tmp_path)


def test_an_unknown_suffix_lists_the_known_ones(tmp_path):
    (tmp_path / "d.xyz").touch()
    with pytest.raises(ParameterError, match=r"suffix '\.xyz'\. Known: \.cols, \.npy"):
        open_dataset(tmp_path / "d.xyz")


STARS = """
import numpy as np
from featstream.sources import ArraySource, Dataset

def open_stars(path, target=None, *, mark="*"):
    rows = [[len(cell) * (cell[:1] == mark) for cell in line.split()]
            for line in open(path)]
    return Dataset(ArraySource(np.array(rows)[:, 1:]), np.array(rows)[:, 0])
"""


def test_a_new_format_is_a_module_and_a_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "stars.py").write_text(STARS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FORMATS, ".stars", Format("stars:open_stars", ("mark",)))
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "d.stars"
    path.write_text("* * **\n** ** *\n* * *\n** ** *\n")
    assert open_dataset(path).y.tolist() == [1, 2, 1, 2]
    assert open_dataset(tmp_path / "data").source.n_features == 2
    assert SAOLA(measure="su").fit(path).selected_.tolist() == [0]
    options = ["--selector", "saola", "--measure", "su", "-q"]
    assert main(["select", str(path), *options]) == 0
    assert "1 of 2 features selected" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["svm", "cols"])
def test_what_holds_its_own_target_takes_no_other(tmp_path, suffix):
    (tmp_path / f"d.{suffix}").touch()
    with pytest.raises(ParameterError, match=r"holds its own target\. Got target='y'"):
        open_dataset(tmp_path / f"d.{suffix}", "y")


@pytest.mark.parametrize(
    ("suffix", "wanted"),
    [
        ("csv", "pip install pyarrow"),
        ("zarr", r"needs zarr \(extra 'science'\)"),
        ("h5ad", r"needs anndata \(extra 'science'\)"),
    ],
)
def test_what_reads_a_file_is_asked_for(tmp_path, monkeypatch, suffix, wanted):
    monkeypatch.setattr("featstream.sources.open.find_spec", lambda name: None)
    (tmp_path / f"d.{suffix}").touch()
    with pytest.raises(MissingExtraError, match=wanted):
        open_dataset(tmp_path / f"d.{suffix}")

"""Bad input: the sentence it must give, by every way in.

Each case names the error, the whole sentence, and the ways in that apply. A
sentence says what is wrong, what was found and what to do.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from featstream import SAOLA, FisherZ, MutualInformation, SymmetricalUncertainty
from featstream.errors import DataError, FeatstreamError
from featstream.sources import ArraySource

N = 12
Y = np.arange(N) % 2
GOOD = np.random.default_rng(0).integers(0, 3, (N, 4)).astype(float)

# Ways in ------------------------------------------------------------------------


def names_of(X):
    return [f"x{j}" for j in range(X.shape[1])]


def columns_of(X):
    return {name: X[:, j] for j, name in enumerate(names_of(X))}


def by_update(selector, X, y, folder):
    selector.start(y)
    for values in X.T:
        selector.update(values)


def by_npy(selector, X, y, folder):
    np.save(folder / "data.npy", X)
    selector.fit(folder / "data.npy", y)


def by_npz(selector, X, y, folder):
    np.savez(folder / "data.npz", X=X)
    selector.fit(str(folder / "data.npz"), y)


def by_parquet(selector, X, y, folder):
    table = pa.table({**columns_of(X), "target": np.zeros(len(X))})
    pyarrow.parquet.write_table(table, folder / "data.parquet")
    selector.fit(folder / "data.parquet", y)


WAYS = {
    "array": lambda s, X, y, _: s.fit(X, y),
    "fortran": lambda s, X, y, _: s.fit(np.asfortranarray(X), y),
    "csc": lambda s, X, y, _: s.fit(sparse.csc_array(X), y),
    "csr": lambda s, X, y, _: s.fit(sparse.csr_matrix(X), y),
    "pandas": lambda s, X, y, _: s.fit(pd.DataFrame(X, columns=names_of(X)), y),
    "polars": lambda s, X, y, _: s.fit(pl.DataFrame(columns_of(X)), y),
    "pyarrow": lambda s, X, y, _: s.fit(pa.table(columns_of(X)), y),
    "iterator": lambda s, X, y, _: s.fit(iter(columns_of(X).items()), y),
    "source": lambda s, X, y, _: s.fit(ArraySource(X), y),
    "consume": lambda s, X, y, _: s.start(y).consume(X),
    "update": by_update,
    "npy": by_npy,
    "npz": by_npz,
    "parquet": by_parquet,
}
NUMBERS = tuple(WAYS)
OBJECTS = ("array", "fortran", "pandas", "iterator", "source", "consume", "update")
TOGETHER = ("array", "fortran", "csc", "csr", "source", "consume")
ALONE = ("pandas", "iterator", "update")
TARGETS = ("array", "csc", "pandas", "polars", "iterator", "consume", "update", "npy")


def put(value, row=5, column=2, dtype=float):
    X = GOOD.astype(dtype)
    X[row, column] = value
    return X


def objects(*values):
    """An array with a column of these objects, in turn, beside numbers."""
    X = GOOD.astype(object)
    for row in range(N):
        X[row, 2] = values[row % len(values)]
    return X


@dataclass
class Case:
    """What is given, and the sentence that it must give."""

    about: str
    error: type[Exception]
    sentence: str
    X: Any = field(default_factory=lambda: GOOD)
    y: Any = field(default_factory=lambda: Y)
    options: dict[str, Any] = field(default_factory=lambda: {"measure": "su"})
    ways: tuple[str, ...] = NUMBERS


MISSING = "Pass missing='category' to the measure, or fill them in."
MISSING_Z = (
    "Fill them in, drop the feature, or use "
    "measure=SymmetricalUncertainty(missing='category')."
)
SAMPLES = "Every feature needs one value per sample, in the order given to start(y)."

DATA = [
    Case(
        "NaN, symmetrical uncertainty",
        ValueError,
        f"Feature 'x2' has 1 missing value (NaN), the first at row 5. {MISSING}",
        X=put(np.nan),
    ),
    Case(
        "several NaN, mutual information",
        ValueError,
        f"Feature 'x2' has 3 missing values (NaN), the first at row 5. {MISSING}",
        X=put(np.nan, row=[5, 8, 9]),
        options={"measure": "mi"},
    ),
    Case(
        "NaN, Fisher's Z",
        ValueError,
        f"Feature 'x2' has 1 missing value (NaN), the first at row 5. {MISSING_Z}",
        X=put(np.nan),
        options={"measure": "fisher-z"},
    ),
    Case(
        "infinity, symmetrical uncertainty",
        ValueError,
        "Feature 'x2' has infinite values (inf), the first at row 5. Replace them or "
        "drop the feature.",
        X=put(np.inf),
    ),
    Case(
        "minus infinity, Fisher's Z",
        ValueError,
        "Feature 'x2' has infinite values (inf), the first at row 5. Replace them or "
        "drop the feature.",
        X=put(-np.inf),
        options={"measure": "fisher-z"},
    ),
    Case(
        "infinity where missing is allowed",
        ValueError,
        "Feature 'x2' has infinite values (inf), the first at row 5. Replace them or "
        "drop the feature.",
        X=put(np.inf),
        options={"measure": SymmetricalUncertainty(missing="category")},
    ),
    Case(
        "squares that overflow",
        ValueError,
        "Feature 'x2' has values as large as 1e+300, whose squares overflow. Rescale "
        "it.",
        X=put(1e300),
        options={"measure": "fisher-z"},
    ),
    Case(
        "squares that vanish",
        ValueError,
        "Feature 'x2' has values as small as 2e-200, whose squares vanish. Rescale it.",
        X=np.where(np.arange(4) == 2, 1e-200, 1.0) * GOOD,
        options={"measure": "fisher-z"},
    ),
    Case(
        "too few rows",
        ValueError,
        f"Feature 'x0' has 12 values but the target has 13. {SAMPLES}",
        y=np.arange(N + 1) % 2,
    ),
    Case(
        "too many rows, Fisher's Z",
        ValueError,
        f"Feature 'x0' has 12 values but the target has 11. {SAMPLES}",
        y=np.arange(N - 1) % 2,
        options={"measure": "fisher-z"},
    ),
    Case(
        "too many rows, any measure",
        ValueError,
        f"Feature 'x0' has 12 values but the target has 11. {SAMPLES}",
        y=np.arange(N - 1) % 2,
        options={},
    ),
    Case(
        "text with Fisher's Z",
        TypeError,
        "Feature 'x2' is text or categorical, and FisherZ needs a number: encode it "
        "or use measure='su'.",
        X=objects("red", "blue"),
        options={"measure": "fisher-z"},
        ways=OBJECTS,
    ),
    Case(
        "missing text",
        ValueError,
        f"Feature 'x2' has 6 missing values (NaN), the first at row 1. {MISSING}",
        X=objects("red", None),
        ways=OBJECTS,
    ),
    Case(
        "text and numbers in one column",
        TypeError,
        "Feature 'x2' has dtype object and mixes float (row 0) with str (row 1). Make "
        "all of its values numbers, or all of them text.",
        X=objects(1.0, "red"),
        ways=OBJECTS,
    ),
    Case(
        "lists in a column",
        TypeError,
        "Feature 'x2' has dtype object and a value of type list at row 0; the "
        "argument must be a string or a number.",
        X=objects([1]),
        ways=OBJECTS,
    ),
    Case(
        "complex numbers, together",
        TypeError,
        "Complex data not supported: X has dtype complex128. Give the real and "
        "imaginary parts, or the modulus, as features.",
        X=GOOD * 1j,
        ways=TOGETHER,
    ),
    Case(
        "complex numbers, alone",
        TypeError,
        "Complex data not supported: Feature 'x0' has dtype complex128. Give the real "
        "and imaginary parts, or the modulus, as features.",
        X=GOOD * 1j,
        ways=ALONE,
    ),
    Case(
        "dates, together",
        TypeError,
        "X has dtype datetime64[D]: a date or a duration is not a number. Convert it "
        "to a number, for instance of days since a fixed date.",
        X=np.full((N, 2), np.datetime64("2016-07-31")),
        ways=("array", "fortran", "source", "consume"),
    ),
    Case(
        "dates, alone",
        TypeError,
        "Feature 'x0' has dtype datetime64[D]: a date or a duration is not a number. "
        "Convert it to a number, for instance of days since a fixed date.",
        X=np.full((N, 2), np.datetime64("2016-07-31")),
        ways=("iterator", "update"),
    ),
    Case(
        "dates in a frame",
        TypeError,
        "Feature 'x0' has dtype Date, which is neither numbers nor text. Convert it to "
        "a number, for instance of days since a fixed date.",
        X=np.full((N, 2), np.datetime64("2016-07-31")),
        ways=("polars", "pyarrow"),
    ),
    Case(
        "durations",
        TypeError,
        "Feature 'x0' has dtype timedelta64[D]: a date or a duration is not a number. "
        "Convert it to a number, for instance of days since a fixed date.",
        X=np.full((N, 2), np.timedelta64(3, "D")),
        ways=("iterator", "update"),
    ),
    Case(
        "raw bytes",
        TypeError,
        "X has dtype |V4, which is neither numbers nor text. Give each feature as "
        "numbers, booleans or strings.",
        X=np.zeros((N, 2), "V4"),
        ways=("array", "fortran", "source", "consume"),
    ),
    Case(
        "no rows",
        ValueError,
        "Found array with 0 sample(s) (shape=(0, 4)) while a minimum of 1 is required.",
        X=GOOD[:0],
        ways=(
            "array",
            "fortran",
            "csc",
            "csr",
            "pandas",
            "polars",
            "pyarrow",
            "consume",
        ),
    ),
    Case(
        "no features",
        ValueError,
        "Found array with 0 feature(s) (shape=(12, 0)) while a minimum of 1 is "
        "required.",
        X=GOOD[:, :0],
        ways=("array", "fortran", "csc", "csr", "pandas", "iterator", "npy", "npz"),
    ),
    Case(
        "one dimension",
        ValueError,
        "Expected 2D array, got 1D array instead (shape=(12,)). Reshape your data "
        "either using array.reshape(-1, 1) if your data has a single feature or "
        "array.reshape(1, -1) if it contains a single sample.",
        X=GOOD[:, 0],
        ways=("array", "source", "consume"),
    ),
    Case(
        "three dimensions",
        ValueError,
        "Found array with dim 3, while dim <= 2 is required.",
        X=GOOD[:, :, None],
        ways=("array", "source", "consume"),
    ),
    Case(
        "a masked array",
        TypeError,
        "X is a masked array, whose mask would be lost. Give missing values as NaN: "
        "X.astype(float).filled(np.nan).",
        X=np.ma.masked_array(GOOD, GOOD > 1),
        ways=("array", "source", "consume"),
    ),
]

LABELS = "array with one label per sample."
TARGET = [
    Case(
        "no target",
        ValueError,
        "This selector requires y to be passed, but the target y is None. Pass one "
        "label per sample.",
        y=None,
    ),
    Case(
        "two targets",
        ValueError,
        f"y must be one-dimensional, got shape (12, 2). y should be a 1d {LABELS}",
        y=np.column_stack([Y, Y]),
    ),
    Case(
        "a number for a target",
        ValueError,
        f"y must be one-dimensional, got shape (). y should be a 1d {LABELS}",
        y=3,
    ),
    Case(
        "one class",
        ValueError,
        "y has a single class ('spam'); at least two are needed, so one class cannot "
        "be told from another. Check the labels.",
        y=["spam"] * N,
    ),
    Case(
        "one class, a number",
        ValueError,
        "y has a single class (1); at least two are needed, so one class cannot be "
        "told from another. Check the labels.",
        y=np.ones(N, int),
    ),
    Case("an empty target", ValueError, "y is empty. Pass one label per sample.", y=[]),
    Case(
        "one sample",
        ValueError,
        "y has only 1 sample. Pass the labels of at least two.",
        y=[1],
    ),
    Case(
        "NaN in the target",
        ValueError,
        "y has 6 missing labels (NaN), the first at row 1. Drop those samples.",
        y=np.where(Y, np.nan, 1.0),
    ),
    Case(
        "None in the target",
        ValueError,
        "y has 1 missing label (NaN), the first at row 11. Drop those samples.",
        y=[*"ab" * 5, "a", None],
    ),
    Case(
        "NA in a series",
        ValueError,
        "y has 1 missing label (NaN), the first at row 10. Drop those samples.",
        y=pd.Series([1, 2] * 5 + [pd.NA, 1], dtype="Int64"),
    ),
    Case(
        "infinity in the target",
        ValueError,
        "y has infinite labels (inf), the first at row 1. Drop those samples.",
        y=np.where(Y, np.inf, 1.0),
    ),
    Case(
        "a continuous target",
        ValueError,
        "y looks continuous: 0.25 at row 1 is no class label. Unknown label type: "
        "continuous. Bin it, or use FisherZ(target='numeric').",
        y=np.arange(N) / 4,
    ),
    Case(
        "labels of two types",
        TypeError,
        "y mixes labels of the types int, str, which have no order. Give all labels "
        "one type.",
        y=["a", 1] * 6,
    ),
    Case(
        "complex labels",
        TypeError,
        "y has dtype complex128. Give labels as numbers, text or booleans.",
        y=Y * 1j,
    ),
    Case(
        "dates for labels",
        TypeError,
        "y has dtype datetime64[D]. Give labels as numbers, text or booleans.",
        y=np.full(N, np.datetime64("2016-07-31")),
    ),
    Case(
        "a ragged target",
        TypeError,
        "y is a ragged sequence: its items have different lengths. Pass one label per "
        "sample.",
        y=[[1], [2, 3]] * 6,
    ),
    Case(
        "text for a numeric target",
        TypeError,
        "y has the label 'a', which is not a number. Use FisherZ(target='nominal') for "
        "labels.",
        y=["a", "b"] * 6,
        options={"measure": FisherZ(target="numeric")},
    ),
    Case(
        "a constant for a numeric target",
        ValueError,
        "y has a single value (2.5); nothing correlates with a constant, at least two "
        "values are needed. Check the target.",
        y=np.full(N, 2.5),
        options={"measure": FisherZ(target="numeric")},
    ),
]


def parameter(about, sentence, error=ValueError, **options):
    options = {"measure": "su", **options}
    return Case(
        about, error, sentence, options=options, ways=("array", "csc", "update")
    )


SMALL = "Use a small level such as alpha=0.01."
OBJECT = "Write measure='su', or measure=FisherZ(alpha=0.01)."
FROM_0_TO_1 = "`threshold` of SymmetricalUncertainty must be in [0, 1)."
LEVEL = "`alpha` of FisherZ must be a float in (0, 1)."
INTEGER = (
    "`max_features` of SAOLA must be an integer of at least 1, or None for no limit."
)
BINS = "`n_bins` of SymmetricalUncertainty must be an integer of at least 2."
BINNING = (
    "`binning` of SymmetricalUncertainty must be 'quantile', 'uniform', 'mdl' or None."
)
SU = SymmetricalUncertainty
PARAMETERS = [
    parameter(
        "alpha in percent",
        f"{LEVEL} Got 5. For a 5% level write alpha=0.05.",
        measure=FisherZ(alpha=5),
    ),
    parameter("alpha of 0", f"{LEVEL} Got 0. {SMALL}", measure=FisherZ(alpha=0)),
    parameter("alpha < 0", f"{LEVEL} Got -0.1. {SMALL}", measure=FisherZ(alpha=-0.1)),
    parameter("NaN alpha", f"{LEVEL} Got nan. {SMALL}", measure=FisherZ(alpha=np.nan)),
    parameter("text alpha", f"{LEVEL} Got '5%'. {SMALL}", measure=FisherZ(alpha="5%")),
    parameter(
        "alpha True",
        f"{LEVEL} Got True. For a 1% level write alpha=0.01.",
        measure=FisherZ(alpha=True),
    ),
    parameter(
        "a target unknown",
        "`target` of FisherZ must be 'nominal' or 'numeric'. Got 'ordinal'.",
        measure=FisherZ(target="ordinal"),
    ),
    parameter(
        "a measure misspelt",
        "Unknown measure 'fisher_z'. Did you mean 'fisher-z'?",
        measure="fisher_z",
    ),
    parameter(
        "a measure in capitals",
        "Unknown measure 'SU'. Did you mean 'su'?",
        measure="SU",
    ),
    parameter(
        "a measure unknown",
        "Unknown measure 'gini'. Known: auto, fisher-z, mi, su.",
        measure="gini",
    ),
    parameter(
        "a class for a measure",
        "`measure` must be a name or a measure object. Got <class "
        f"'featstream.measures.fisher.FisherZ'>. {OBJECT}",
        TypeError,
        measure=FisherZ,
    ),
    parameter(
        "no measure",
        f"`measure` must be a name or a measure object. Got None. {OBJECT}",
        TypeError,
        measure=None,
    ),
    parameter(
        "a threshold too high",
        f"{FROM_0_TO_1} Got 1.5. The paper uses threshold=0.0.",
        measure=SU(threshold=1.5),
    ),
    parameter(
        "a threshold below 0",
        f"{FROM_0_TO_1} Got -0.1. The paper uses threshold=0.0.",
        measure=SU(threshold=-0.1),
    ),
    parameter(
        "bits below 0",
        "`threshold` of MutualInformation must be in [0, inf). Got -1. The paper uses "
        "threshold=0.0.",
        measure=MutualInformation(threshold=-1),
    ),
    parameter("one bin", f"{BINS} Got 1.", measure=SU(n_bins=1)),
    parameter("half a bin", f"{BINS} Got 2.5.", measure=SU(n_bins=2.5)),
    parameter(
        "a binning unknown", f"{BINNING} Got 'kmeans'.", measure=SU(binning="kmeans")
    ),
    parameter(
        "a list of binnings", f"{BINNING} Got ['mdl'].", measure=SU(binning=["mdl"])
    ),
    parameter(
        "missing, otherwise",
        "`missing` of SymmetricalUncertainty must be 'error' or 'category'. Got "
        "'drop'.",
        measure=SU(missing="drop"),
    ),
    parameter("no room", f"{INTEGER} Got 0.", max_features=0),
    parameter("half a feature", f"{INTEGER} Got 2.5.", max_features=2.5),
    parameter("True features", f"{INTEGER} Got True.", max_features=True),
    parameter(
        "a bound unknown",
        "`bound` of SAOLA must be 'min' or 'max'. Got 'mean'.",
        bound="mean",
    ),
    parameter(
        "ties unknown",
        "`ties` of SAOLA must be 'keep' or 'drop'. Got 'first'.",
        ties="first",
    ),
    parameter(
        "a pruning unknown",
        "`pruning` of SAOLA must be 'interleaved' or 'deferred'. Got True.",
        pruning=True,
    ),
    parameter(
        "an overlap unknown",
        "`overlap` of SAOLA must be '>=' or '>'. Got '=='.",
        overlap="==",
    ),
    parameter(
        "a trace unknown",
        "`trace` must be 'full', 'kept' or None. Got 'all'.",
        trace="all",
    ),
]

TARGET_CASES = [(case, way) for case in TARGET for way in TARGETS]
CASES = [(case, way) for case in DATA + PARAMETERS for way in case.ways] + TARGET_CASES


@pytest.mark.parametrize(
    ("case", "way"), CASES, ids=[f"{case.about}, {way}" for case, way in CASES]
)
def test_bad_input_is_told(case, way, tmp_path):
    with pytest.raises(FeatstreamError) as caught:
        WAYS[way](SAOLA(**case.options), case.X, case.y, tmp_path)
    assert isinstance(caught.value, case.error)
    assert str(caught.value).removeprefix(f"{tmp_path}/data.{way}: ") == case.sentence


def test_there_are_many_cases():
    about = [case.about for case in DATA + TARGET + PARAMETERS]
    assert len(set(about)) == len(about) >= 60


def test_each_good_input_is_accepted(tmp_path):
    """The ways in themselves raise nothing: the cases above are at fault."""
    expected = SAOLA(measure="su").fit(GOOD, Y).selected_.tolist()
    for name, way in WAYS.items():
        selector = SAOLA(measure="su")
        way(selector, GOOD, Y, tmp_path)
        assert selector.selected_.tolist() == expected, name


@pytest.mark.parametrize("way", TARGETS)
def test_a_column_for_a_target_is_a_warning(way, tmp_path):
    with pytest.warns(DataConversionWarning, match=r"Pass y.ravel\(\) to silence"):
        WAYS[way](SAOLA(measure="su"), GOOD, Y[:, None], tmp_path)


def test_a_good_run_warns_of_nothing(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for way in WAYS.values():
            way(SAOLA(measure="su"), GOOD, Y, tmp_path)


# Use ------------------------------------------------------------------------------


def started(**options):
    return SAOLA(measure="su", **options).start(Y)


NOT_STARTED = (
    "This SAOLA has seen no target. Call start(y) before update or consume, or "
    "fit(X, y)."
)
NAMED = pd.DataFrame(GOOD, columns=["gene_1", "gene_2", "gene_3", "gene_4"])
CHOICES = (
    "Give a two-dimensional array or list of rows, a scipy.sparse matrix, a pandas, "
    "polars or pyarrow table, the path of a data set, an iterable of (name, values), "
    "or a Source."
)
USES = {
    "update before start": (
        lambda: SAOLA().update(Y), ValueError, NOT_STARTED),
    "consume before start": (
        lambda: SAOLA().consume(GOOD), AttributeError, NOT_STARTED),
    "explain before start": (
        lambda: SAOLA().explain("x0"), ValueError, NOT_STARTED),
    "selected_ before start": (
        lambda: SAOLA().selected_, AttributeError, NOT_STARTED),
    "result_ before start": (
        lambda: SAOLA().result_, AttributeError, NOT_STARTED),
    "a name misremembered": (
        lambda: SAOLA(measure="su").fit(NAMED, Y).explain("gen_2"),
        ValueError,
        "No feature 'gen_2' among the 4 seen. Did you mean 'gene_2'?",
    ),
    "a name unknown": (
        lambda: SAOLA(measure="su").fit(GOOD, Y).explain("age"),
        ValueError,
        "No feature 'age' among the 4 seen. Give its name, or an arrival below 4.",
    ),
    "an arrival to come": (
        lambda: SAOLA(measure="su").fit(GOOD, Y).explain(4),
        ValueError,
        "No feature 4 among the 4 seen. Give its name, or an arrival below 4.",
    ),
    "an arrival from the end": (
        lambda: SAOLA(measure="su").fit(GOOD, Y).explain(-1),
        ValueError,
        "No feature -1 among the 4 seen. Give its name, or an arrival below 4.",
    ),
    "half an arrival": (
        lambda: SAOLA(measure="su").fit(GOOD, Y).explain(1.5),
        TypeError,
        "A feature is found by its name, a string, or its arrival, an integer. Got "
        "1.5.",
    ),
    "a reason not recorded": (
        lambda: started(trace=None).consume(np.zeros((N, 1))).explain("x0"),
        ValueError,
        "Feature 'x0' was dropped, and the trace does not say why. Use trace='full' to "
        "record every feature.",
    ),
    "a table for a feature": (
        lambda: started().update(GOOD),
        ValueError,
        "Feature 'x0' has shape (12, 4). Give one value a sample, in one dimension.",
    ),
    "a number for a feature": (
        lambda: started().update(3, name="age"),
        ValueError,
        "Feature 'age' has shape (). Give one value a sample, in one dimension.",
    ),
    "a sparse table for a feature": (
        lambda: started().update(sparse.csc_array(GOOD)),
        ValueError,
        "Feature 'x0' has 4 columns. A sparse feature must have exactly one column.",
    ),
    "a short feature": (
        lambda: started().update([1, 0], name="gene_17"),
        ValueError,
        f"Feature 'gene_17' has 2 values but the target has 12. {SAMPLES}",
    ),
    "a number for a name": (
        lambda: started().update(Y, name=17),
        TypeError,
        "A feature name must be a string. Got 17 of type int.",
    ),
    "a name twice, by update": (
        lambda: twice(started()),
        ValueError,
        "Feature name 'a' already seen at position 0 (now 2). Names must be unique.",
    ),
    "a name twice, in a frame": (
        lambda: started().consume(pd.DataFrame(GOOD, columns=list("abca"))),
        ValueError,
        "Feature name 'a' already seen at position 0 (now 3). Names must be unique.",
    ),
    "a name twice, by an iterator": (
        lambda: started().consume(iter([("a", Y), ("a", Y)])),
        ValueError,
        "Feature name 'a' already seen at position 0 (now 1). Names must be unique.",
    ),
    "a name twice, in two frames": (
        lambda: started().consume(NAMED).consume(NAMED),
        ValueError,
        "Feature name 'gene_1' already seen at position 0 (now 4). Names must be "
        "unique.",
    ),
    "names of two types": (
        lambda: started().consume(pd.DataFrame(GOOD, columns=["a", 1, "b", 2])),
        TypeError,
        "Feature names are only supported if all input features have string names, but "
        "your input has ['int', 'str'] as feature name / column name types. If you "
        "want feature names to be stored and validated, you must convert them all to "
        "strings, by using X.columns = X.columns.astype(str) for example. Otherwise "
        "you can remove feature / column names from your input data, or convert them "
        "all to a non-string data type.",
    ),
    "values without a name": (
        lambda: started().consume(iter([Y])),
        TypeError,
        "An iterator of features must give pairs (name, values). Got a ndarray at "
        "position 0.",
    ),
    "columns of two lengths": (
        lambda: started().consume(iter([("a", Y), ("b", Y[:5])])),
        ValueError,
        "Feature 'b' has 5 values but the features before it have 12. Every feature "
        "needs one value per sample.",
    ),
    "a ragged list": (
        lambda: SAOLA(measure="su").fit([[1, 2], [3]], [0, 1]),
        TypeError,
        "X is a ragged sequence: its items have different lengths. Give one value for "
        "each feature and sample.",
    ),
    "a number for data": (
        lambda: SAOLA().fit(3, Y),
        TypeError,
        f"Cannot read features from int. {CHOICES}",
    ),
    "nothing for data": (
        lambda: SAOLA().fit(None, Y),
        TypeError,
        f"Cannot read features from NoneType. {CHOICES}",
    ),
    "a dictionary for data": (
        lambda: SAOLA().fit({"a": Y}, Y),
        TypeError,
        f"Cannot read features from dict. {CHOICES}",
    ),
    "an iterator with nothing in it": (
        lambda: SAOLA().fit(iter([]), Y),
        ValueError,
        "Found array with 0 feature(s) (shape=(12, 0)) while a minimum of 1 is "
        "required.",
    ),
}  # fmt: skip


def twice(selector):
    for name in ("a", "b", "a"):
        selector.update(Y, name=name)


@pytest.mark.parametrize("use", USES)
def test_wrong_use_is_told(use):
    call, error, sentence = USES[use]
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, FeatstreamError)
    assert str(caught.value) == sentence


def test_a_missing_file_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError) as caught:
        SAOLA().fit("data.npz", Y)
    assert str(caught.value) == (
        f"There is no file 'data.npz' (working folder: {tmp_path}). Check the path."
    )


def test_a_file_of_unknown_kind_is_told(tmp_path):
    (tmp_path / "data.xls").touch()
    with pytest.raises(ValueError, match=r"suffix '\.xls'. Known: \.cols, \.npy,"):
        SAOLA().fit(tmp_path / "data.xls", Y)


def test_an_empty_stream_is_no_error():
    stream = SAOLA().start(Y).consume(iter([]))
    assert (stream.n_seen_, stream.selected_.tolist()) == (0, [])
    assert len(stream.result_) == 0
    assert stream.measure_ == "auto"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (put(np.nan)[:, 2], "new"),
        (put(np.inf)[:, 2], "new"),
        (Y[:5], "new"),
        (Y * 1j, "new"),
        (Y, "a"),  # taken
        (Y, 7),
    ],
)
@pytest.mark.parametrize("measure", ["su", "fisher-z"])
def test_a_refused_feature_leaves_no_trace(values, name, measure):
    """The stream goes on as if it had never come."""
    stream = SAOLA(measure=measure).start(Y)
    control = SAOLA(measure=measure).start(Y)
    for selector in (stream, control):
        selector.update(GOOD[:, 0], name="a")
    with pytest.raises(FeatstreamError):
        stream.update(values, name=name)
    for selector in (stream, control):
        selector.update(GOOD[:, 1], name="new")
        selector.update(Y, name="class")
    assert stream.n_seen_ == control.n_seen_ == 3
    assert stream.result_.names == control.result_.names
    records = control.result_.trace.records.tolist()
    assert stream.result_.trace.records.tolist() == records


def test_names_are_shown_with_control_characters_escaped():
    hostile = "gene\x1b[31m\n"
    with pytest.raises(DataError) as caught:
        started().update(put(np.nan)[:, 2], name=hostile)
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "'gene\\x1b[31m\\n'" in str(caught.value)


def test_a_long_name_is_shortened():
    with pytest.raises(DataError) as caught:
        started().update(put(np.nan)[:, 2], name="g" * 10_000)
    assert len(str(caught.value)) < 300


def test_an_empty_name_is_a_name():
    assert started().update(Y, name="").name == ""

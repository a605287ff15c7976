"""Bad input: the class of the error, the feature it names and the way out it offers."""

import warnings
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from featstream import (
    OFS,
    SAOLA,
    AlphaInvesting,
    FisherZ,
    Grafting,
    GroupSAOLA,
    MutualInformation,
    SymmetricalUncertainty,
)
from featstream.errors import DataError, FeatstreamError
from featstream.selectors import SELECTORS
from featstream.sources import ArraySource, SparseSource

N = 12
Y = np.arange(N) % 2
GOOD = np.random.default_rng(0).integers(0, 3, (N, 4)).astype(float)
SU = SymmetricalUncertainty

# Ways in ------------------------------------------------------------------------


def columns_of(X):
    return {f"x{j}": X[:, j] for j in range(X.shape[1])}


def by_update(selector, X, y, folder):
    selector.start(y)
    for values in X.T:
        selector.update(values)


def by_file(selector, X, y, path):
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".npz":
        np.savez(path, X=X)
    else:
        table = pa.table({**columns_of(X), "target": np.zeros(len(X))})
        pyarrow.parquet.write_table(table, path)
    selector.fit(path, y)


WAYS = {
    "array": lambda s, X, y, _: s.fit(X, y),
    "csc": lambda s, X, y, _: s.fit(sparse.csc_array(X), y),
    "csr": lambda s, X, y, _: s.fit(sparse.csr_matrix(X), y),
    "pandas": lambda s, X, y, _: s.fit(pd.DataFrame(columns_of(X)), y),
    "polars": lambda s, X, y, _: s.fit(pl.DataFrame(columns_of(X)), y),
    "pyarrow": lambda s, X, y, _: s.fit(pa.table(columns_of(X)), y),
    "iterator": lambda s, X, y, _: s.fit(iter(columns_of(X).items()), y),
    "source": lambda s, X, y, _: s.fit(ArraySource(X), y),
    "consume": lambda s, X, y, _: s.start(y).consume(X),
    "update": by_update,
    "npy": lambda s, X, y, folder: by_file(s, X, y, folder / "data.npy"),
    "npz": lambda s, X, y, folder: by_file(s, X, y, folder / "data.npz"),
    "parquet": lambda s, X, y, folder: by_file(s, X, y, folder / "data.parquet"),
}
MEMORY = ("array", "csc", "update")
OBJECTS = ("array", "pandas", "update")
CASES = []


def wrong(call, error, *parts, about=None):
    """Add a case: the error that a call raises, and what the message must say."""
    CASES.append(pytest.param(call, error, parts, id=about))


def bad(about, error, *parts, X=GOOD, y=Y, ways=MEMORY, measure="su"):
    """Add the cases of bad data, or of a bad measure, given in several ways."""
    for way in ways:
        call = partial(WAYS[way], SAOLA(measure=measure), X, y)
        wrong(call, error, *parts, about=f"{about}, {way}")


def refused(make, *parts, **options):
    """Add the case of a bad parameter."""
    call = partial(WAYS["array"], make(**options), GOOD, Y)
    wrong(call, ValueError, *parts, about=f"{make.__name__}, {options}")


def use(call, error, *parts):
    """Add the case of a wrong use."""
    wrong(lambda _: call(), error, *parts)


def put(value, row=5, column=2):
    X = GOOD.copy()
    X[row, column] = value
    return X


def objects(*values):
    """An array with a column of these objects, in turn, beside numbers."""
    X = GOOD.astype(object)
    for row in range(N):
        X[row, 2] = values[row % len(values)]
    return X


# Values -------------------------------------------------------------------------

MISSING = ("Feature 'x2'", "1 missing value", "at row 5", "missing='category'")
INFINITE = ("Feature 'x2'", "infinite", "at row 5", "drop the feature")
bad("NaN", ValueError, *MISSING, X=put(np.nan), ways=WAYS)
bad("NaN, mi", ValueError, "3 missing", X=put(np.nan, row=[5, 8, 9]), measure="mi")
bad("NaN, Z", ValueError, *MISSING, X=put(np.nan), measure="fisher-z")
bad("inf", ValueError, *INFINITE, X=put(np.inf))
bad("-inf, Z", ValueError, *INFINITE, X=put(-np.inf), measure="fisher-z")
HOLES = SU(missing="category")
bad("inf, missing", ValueError, *INFINITE, X=put(np.inf), measure=HOLES)
HUGE = ("'x2'", "1e+300", "Rescale")
bad("overflow", ValueError, *HUGE, X=put(1e300), measure="fisher-z")
TINY = np.where(np.arange(4) == 2, 1e-200, 1.0) * GOOD
bad("vanish", ValueError, "'x2'", "2e-200", "Rescale", X=TINY, measure="fisher-z")

SHORT = ("'x0' has 12 values but the target has 13", "one value per sample")
LONG = ("'x0' has 12 values but the target has 11", "one value per sample")
bad("too few rows", ValueError, *SHORT, y=np.arange(N + 1) % 2, ways=WAYS)
bad("too many rows", ValueError, *LONG, y=Y[1:], measure="fisher-z")
bad("too many rows, auto", ValueError, *LONG, y=Y[1:], measure="auto")
bad("no rows", ValueError, "0 sample(s)", X=GOOD[:0], ways=("array", "csr", "polars"))
NONE = ("array", "csc", "iterator", "npy")
bad("no features", ValueError, "0 feature(s)", X=GOOD[:, :0], ways=NONE)
bad("1-D", ValueError, "Expected 2D array", "reshape", X=GOOD[:, 0], ways=("array",))
bad("3-D", ValueError, "dim 3", X=GOOD[:, :, None], ways=("array", "source"))

EYE = sparse.csc_array(np.eye(6))
EYE.data[5] = np.nan  # in a later block, which shares the arrays of the first
LATER = ("'x5' has 1 missing value", "row 5")
for make in (AlphaInvesting, Grafting):
    call = partial(make().fit, SparseSource(EYE, block_columns=2))
    use(partial(call, [0, 1, 0, 1, 0, 1]), ValueError, *LATER)

# Types --------------------------------------------------------------------------

TEXT = ("Feature 'x2' is text", "measure='su'")
KINDS = ("Feature 'x2'", "float (row 0)", "str (row 1)", "all of them text")
DATES = np.full((N, 2), np.datetime64("2016-07-31"))
SPANS = np.full((N, 2), np.timedelta64(3, "D"))
bad("text, Z", TypeError, *TEXT, X=objects("a", "b"), ways=OBJECTS, measure="fisher-z")
bad("no text", ValueError, "'x2' has 6 missing", X=objects("a", None), ways=OBJECTS)
bad("mixed", TypeError, *KINDS, X=objects(1.0, "red"), ways=OBJECTS)
bad("lists", TypeError, "'x2'", "type list at row 0", X=objects([1]), ways=OBJECTS)
bad("complex", TypeError, "Complex data not supported", "modulus", X=GOOD * 1j)
bad("dates", TypeError, "date", "days since", X=DATES, ways=("array", "update"))
bad("dates in a frame", TypeError, "'x0' has dtype Date", X=DATES, ways=("polars",))
bad("durations", TypeError, "'x0'", "days since", X=SPANS, ways=("iterator", "update"))
bad("bytes", TypeError, "|V4", "strings", X=np.zeros((N, 2), "V4"), ways=("array",))
MASKED = np.ma.masked_array(GOOD, GOOD > 1)
bad("a mask", TypeError, "masked array", "np.nan", X=MASKED, ways=("array", "source"))

# Targets ------------------------------------------------------------------------

LABELS = "one label per sample"
NUMERIC = FisherZ(target="numeric")
bad("no target", ValueError, "y is None", LABELS, y=None, ways=(*MEMORY, "npy"))
bad("two targets", ValueError, "shape (12, 2)", LABELS, y=np.column_stack([Y, Y]))
bad("a number for y", ValueError, "shape ()", LABELS, y=3)
bad("one class", ValueError, "single class ('spam')", "labels", y=["spam"] * N)
bad("an empty y", ValueError, "y is empty", LABELS, y=[])
bad("one sample", ValueError, "only 1 sample", "at least two", y=[1])
bad("NaN in y", ValueError, "6 missing labels", "row 1", y=np.where(Y, np.nan, 1.0))
bad("None in y", ValueError, "1 missing label", "row 11", y=[*"ab" * 5, "a", None])
NA = pd.Series([1, 2] * 5 + [pd.NA, 1], dtype="Int64")
bad("NA in y", ValueError, "1 missing label", "row 10", y=NA)
bad("inf in y", ValueError, "infinite labels", "row 1", y=np.where(Y, np.inf, 1.0))
QUARTERS = np.arange(N) / 4
bad("quarters", ValueError, "0.25 at row 1", "target='numeric'", y=QUARTERS)
bad("two types", TypeError, "int, str", "one type", y=["a", 1] * 6)
bad("complex labels", TypeError, "complex128", y=Y * 1j)
bad("dates for y", TypeError, "datetime64[D]", y=DATES[:, 0])
bad("a ragged y", TypeError, "ragged", LABELS, y=[[1], [2, 3]] * 6)
bad("text, numeric y", TypeError, "'a'", "nominal", y=["a", "b"] * 6, measure=NUMERIC)
bad("constant y", ValueError, "(2.5)", y=np.full(N, 2.5), measure=NUMERIC)

# Measures -----------------------------------------------------------------------

ONE = ("array",)
OBJECT = ("name or a measure object", "measure='su'")
BITS = MutualInformation(threshold=-1)
UNKNOWN = ("'gini'", "Known:", "auto", "fisher-z", "mi", "su")
bad("alpha", ValueError, "(0, 1)", "nan", measure=FisherZ(alpha=np.nan), ways=ONE)
bad("ordinal", ValueError, "'nominal'", measure=FisherZ(target="ordinal"), ways=ONE)
bad("fisher_z", ValueError, "mean 'fisher-z'?", measure="fisher_z", ways=ONE)
bad("SU", ValueError, "mean 'su'?", measure="SU", ways=ONE)
bad("gini", ValueError, *UNKNOWN, measure="gini", ways=ONE)
bad("a class", TypeError, *OBJECT, measure=FisherZ, ways=ONE)
bad("None", TypeError, *OBJECT, measure=None, ways=ONE)
bad("1.5", ValueError, "`threshold`", "[0, 1)", measure=SU(threshold=1.5), ways=ONE)
bad("bits", ValueError, "`threshold`", "-1", measure=BITS, ways=ONE)
bad("one bin", ValueError, "`n_bins`", "least 2", measure=SU(n_bins=1), ways=ONE)
bad("kmeans", ValueError, "`binning`", "'mdl'", measure=SU(binning="kmeans"), ways=ONE)
bad("drop", ValueError, "`missing`", "'category'", measure=SU(missing="drop"), ways=ONE)

# Parameters of selectors --------------------------------------------------------

refused(SAOLA, "`max_features`", "Got True", max_features=True)
BOUND = "belongs to redundancy='bound'"
refused(SAOLA, BOUND, redundancy="conditional", bound="max")
refused(SAOLA, BOUND, redundancy="conditional", overlap=">")
refused(GroupSAOLA, "decided by reading='library'", reading="library", ties="drop")
refused(OFS, "must be below 1", step_size=5, regularization=1)
refused(OFS, "`exploration`", "in (0, 1]", information="partial", exploration=2)

ELSEWHERE = {"measure", "test", "n_jobs"}
UNUSED = {"exploration", "radius", "random_state"}


@pytest.mark.parametrize("name", SELECTORS)
def test_every_parameter_of_a_selector_is_checked(name):
    cls = SELECTORS[name]
    groups = {"groups": [0, 0, 1, 1]} if hasattr(cls, "group_of_") else {}
    for parameter in set(signature(cls).parameters) - ELSEWHERE - UNUSED:
        for value in ("nonsense", -1):
            with pytest.raises(FeatstreamError, match=f"`{parameter}`.*{value}"):
                cls(**{parameter: value}).fit(GOOD, Y, **groups)


# Use ----------------------------------------------------------------------------


def started(**options):
    return SAOLA(measure="su", **options).start(Y)


def frame(*names):
    return pd.DataFrame(GOOD, columns=names)


def twice(selector):
    for name in ("a", "b", "a"):
        selector.update(Y, name=name)


UNSTARTED = ("has seen no target", "start(y)", "fit(X, y)")
use(lambda: SAOLA().update(Y), ValueError, *UNSTARTED)
use(lambda: SAOLA().explain("x0"), ValueError, *UNSTARTED)
use(lambda: SAOLA().selected_, AttributeError, *UNSTARTED)

NAMED = frame("gene_1", "gene_2", "gene_3", "gene_4")
RANGE = "Give its name, or an arrival below 4."
CLOSE = ("No feature 'gen_2' among the 4 seen", "Did you mean 'gene_2'?")
FORGOTTEN = ("Feature 'x0' was dropped", "trace='full'")
ZEROS = np.zeros((N, 1))
use(lambda: started().consume(NAMED).explain("gen_2"), ValueError, *CLOSE)
use(lambda: started().consume(GOOD).explain("age"), ValueError, "'age'", RANGE)
use(lambda: started().consume(GOOD).explain(4), ValueError, "No feature 4", RANGE)
use(lambda: started().consume(GOOD).explain(-1), ValueError, "No feature -1", RANGE)
use(lambda: started().consume(GOOD).explain(1.5), TypeError, "1.5", "an integer")
use(lambda: started(trace=None).consume(ZEROS).explain("x0"), ValueError, *FORGOTTEN)

ONE_COLUMN = "in one dimension"
TWO_VALUES = ("'gene_17' has 2 values but the target has 12", "one value per sample")
MATRIX = ("'x0' has 4 columns", "exactly one column")
use(lambda: started().update(GOOD), ValueError, "'x0' has shape (12, 4)", ONE_COLUMN)
use(lambda: started().update(3, name="age"), ValueError, "'age'", ONE_COLUMN)
use(lambda: started().update(sparse.csc_array(GOOD)), ValueError, *MATRIX)
use(lambda: started().update([1, 0], name="gene_17"), ValueError, *TWO_VALUES)
use(lambda: started().update(Y, name=17), TypeError, "must be a string", "17")

TAKEN = "Names must be unique"
AT_1, AT_2, AT_3, AT_4 = (f"at position 0 (now {k})" for k in (1, 2, 3, 4))
DOUBLE = [("a", Y), ("a", Y)]
STRINGS = ("['int', 'str']", "X.columns.astype(str)")
PAIRS = ("(name, values)", "ndarray at position 0")
SHORTER = "'b' has 5 values but the features before it have 12"
use(lambda: started().consume(iter(DOUBLE)), ValueError, "'a'", AT_1, TAKEN)
use(lambda: twice(started()), ValueError, "'a'", AT_2, TAKEN)
use(lambda: started().consume(frame(*"abca")), ValueError, "'a'", AT_3, TAKEN)
use(lambda: started().consume(NAMED).consume(NAMED), ValueError, "'gene_1'", AT_4)
use(lambda: started().consume(frame("a", 1, "b", 2)), TypeError, *STRINGS)
use(lambda: started().consume(iter([Y])), TypeError, *PAIRS)
use(lambda: started().consume(iter([("a", Y), ("b", Y[:5])])), ValueError, SHORTER)

UNREADABLE = ("two-dimensional array", "(name, values)", "Source")
FROM_NOTHING = ("shape=(12, 0)", "minimum of 1 is required")
use(lambda: SAOLA().fit([[1, 2], [3]], [0, 1]), TypeError, "ragged", "one value")
use(lambda: SAOLA().fit({"a": Y}, Y), TypeError, "from dict", *UNREADABLE)
use(lambda: SAOLA().fit(iter([]), Y), ValueError, *FROM_NOTHING)


@pytest.mark.parametrize(("call", "error", "parts"), CASES)
def test_bad_input_is_refused(call, error, parts, tmp_path):
    with pytest.raises(FeatstreamError) as caught:
        call(tmp_path)
    assert isinstance(caught.value, error)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
def test_good_input_is_accepted_without_a_warning(way, tmp_path):
    """The ways in themselves raise nothing: the cases above are at fault."""
    selector = SAOLA(measure="su")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = SAOLA(measure="su").fit(GOOD, Y).selected_.tolist()
        WAYS[way](selector, GOOD, Y, tmp_path)
    assert selector.selected_.tolist() == expected


@pytest.mark.parametrize("way", MEMORY)
def test_a_column_for_a_target_is_a_warning(way, tmp_path):
    with pytest.warns(DataConversionWarning, match=r"Pass y.ravel\(\) to silence"):
        WAYS[way](SAOLA(measure="su"), GOOD, Y[:, None], tmp_path)


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
    """The stream continues as if it had never come."""
    stream = SAOLA(measure=measure).start(Y)
    control = SAOLA(measure=measure).start(Y)
    for selector in (stream, control):
        selector.update(GOOD[:, 0], name="a")
    for refused in (values, np.ascontiguousarray(values)):
        with pytest.raises(FeatstreamError):
            stream.update(refused, name=name)
    for selector in (stream, control):
        selector.update(GOOD[:, 1], name="new")
        selector.update(Y, name="class")
    assert stream.n_seen_ == control.n_seen_ == 3
    assert stream.result_.names == control.result_.names
    records = control.result_.trace.records.tolist()
    assert stream.result_.trace.records.tolist() == records


@pytest.mark.parametrize("name", ["gene\x1b[31m\n", "\x1b" * 10_000])
def test_names_are_shown_short_and_with_control_characters_escaped(name):
    with pytest.raises(DataError) as caught:
        started().update(put(np.nan)[:, 2], name=name)
    assert str(caught.value).isprintable()
    assert repr(name)[:60] in str(caught.value)
    assert len(str(caught.value)) < 300
    assert started().update(Y, name="").name == ""  # an empty name is a name

"""A fit that fails or is interrupted leaves all or nothing."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from featstream.datasets import make_stream
from featstream.selectors import SELECTORS
from featstream.sources import ArraySource


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=60, n_features=40, kind="continuous", seed=1)


def make(name):
    cls = SELECTORS[name]
    tables = name in ("jmi", "cmim", "disr", "cife")
    options = {"measure": "mi" if tables else "fisher-z", "test": "fisher-z"}
    return cls(**{k: v for k, v in options.items() if k in cls().get_params()})


class Stopped(ArraySource):
    """An array of which Ctrl-C stops the reading."""

    def _blocks(self, positions, start):
        yield from super()._blocks(positions[:20], start)
        raise KeyboardInterrupt


def learned(selector):
    return {
        "selected": selector.selected_.tolist(),
        "scores": selector.scores_.tolist(),
        "support": selector.support_.tolist(),
        "n_features_in": selector.n_features_in_,
        "names": getattr(selector, "feature_names_in_", None),
    }


@pytest.mark.parametrize("name", SELECTORS)
def test_a_failed_fit_leaves_all_or_nothing(name, stream):
    selector, X, y = make(name), stream.X, stream.y
    bad = X.copy()
    bad[7, -1] = np.nan
    faults = [(bad, ValueError), (X[:-1], ValueError)]
    if hasattr(selector, "consume"):
        faults.append((Stopped(X, block_bytes=60 * 8 * 10), KeyboardInterrupt))
    for wrong, error in faults:
        with pytest.raises(error):
            selector.fit(wrong, y)
        with pytest.raises(NotFittedError):
            check_is_fitted(selector)
        assert not [k for k in vars(selector) if k.endswith("_")]
    before = learned(selector.fit(X, y))
    for wrong, error in faults:
        with pytest.raises(error):
            selector.fit(wrong, y)
        assert learned(selector) == before
        assert selector.transform(X).shape == (60, len(before["selected"]))


def test_a_stream_continues_after_a_failed_fit(stream):
    """What came before by `start` and `update` is there as well."""
    selector = make("saola").start(stream.y)
    for j in range(10):
        selector.update(stream.X[:, j])
    with pytest.raises(ValueError, match="59 values"):
        selector.fit(stream.X[:-1], stream.y)
    assert selector.n_seen_ == 10
    selector.update(stream.X[:, 10])
    assert selector.n_seen_ == 11

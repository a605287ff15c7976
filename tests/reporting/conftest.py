"""A small selection, as most tests of this folder need one."""

import numpy as np
import pytest

from featstream import SAOLA
from featstream.sources import ArraySource


@pytest.fixture(scope="session")
def data():
    """300 features of three categories, every seventh of them related to y."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 300)), rng.integers(0, 2, 60)
    X[:, ::7] = (X[:, ::7] + y[:, None]) % 3
    return X, y


@pytest.fixture(scope="session")
def fitted(data):
    """SAOLA on these data, with names and other options where they are given."""

    def fitted(names=None, **options):
        X, y = data
        selector = SAOLA(**{"measure": "su", **options})
        return selector.start(y).consume(ArraySource(X, names=names))

    return fitted

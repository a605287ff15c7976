"""``measure="auto"`` looks at the type of every column where the source knows it."""

import numpy as np
import pandas as pd
import pytest

from featstream import SAOLA
from featstream.errors import FeatstreamWarning
from featstream.sources import ArraySource, IteratorSource, open_features


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(60, 300)), columns=[f"x{j}" for j in range(300)]
    )
    frame["colour"] = np.where(np.arange(60) % 3, "red", "blue")
    return frame


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_text_after_many_numbers_decides(tmp_path, frame, kind):
    """It is column 301, and blocks are only looked at up to column 256."""
    source = frame
    if kind != "frame":
        path = tmp_path / f"d.{kind}"
        getattr(frame, f"to_{kind}")(path, index=False)
        source = open_features(path).source
    y = np.arange(60) % 2
    with pytest.warns(FeatstreamWarning, match="feature 'colour' is text"):
        selector = SAOLA().fit(source, y)
    assert selector.result_.measure == "su"


def test_how_many_were_looked_at_is_said_where_types_are_not_known(frame):
    """Any feature of an iterator may be text; those of an array of numbers are not."""
    X, y = frame.drop(columns="colour").to_numpy(), np.arange(60) % 2
    pairs = [(f"x{j}", column) for j, column in enumerate(X.T)]
    reason = SAOLA().fit(IteratorSource(pairs), y).result_.measure_reason
    assert reason.endswith("(only the first 256 were looked at)")
    reason = SAOLA().fit(ArraySource(X), y).result_.measure_reason
    assert "looked at" not in reason

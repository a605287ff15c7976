"""Ctrl-C in the middle of a source, without a run folder: no feature counts twice."""

import numpy as np
import pytest

import checks
import featstream
from crash_runs import Stop, narrow, stop_at
from featstream import SAOLA, GroupSAOLA
from featstream.datasets import make_stream
from featstream.errors import RunError


@pytest.fixture(scope="module")
def stream():
    return make_stream(n_samples=40, n_features=60, n_redundant=5, seed=3)


def interrupt(selector, offered, error=KeyboardInterrupt, **how):
    with pytest.raises(error):
        selector.consume(offered, progress=stop_at(20, error), **how)
    assert selector.n_seen_ == 20
    return selector


@pytest.fixture
def stopped(stream):
    selector = SAOLA(measure="su").start(stream.y)
    return interrupt(selector, narrow(stream.X, 10))


def outcome(stream):
    return checks.outcome(SAOLA(measure="su").fit(stream.X, stream.y))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("is_same", [True, False])
def test_the_same_data_continue_where_they_stopped(stream, error, is_same):
    """In the same object or in another."""
    source, selector = narrow(stream.X, 10), SAOLA(measure="su").start(stream.y)
    interrupt(selector, source, error)
    selector.consume(source if is_same else stream.X.copy())
    assert selector.n_seen_ == 60
    assert checks.outcome(selector) == outcome(stream)
    selector.consume(stream.X)  # the stream continues after that
    assert selector.n_seen_ == 120


def test_a_list_of_features_continues(stream):
    features = [(f"g{j}", stream.X[:, j]) for j in range(60)]
    selector = SAOLA(measure="su").start(stream.y)
    source = featstream.sources.IteratorSource(features, block_bytes=40 * 8 * 10)
    with pytest.raises(Stop):
        selector.consume(source, progress=stop_at(20))
    assert 20 <= selector.n_seen_ < 60
    selector.consume(source)
    assert checks.outcome(selector) == outcome(stream)


def test_other_data_are_refused_with_the_two_ways_out(stopped, stream):
    for what in (stopped.consume, stopped.update):
        values = stream.X[:, 5:] if what == stopped.consume else stream.X[:, 5]
        with pytest.raises(RunError, match="after 20 of 60 features") as caught:
            what(values)
        assert "the same source to continue there, or call start(y)" in str(
            caught.value
        )
    assert stopped.start(stream.y).consume(stream.X[:, 5:]).n_seen_ == 55


def test_an_iterator_cannot_be_continued(stream):
    """What it had given away before the Ctrl-C is lost."""

    def features():
        for j in range(60):
            if j == 30:
                raise KeyboardInterrupt
            yield f"g{j}", stream.X[:, j]

    one = features()
    selector = SAOLA(measure="su").start(stream.y)
    with pytest.raises(KeyboardInterrupt):
        selector.consume(one)
    with pytest.raises(RunError, match=r"interrupted after \d+ features of a source"):
        selector.consume(one)


def test_after_an_error_the_stream_may_continue_with_other_data(stream):
    selector = SAOLA(measure="su").start(stream.y)
    interrupt(selector, narrow(stream.X, 10), OSError)
    assert selector.consume(stream.X[:, 20:]).n_seen_ == 60
    assert checks.outcome(selector) == outcome(stream)


def test_a_run_begun_after_an_interrupt_continues(stopped, stream, tmp_path):
    stopped.save(tmp_path / "saved")
    resumed = featstream.resume(tmp_path / "saved")
    with pytest.raises(RunError, match="a different data set"):
        resumed.consume(stream.X[:, 5:])
    assert checks.outcome(resumed.consume(stream.X)) == outcome(stream)
    stopped.consume(stream.X, checkpoint=tmp_path / "other")
    assert checks.outcome(stopped) == outcome(stream)


def test_groups_continue_where_they_stopped(stream):
    labels = np.arange(60) // 5
    selector = GroupSAOLA(measure="su").start(stream.y)
    source = narrow(stream.X, 10)
    interrupt(selector, source, groups=labels)
    with pytest.raises(RunError, match="after 20 of 60 features"):
        selector.consume(source, groups=labels + 1)
    selector.consume(source, groups=labels)
    whole = GroupSAOLA(measure="su").fit(stream.X, stream.y, groups=labels)
    assert checks.outcome(selector) == checks.outcome(whole)

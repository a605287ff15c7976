"""Protocols: disjoint rows, the same for the same seed, and never by a value of X."""

from dataclasses import astuple

import numpy as np
import pytest

from featstream import evaluation as ev
from featstream.errors import DataError, ParameterError

Y = np.repeat([0, 1, 2], [30, 20, 10])
WHOLE = ev.TaskShape(Y, 60, 12)
PARTS = ev.TaskShape(Y, 45, 12)

PROTOCOLS = [
    ev.RandomSplits(n_runs=4),
    ev.RandomSplits(n_runs=4, test_size=7, stratified=False),
    ev.RandomSplits(n_runs=4, test_size=10, train_size=20),
    ev.CrossValidation(4),
    ev.CrossValidation(3, n_repeats=2),
    ev.Subsamples(n=4),
    ev.FeatureOrders(n=4),
    ev.FeatureOrders(n=4, rows=ev.CrossValidation(3)),
    ev.RandomGroups(n_groups=5, n_runs=4),
]


@pytest.mark.parametrize("shape", [WHOLE, PARTS], ids=["whole", "parts"])
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_parts_are_disjoint_and_repeatable(protocol, shape):
    def texts(seed):
        splits = (protocol.split(i, shape, seed) for i in range(protocol.n_splits))
        return [str([np.array(part) for part in astuple(split)]) for split in splits]

    for i in range(protocol.n_splits):
        split = protocol.split(i, shape, seed=3)
        assert not set(split.train) & set(split.test)
        assert min(split.train.size, split.test.size) > 0
        assert len(set(split.train)) == split.train.size
        if split.order is not None:
            assert sorted(split.order) == list(range(12))
        if split.groups is not None:  # of equal size, and side by side
            sizes = np.bincount(split.groups)
            assert sorted(sizes) == [2, 2, 2, 3, 3]
            np.testing.assert_array_equal(split.groups, np.repeat(range(5), sizes))
    assert texts(seed=3) == texts(seed=3)
    assert len(set(texts(seed=3))) == protocol.n_splits
    assert texts(seed=3)[0] != texts(seed=4)[0]


def test_random_splits_keep_the_shares_of_the_classes():
    split = ev.RandomSplits(test_size=1 / 3).split(0, WHOLE, 0)
    assert np.bincount(Y[split.test]).tolist() == [10, 7, 3]  # 20 of 60 rows
    fewer = ev.RandomSplits(test_size=7, train_size=30).split(0, WHOLE, 0)
    assert fewer.train.size == 30
    more = ev.RandomSplits(n_runs=20, test_size=1 / 3).split(0, WHOLE, 0)
    np.testing.assert_array_equal(more.test, split.test)  # they begin with the same


def test_every_row_is_tested_once_in_cross_validation():
    protocol = ev.CrossValidation(4, n_repeats=2)
    for repeat in range(2):
        tested = [protocol.split(4 * repeat + i, WHOLE, 0).test for i in range(4)]
        assert sorted(np.concatenate(tested)) == list(range(60))


def test_given_parts_are_taken_as_they_are():
    split = ev.GivenSplit().split(0, PARTS, 0)
    assert split.train.tolist() == list(range(45))
    assert split.test.tolist() == list(range(45, 60))
    with pytest.raises(DataError, match="needs a test part"):
        ev.GivenSplit().split(0, WHOLE, 0)


def test_subsamples_leave_a_given_test_part_alone():
    split = ev.Subsamples(share=0.8).split(0, PARTS, 0)
    assert split.test.tolist() == list(range(45, 60))
    assert split.train.size == 36
    assert split.train.max() < 45
    split = ev.Subsamples(share=0.8).split(0, WHOLE, 0)
    assert (split.train.size, split.test.size) == (48, 12)


def test_orders_and_groups_keep_the_rows():
    for protocol in (ev.FeatureOrders(n=3), ev.RandomGroups(n_groups=4, n_runs=3)):
        for i in range(3):
            assert protocol.split(i, PARTS, 0).train.tolist() == list(range(45))
    rows = ev.CrossValidation(3)
    in_turn = ev.FeatureOrders(n=4, rows=rows).split(3, WHOLE, 0)
    np.testing.assert_array_equal(in_turn.test, rows.split(0, WHOLE, 0).test)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ev.RandomSplits(n_runs=0), "`n_runs` of RandomSplits .* Got 0"),
        (lambda: ev.CrossValidation(1), "`n_folds` of CrossValidation .* least 2"),
        (lambda: ev.FeatureOrders(n=2.5), "`n` of FeatureOrders .* Got 2.5"),
        (lambda: ev.RandomGroups(n_groups=13).split(0, WHOLE, 0), "`n_groups`"),
    ],
)
def test_wrong_counts_are_refused(make, text):
    with pytest.raises(ParameterError, match=text):
        make()


def test_rows_that_cannot_be_split_are_an_error_of_the_data():
    shape = ev.TaskShape(np.array([0, 0, 0, 1]), 4, 2)
    for protocol in (ev.RandomSplits(), ev.CrossValidation(5)):
        words = r"\(.*\) cannot split .* leave out the rows of classes"
        with pytest.raises(DataError, match=type(protocol).__name__ + words):
            protocol.split(0, shape, 0)

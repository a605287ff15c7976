from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from scipy import stats

from featstream.datasets import load_novels, make_stream
from featstream.errors import ParameterError
from gather import gather

SIZES = {"n_samples": 500, "n_features": 400, "n_informative": 5, "n_redundant": 20}


def entropy(counts):
    share = counts[counts > 0] / counts.sum()
    return -np.sum(share * np.log2(share))


def symmetrical_uncertainty(a, b):
    table = np.zeros((3, 3))
    np.add.at(table, (a, b), 1)
    h_a, h_b = entropy(table.sum(axis=1)), entropy(table.sum(axis=0))
    return 2 * (h_a + h_b - entropy(table.ravel())) / (h_a + h_b)


def correlation(a, b):
    return abs(np.corrcoef(a, b)[0, 1])


def algorithm_1(X, y, score, is_relevant):
    kept = {}
    for i in range(X.shape[1]):
        relevance = score(X[:, i], y)
        if not is_relevant(relevance):
            continue
        for j in list(kept):
            overlap = score(X[:, i], X[:, j])
            if kept[j] > relevance and overlap >= relevance:  # Step 11
                break
            if relevance > kept[j] and overlap >= kept[j]:  # Step 16
                del kept[j]
        else:
            kept[i] = relevance
    return set(kept)


MEASURES = {
    "discrete": (symmetrical_uncertainty, lambda score: score > 0.02),
    "continuous": (
        correlation,
        lambda r: 2 * stats.norm.sf(np.sqrt(500 - 3) * np.arctanh(r)) <= 0.001,
    ),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", MEASURES)
def test_algorithm_1_finds_the_blanket(kind, seed):
    stream = make_stream(**SIZES, kind=kind, seed=seed)
    kept = algorithm_1(stream.X, stream.y, *MEASURES[kind])
    blanket = set(stream.blanket.tolist())
    assert blanket <= kept
    # 375 irrelevant features pass a level of 0.001 at random: 3 is one in 600
    assert len(kept - blanket) <= 3
    assert not kept & set(stream.redundant.tolist())


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("kind", MEASURES)
def test_copies_are_less_relevant_and_overlap_more(kind, noise):
    stream = make_stream(**SIZES, kind=kind, noise=noise, seed=3)
    score = MEASURES[kind][0]
    position = {name: i for i, name in enumerate(stream.names)}
    for copy in range(20):
        original = stream.X[:, position[f"informative_{copy % 5}"]]
        copied = stream.X[:, position[f"redundant_{copy}"]]
        assert score(copied, stream.y) < score(original, stream.y)
        assert score(copied, original) >= score(copied, stream.y)


@pytest.mark.parametrize("kind", MEASURES)
def test_a_seed_gives_one_stream(kind):
    first, again, other = (make_stream(50, 60, kind=kind, seed=s) for s in (4, 4, 5))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert first.names == again.names
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("kind", MEASURES)
def test_the_parts_are_the_whole(kind):
    stream = make_stream(100, 60, n_informative=4, n_redundant=6, kind=kind)
    parts = [stream.informative, stream.redundant, stream.irrelevant]
    assert [part.size for part in parts] == [4, 6, 50]
    assert sorted(chain(*parts)) == list(range(60))
    for sort, part in zip(
        ("informative", "redundant", "irrelevant"), parts, strict=True
    ):
        assert sorted(stream.names[i] for i in part) == sorted(
            f"{sort}_{i}" for i in range(part.size)
        )
    assert stream.X.flags.f_contiguous
    assert 0.3 < stream.y.mean() < 0.7
    X, names, _ = gather(stream.source())
    np.testing.assert_array_equal(X, stream.X)
    assert names == stream.names


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kind": "discret"}, "`kind` of make_stream .* Did you mean 'discrete'"),
        ({"n_samples": 3}, "`n_samples` of make_stream .* at least 10. Got 3"),
        ({"n_informative": 0}, "`n_informative` of make_stream .* at least 1. Got 0"),
        ({"n_redundant": -1}, "`n_redundant` of make_stream .* at least 0. Got -1"),
        ({"n_features": 24}, "`n_features` of make_stream .* = 25. Got 24"),
        ({"noise": 1.0}, r"`noise` of make_stream .* \[0, 1\). Got 1.0"),
    ],
)
def test_impossible_streams_are_refused(parameters, words):
    with pytest.raises(ParameterError, match=words):
        make_stream(**parameters)


def test_the_novels_are_passages_of_three_classes():
    novels = load_novels()
    names, counts = np.unique(novels.target, return_counts=True)
    assert sorted(novels.names) == names.tolist()
    assert counts.tolist() == [400, 400, 400]
    assert min(len(text.split()) for text in novels.texts) >= 100
    assert len(set(novels.texts)) == 1200
    emma = [
        text
        for text, name in zip(novels.texts, novels.target, strict=True)
        if name == "Emma"
    ]
    assert emma[0].startswith("Emma Woodhouse, handsome, clever, and rich")

from itertools import chain

import numpy as np
import pytest

from featstream import SAOLA, FisherZ, SymmetricalUncertainty
from featstream.datasets import load_novels, make_stream
from featstream.errors import ParameterError
from gather import gather
from scores import overlaps, relevances

SIZES = {"n_samples": 500, "n_features": 400, "n_informative": 5, "n_redundant": 20}
SORTS = ("informative", "redundant", "irrelevant")
MEASURES = {
    "discrete": SymmetricalUncertainty(threshold=0.02),
    "continuous": FisherZ(alpha=0.001),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", MEASURES)
def test_algorithm_1_finds_the_blanket(kind, seed):
    stream = make_stream(**SIZES, kind=kind, seed=seed)
    kept = set(SAOLA(measure=MEASURES[kind]).fit(stream.X, stream.y).selected_)
    blanket = set(stream.blanket.tolist())
    assert blanket <= kept
    # 375 irrelevant features pass a level of 0.001 at random: 3 is one in 600
    assert len(kept - blanket) <= 3
    assert not kept & set(stream.redundant.tolist())


@pytest.mark.parametrize("noise", [0.0, 0.2])
@pytest.mark.parametrize("kind", MEASURES)
def test_copies_are_less_relevant_and_overlap_more(kind, noise):
    stream = make_stream(**SIZES, kind=kind, noise=noise, seed=3)
    position = {name: i for i, name in enumerate(stream.names)}
    for copy in range(20):
        names = f"informative_{copy % 5}", f"redundant_{copy}"
        pair = stream.X[:, [position[name] for name in names]]
        original, copied = relevances(MEASURES[kind], pair, stream.y)
        assert copied < original
        assert overlaps(MEASURES[kind], pair, stream.y)[1, 0] >= copied


@pytest.mark.parametrize("kind", MEASURES)
def test_the_parts_are_the_whole_and_a_seed_gives_one_stream(kind):
    options = {"n_informative": 4, "n_redundant": 6, "kind": kind}
    stream, again, other = (make_stream(100, 60, **options, seed=s) for s in (4, 4, 5))
    np.testing.assert_array_equal(stream.y, again.y)
    assert not np.array_equal(stream.X, other.X)
    parts = [stream.informative, stream.redundant, stream.irrelevant]
    assert [part.size for part in parts] == [4, 6, 50]
    assert sorted(chain(*parts)) == list(range(60))
    for sort, part in zip(SORTS, parts, strict=True):
        expected = {f"{sort}_{i}" for i in range(part.size)}
        assert {stream.names[i] for i in part} == expected
    assert stream.X.flags.f_contiguous
    assert 0.3 < stream.y.mean() < 0.7
    X, names, _ = gather(again.source())
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
    emma = novels.texts[list(novels.target).index("Emma")]
    assert emma.startswith("Emma Woodhouse, handsome, clever, and rich")

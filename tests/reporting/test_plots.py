import numpy as np
import pytest

from featstream.errors import DataError
from featstream.evaluation import critical_difference
from featstream.reporting.plots import indistinguishable, plot_critical_difference

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize(
    ("ranks", "cd", "expected"),
    [
        ([1.0, 2.0, 3.0], 0.5, []),
        ([1.0, 2.0, 3.0], 1.5, [(1.0, 2.0), (2.0, 3.0)]),
        ([1.0, 2.0, 3.0], 2.5, [(1.0, 3.0)]),
        ([1.0, 2.0, 3.0], 1.0, []),  # a difference equal to the critical one counts
        ([1.5, 1.5, 3.0], 1.0, [(1.5, 1.5)]),
    ],
)
def test_bars_join_the_longest_stretches_that_do_not_differ(ranks, cd, expected):
    assert indistinguishable(np.array(ranks), cd) == expected


def test_diagram_shows_every_method_with_its_rank():
    methods = ["SAOLA", "Fast-OSFS", "Alpha-investing"]
    _, ax = plt.subplots()
    drawn = plot_critical_difference(
        [1.65, 1.60, 2.75], critical_difference(3, 10), methods, ax=ax
    )
    assert drawn is ax
    texts = " ".join(text.get_text() for text in ax.texts)
    for words in [*methods, "1.65", "1.60", "2.75", "critical difference 1.05"]:
        assert words in texts
    plt.close("all")


def test_ranks_and_methods_must_match():
    with pytest.raises(DataError, match="2 methods"):
        plot_critical_difference([1.0], 0.5, ["a", "b"])

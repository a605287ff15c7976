import numpy as np
import pytest

from featstream import SAOLA, Experiment
from featstream.errors import DataError
from featstream.evaluation import FeatureOrders, Subsamples, critical_difference
from featstream.reporting import (
    plot_accuracy,
    plot_critical_difference,
    plot_distribution,
    plot_order_sensitivity,
    plot_redundancy,
    plot_removals,
    plot_size,
    plot_stability,
    plot_timeline,
    plot_tradeoff,
)
from featstream.reporting.plots import indistinguishable

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


@pytest.fixture(scope="module")
def result(fitted):
    return fitted().result_


PLOTS = [
    plot_accuracy,
    plot_distribution,
    plot_redundancy,
    plot_removals,
    plot_size,
    plot_timeline,
]


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
def test_every_figure_is_drawn_on_the_axes_given(plot, result):
    figure, ax = plt.subplots()
    assert plot(result, ax=ax) is ax
    figure.canvas.draw()
    plt.close("all")


def test_what_cannot_be_drawn_says_why(result):
    X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    bare = SAOLA(measure="su", trace=None).fit(X, y).result_
    for plot in (plot_timeline, plot_size, plot_distribution, plot_removals):
        with pytest.raises(DataError, match="no trace"):
            plot(bare)
    with pytest.raises(DataError, match="fewer than two"):
        plot_redundancy(bare)
    with pytest.raises(DataError, match="very few rows"):
        plot_accuracy(bare)
    plt.close("all")


def test_removals_name_the_kept_features_that_removed_most(result):
    names = [text.get_text() for text in plot_removals(result).get_yticklabels()]
    assert names
    assert set(names) <= set(result.names)
    plt.close("all")


@pytest.mark.parametrize("protocol", [Subsamples(n=2), FeatureOrders(n=2)])
def test_comparisons_have_figures_and_a_section_for_their_protocol(protocol, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 20)), np.arange(60) % 2
    X[:, 0] = y
    selectors = {"a": SAOLA(measure="su"), "b": SAOLA(measure="su", bound="max")}
    found = Experiment(selectors, {"d": (X, y)}, ["knn"], protocol).run()
    ax = plot_tradeoff(found)
    assert ax.get_xlabel() == "number of selected features"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]
    text = found.report(tmp_path / "x.html").read_text("utf-8")
    is_subsamples = isinstance(protocol, Subsamples)
    assert ("figure-stability" in text) == is_subsamples
    assert ("figure-orders-accuracy" in text) != is_subsamples
    plot = plot_stability if is_subsamples else plot_order_sensitivity
    assert [t.get_text() for t in plot(found).get_yticklabels()] == ["d"]
    plt.close("all")

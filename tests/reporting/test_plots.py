from itertools import pairwise

import numpy as np
import pytest

from featstream import SAOLA, Experiment, reporting
from featstream.errors import DataError
from featstream.evaluation import FeatureOrders, Subsamples
from featstream.reporting import plots

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


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
    assert plots.indistinguishable(np.array(ranks), cd) == expected


@pytest.mark.parametrize(
    "name", ["accuracy", "distribution", "redundancy", "removals", "size", "timeline"]
)
def test_every_figure_is_drawn_on_the_axes_given(name, fitted):
    result = fitted().result_
    figure, ax = plt.subplots()
    assert getattr(reporting, f"plot_{name}")(result, ax=ax) is ax
    figure.canvas.draw()
    if name in ("redundancy", "removals"):
        shown = [text.get_text() for text in ax.get_yticklabels()]
        assert shown
        assert set(shown) <= set(result.names)


def test_bars_end_at_the_largest_number_that_there_can_be():
    values, spreads = [[0.95, 0.5]], [[0.2, 0.1]]
    ax = plots.plot_dots(values, ["a"], ["x", "y"], spreads=spreads, largest=1.0)
    ends = [bars.get_segments()[0][:, 0].tolist() for bars in ax.collections[:2]]
    assert np.allclose(ends, [[0.75, 1.0], [0.4, 0.6]])


@pytest.mark.parametrize("highest", [11.0, 15.0, 40.0, 90.0, 900.0, 5e4])
def test_labels_of_a_logarithmic_axis_do_not_touch(highest):
    values = np.geomspace(10.0, highest, 5)[:, None]
    ax = plots.plot_dots(values, list("abcde"), ["x"], is_log=True)
    ax.figure.canvas.draw()
    labels = [label for label in ax.get_xticklabels(which="both") if label.get_text()]
    low, high = ax.get_xlim()
    shown = [
        label.get_window_extent()
        for label in labels
        if low <= label.get_position()[0] <= high
    ]
    assert len(shown) >= 2
    for left, right in pairwise(sorted(shown, key=lambda box: box.x0)):
        assert left.x1 < right.x0


def test_what_cannot_be_drawn_says_why():
    X, y = [[0, 1], [0, 0], [1, 1], [1, 1]], [0, 0, 1, 1]
    bare = SAOLA(measure="su", trace=None).fit(X, y).result_
    for plot, reason in (
        (reporting.plot_timeline, "no trace"),
        (reporting.plot_size, "no trace"),
        (reporting.plot_distribution, "no trace"),
        (reporting.plot_removals, "no trace"),
        (reporting.plot_redundancy, "fewer than two"),
        (reporting.plot_accuracy, "very few rows"),
    ):
        with pytest.raises(DataError, match=reason):
            plot(bare)
    with pytest.raises(DataError, match="2 methods"):
        reporting.plot_critical_difference([1.0], 0.5, ["a", "b"])


@pytest.mark.parametrize(
    ("protocol", "plot", "section"),
    [
        (Subsamples(n=2), reporting.plot_stability, "stability"),
        (FeatureOrders(n=2), reporting.plot_order_sensitivity, "orders-accuracy"),
    ],
)
def test_comparisons_have_figures_and_a_section_for_their_protocol(
    protocol, plot, section, tmp_path
):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (60, 20)), np.arange(60) % 2
    X[:, 0] = y
    selectors = {"a": SAOLA(measure="su"), "b": SAOLA(measure="su", bound="max")}
    found = Experiment(selectors, {"d": (X, y)}, ["knn"], protocol).run()
    ax = reporting.plot_tradeoff(found)
    assert ax.get_xlabel() == "number of selected features"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b"]
    assert [t.get_text() for t in plot(found).get_yticklabels()] == ["d"]
    text = found.report(tmp_path / "x.html").read_text("utf-8")
    sections = [s for s in ("stability", "orders-accuracy") if f"figure-{s}" in text]
    assert sections == [section]

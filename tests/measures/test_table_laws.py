"""P-values of tables given their margins, against all tables that have them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from featstream.measures.exact_laws import GridLaw
from featstream.measures.storages.tables import fixed_point_nlogn
from featstream.measures.table_laws import LARGE, TableLaws, log_chi_square_tail
from strategies import examples


def all_tables(rows, columns):
    """Every table with these sums of rows and columns."""
    if len(rows) == 1:
        yield (tuple(columns),)
        return
    for first in product(*(range(min(rows[0], size) + 1) for size in columns)):
        if sum(first) == rows[0]:
            left = [size - taken for size, taken in zip(columns, first, strict=True)]
            for rest in all_tables(rows[1:], left):
                yield (first, *rest)


def with_chances(rows, columns):
    """All tables, and how probable each is given the margins."""
    tables = np.array(list(all_tables(rows, columns)), np.int64)
    log_chance = special.gammaln(np.add(rows, 1)).sum()
    log_chance += special.gammaln(np.add(columns, 1)).sum()
    log_chance -= special.gammaln(sum(rows) + 1)
    chance = np.exp(log_chance - special.gammaln(tables + 1.0).sum(axis=(1, 2)))
    assert chance.sum() == pytest.approx(1)
    return tables, chance


def laws_of(classes):
    return TableLaws(np.array(classes), fixed_point_nlogn(sum(classes)))


def log_p_values(tables):
    """The log p-values of tables of the same classes."""
    arity = np.full(len(tables), tables.shape[1])
    return laws_of(tables[0].sum(axis=0)).log_p_values(tables.ravel(), arity)


def nats(tables):
    """Half of G²."""
    n = tables[0].sum()
    by_rows, by_columns = tables.sum(axis=2), tables.sum(axis=1)
    expected = by_rows[:, :, None] * by_columns[:, None, :] / n
    return special.rel_entr(tables, expected).sum(axis=(1, 2))


@st.composite
def margins(draw, most_categories=3, most_classes=4, most_rows=16):
    """Sums of rows and of columns of a small table."""
    n = draw(st.integers(6, most_rows))
    parts = []
    for most in (most_categories, most_classes):
        n_parts = draw(st.integers(2, most))
        cuts = draw(
            st.lists(
                st.integers(1, n - 1),
                min_size=n_parts - 1,
                max_size=n_parts - 1,
                unique=True,
            )
        )
        parts.append(np.diff([0, *sorted(cuts), n]).tolist())
    return parts


@examples(30)
@given(margins=margins())
def test_no_p_value_promises_too_much(margins):
    """At each p-value, at most that share of all tables has one as small.

    P-values above 0.3 may be rough.
    """
    tables, chance = with_chances(*margins)
    p = np.exp(log_p_values(tables))
    for level in np.unique(p[p <= 0.3]):
        assert chance[p <= level * (1 + 1e-9)].sum() <= level * (1 + 1e-6)


@examples(15)
@given(margins=margins(most_categories=2, most_classes=4, most_rows=40))
def test_several_classes_have_the_law_of_g_square(margins):
    """To within the rounding of the grid, half a step for each class."""
    tables, chance = with_chances(*margins)
    if tables.shape[2] == 2:
        return
    p, found = np.exp(log_p_values(tables)), nats(tables)
    slack = GridLaw.step * tables.shape[2] + 1e-9
    for i in range(len(tables)):
        assert p[i] >= chance[found >= found[i] + slack].sum() * (1 - 1e-9)
        assert p[i] <= chance[found >= found[i] - slack].sum() * (1 + 1e-9)


@pytest.mark.parametrize("rows", [(30, 10, 5), (20, 12, 8, 5)])
def test_several_categories_of_two_classes_have_the_law_of_g_square(rows):
    tables, chance = with_chances(rows, (33, 12))
    p, found = np.exp(log_p_values(tables)), nats(tables)
    is_clear = p < 0.3
    expected = [chance[found >= g - 1e-7].sum() for g in found[is_clear]]
    np.testing.assert_allclose(p[is_clear], expected, rtol=1e-6)


def test_many_categories_of_two_classes_are_counted_on_a_grid():
    """Margins with too many tables to count: the rates among random ones."""
    rng = np.random.default_rng(0)
    rows, columns = np.full(5, 200), (950, 50)
    drawn = rng.multivariate_hypergeometric(rows, 50, 20_000)
    tables = np.stack([rows - drawn, drawn], axis=2)
    p = np.exp(log_p_values(tables))
    assert tables[0].sum(axis=0).tolist() == list(columns)
    for level in (0.1, 0.01, 0.001):
        rate = np.mean(p <= level)
        assert abs(rate - level) <= 0.1 * level + 4 * np.sqrt(level / 20_000)


@pytest.mark.parametrize("classes", [(300, 200, 60), (20, 30, 40, 50, 60)])
def test_the_far_tail_keeps_its_order(classes):
    """A category that is ever more of one class, beyond what the grid holds."""
    counts, size = np.array(classes), classes[-1]
    tables = []
    for moved in range(0, 15, 3):
        row = np.zeros(counts.size, np.int64)
        row[-1], row[0] = size - moved, moved
        tables.append([counts - row, row])
    found = log_p_values(np.array(tables))
    lowest = -special.gammaln(sum(classes) + 1) + special.gammaln(size + 1)
    lowest += special.gammaln(sum(classes) - size + 1)
    assert np.diff(found).min() > 0.1
    # No p-value is smaller than the probability of its own table.
    assert lowest <= found[0] < -40


def test_tables_of_two_by_two_do_not_underflow():
    """A copy of the class has the p-value 1 / C(n, n_1), or twice that."""
    n, n_1 = 6000, 2000
    table = np.array([[[n - n_1, 0], [0, n_1]]])
    log_ways = special.gammaln(n + 1) - special.gammaln(n_1 + 1)
    log_ways -= special.gammaln(n - n_1 + 1)
    assert log_p_values(table)[0] == pytest.approx(-log_ways, rel=1e-12)
    assert -log_ways < -3000


@pytest.mark.parametrize("classes", [(300, 300, 400), (800, 150, 50), (100,) * 10])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_the_chi_square_law_is_right_where_it_is_used(classes, factor):
    """Down to one in a million, by the exact law on a fine grid."""
    sizes = np.array(classes)
    ones = int(np.ceil(factor * LARGE * 1000 / sizes.min()))

    class Fine(GridLaw):
        step = 0.01

    law = Fine(sizes, ones, ones)
    law.prepare()
    g_square = 2 * Fine.step * np.arange(law.n_cells)
    exact = np.exp(law._log_p[ones])
    df = sizes.size - 1
    spread = (1000 * np.sum(1 / sizes) - 1) * (1000 / ones + 1000 / (1000 - ones) - 1)
    p = np.exp(log_chi_square_tail(g_square / (1 + spread / (6000 * df)), df))
    for level in (0.05, 1e-3, 1e-4, 1e-5, 1e-6):
        size = exact[np.argmax(p <= level)]
        assert 0.5 * level <= size <= 1.5 * level


def test_p_values_do_not_depend_on_the_tables_before():
    rng = np.random.default_rng(0)
    classes = np.array([70, 20, 10])
    tables = []
    for ones in (3, 40, 12, 3, 25):
        row = rng.multivariate_hypergeometric(classes, ones)
        tables.append([classes - row, row])
    tables = np.array(tables)
    together = log_p_values(tables)
    alone = [log_p_values(table[None])[0] for table in tables]
    np.testing.assert_array_equal(together, alone)


def test_the_log_of_the_chi_square_tail_goes_on():
    """With two degrees of freedom it is -x / 2."""
    x = np.array([1.0, 100.0, 5000.0])
    np.testing.assert_allclose(log_chi_square_tail(x, 2.0), -x / 2, rtol=1e-12)

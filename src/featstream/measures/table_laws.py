"""P-values of tables of counts, given their margins.

- Two categories and two classes: the hypergeometric law, two-sided by probability
  (Fisher's exact test): the chance of all tables that are no more probable.
- Two categories and several classes: the exact law of the information, on a grid.
- Several categories and two classes: the exact law of G², by counting all tables or on
  a grid.
- Otherwise, and where that would take too long: if every expected count is at least
  `LARGE`, the chi-square law of G² with Williams' correction. If not, Bonferroni's
  bound over the categories, or over single cells, each against the rest.

So no p-value promises more than it should, but for the chi-square law of large counts,
which is right within a factor of 1.5 down to a level of one in a million.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from scipy import special

from featstream.jit import inner, kernel
from featstream.measures.exact_laws import (
    MOST_DRAWS,
    GridLaw,
    count_draws,
    log_binomials,
    log_tail_of_draws,
)
from featstream.protocols import FloatArray, IntArray

LARGE = 15.0
"""Expected counts from which on the chi-square law is right."""

MEMO = 128
"""P-values of rare categories of fewer rows are remembered, by rows and by class 1."""

_MOST_WORK = 5e8
_MOST_WORK_ONCE = 3e7
_MOST_GRIDS = 256
"""Additions that a law on a grid may take: one for many margins, one for these alone;
and how many of the latter are kept."""

_MOST_ON_GRID = 512
"""Rows of the rarer of two categories up to which a law on a grid is counted."""

_UNCLEAR = 0.3
"""P-values above this need not be exact."""

_SURE_G_SQUARE = float(special.chdtri(1, _UNCLEAR))
_TIE = 1e-7
"""Tables whose log probabilities differ by less count as equally probable."""

_NEGLIGIBLE = 1e-15


@inner
def _log_chance(log_factorial, ones, both, n_1, n):
    """Log probability of one table of two by two, given its margins."""
    f, n_0 = log_factorial, n - n_1
    ways = f[n_1] - f[both] - f[n_1 - both]
    ways += f[n_0] - f[ones - both] - f[n_0 - ones + both]
    return ways - (f[n] - f[ones] - f[n - ones])


@inner
def _sum_outwards(ones, both, n_1, n, step, chance):
    """Sum of the probabilities of a table and of all beyond it on one side.

    ``chance`` is that of the table, in any unit; the sum is in the same.
    """
    lowest, highest = max(0, ones - (n - n_1)), min(ones, n_1)
    total, k = 0.0, both
    while lowest <= k <= highest:
        total += chance
        if chance < _NEGLIGIBLE * total:
            break
        if step > 0:
            up = np.float64(ones - k) * (n_1 - k)
            down = np.float64(k + 1) * (n - n_1 - ones + k + 1)
        else:
            up = np.float64(k) * (n - n_1 - ones + k)
            down = np.float64(ones - k + 1) * (n_1 - k + 1)
        chance *= up / down
        k += step
    return total


@inner
def _log_fisher(log_factorial, ones, both, n_1, n):
    """Log p-value of a table of two by two: of all that are no more probable."""
    lowest, highest = max(0, ones - (n - n_1)), min(ones, n_1)
    mode = int((np.float64(ones) + 1.0) * (n_1 + 1.0) / (n + 2.0))
    mode = min(max(mode, lowest), highest)
    observed = _log_chance(log_factorial, ones, both, n_1, n)
    if observed >= _log_chance(log_factorial, ones, mode, n_1, n) - _TIE:
        return 0.0
    step = 1 if both > mode else -1
    total = _sum_outwards(ones, both, n_1, n, step, 1.0)
    # On the other side of the mode, the first table that is no more probable.
    near, far = mode, lowest if step > 0 else highest
    if _log_chance(log_factorial, ones, far, n_1, n) <= observed + _TIE:
        while abs(near - far) > 1:
            middle = (near + far) // 2
            if _log_chance(log_factorial, ones, middle, n_1, n) <= observed + _TIE:
                far = middle
            else:
                near = middle
        chance = math.exp(_log_chance(log_factorial, ones, far, n_1, n) - observed)
        total += _sum_outwards(ones, far, n_1, n, -step, chance)
    return min(observed + math.log(total), 0.0)


@kernel(allocates=True)
def log_fisher(log_factorial, ones, both, n_1, n, log_p):
    """Log p-values of tables of two by two: ``ones`` rows, ``both`` of them in a class.

    ``n_1`` is the size of that class, ``n`` the number of rows in all.
    """
    for i in range(ones.size):
        log_p[i] = 0.0
        if 0 < ones[i] < n and 0 < n_1[i] < n:
            log_p[i] = _log_fisher(log_factorial, ones[i], both[i], n_1[i], n)


@kernel(allocates=True)
def describe_tables(
    cells, arity, class_counts, nlogn, log_factorial, memo, log_p, facts
):
    """Log p-values of tables of two by two, and what the other laws need to know.

    The tables follow one another in ``cells``, a row of class counts per category.
    ``facts`` become, per table, G², its degrees of freedom, the least expected count,
    the first cell of the rarest category, its size, and the sum of 1 / size over the
    categories; without degrees of freedom there is nothing more to find out. A table
    that is not in ``cells`` has the p-value 1.
    """
    n, n_classes = nlogn.size - 1, class_counts.size
    own_classes, smallest_class = 0, n
    for c in range(n_classes):
        own_classes += nlogn[class_counts[c]]
        smallest_class = min(smallest_class, class_counts[c])
    first = 0
    for i in range(arity.size):
        n_cells = np.int64(arity[i]) * n_classes
        log_p[i] = 0.0
        facts[i, :] = 0.0
        begin = first
        first += n_cells
        if n_cells > cells.size:
            continue
        information = nlogn[n] - own_classes
        n_used, ones, rarest, inverses = 0, n, begin, 0.0
        for place in range(begin, first, n_classes):
            size = 0
            for c in range(n_classes):
                information += nlogn[cells[place + c]]
                size += cells[place + c]
            information -= nlogn[size]
            n_used += size > 0
            inverses += 1.0 / size if size else 0.0
            if 0 < size < ones:
                ones, rarest = size, place
        if n_used < 2:
            continue
        g_square = max(0.0, 4.0 * math.log(2.0) * information / nlogn[2])
        if n_used > 2 or n_classes > 2:
            facts[i, 0] = g_square
            facts[i, 1] = (n_used - 1.0) * (n_classes - 1.0)
            facts[i, 2] = np.float64(ones) * smallest_class / n
            facts[i, 3] = rarest
            facts[i, 4] = ones
            facts[i, 5] = inverses
            continue
        both = cells[rarest + 1]
        if ones < memo.shape[0]:
            if np.isnan(memo[ones, both]):
                memo[ones, both] = _log_fisher(
                    log_factorial, ones, both, class_counts[1], n
                )
            log_p[i] = memo[ones, both]
        elif g_square < _SURE_G_SQUARE:
            log_p[i] = math.log(math.erfc(math.sqrt(g_square / 2.0)))
        else:
            log_p[i] = _log_fisher(log_factorial, ones, both, class_counts[1], n)


class TableLaws:
    """P-values of tables of any categories with the classes of one target.

    What is counted for some margins is kept for the next table that has them; that
    changes no p-value.
    """

    def __init__(self, class_counts: IntArray, nlogn: IntArray) -> None:
        self._class_counts = class_counts
        self._nlogn = nlogn
        self._n = n = int(class_counts.sum())
        self._log_factorial: FloatArray = special.gammaln(np.arange(n + 1.0) + 1.0)
        self._memo = np.full((MEMO, MEMO), np.nan)
        self._by_rarest: dict[int, GridLaw | None] = {}
        self._by_sizes: dict[tuple[int, ...], GridLaw] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy counts its laws again: they are not worth storing, and the lock cannot
        # be stored.
        return TableLaws, (self._class_counts, self._nlogn)

    def log_p_values(self, cells: IntArray, arity: IntArray) -> FloatArray:
        """Log p-values of the tables of columns, which follow one another."""
        log_p, facts = np.empty(arity.size), np.empty((arity.size, 6))
        describe_tables(
            cells,
            arity,
            self._class_counts,
            self._nlogn,
            self._log_factorial,
            self._memo,
            log_p,
            facts,
        )
        which = np.flatnonzero(facts[:, 1])
        if which.size:
            log_p[which] = self._larger(cells, arity, which, facts[which])
        return log_p

    def _larger(
        self, cells: IntArray, arity: IntArray, which: IntArray, facts: FloatArray
    ) -> FloatArray:
        """The same of the tables ``which``, of three and more categories or classes."""
        n_classes = self._class_counts.size
        g_square, df, least, rarest, _, inverses = facts.T
        first = np.cumsum(arity * n_classes) - arity * n_classes
        is_binary = df == n_classes - 1.0
        is_done = least >= LARGE
        log_p = np.where(is_done, self._log_chi_square(g_square, df, inverses), 0.0)
        if n_classes > 2:
            # Two categories: all of these tables at once.
            chosen = np.flatnonzero(is_binary & ~is_done)
            places = rarest[chosen].astype(np.int64)[:, None] + np.arange(n_classes)
            log_p[chosen] = self._of_rows(cells[places])
            is_done |= is_binary
        # Even with two degrees of freedom these would be far from significant.
        is_unclear = np.exp(-g_square / 2.0) > _UNCLEAR
        gamma = special.chdtrc(df, g_square)
        log_p = np.where(~is_done & is_unclear, np.log(np.maximum(gamma, 0.3)), log_p)
        for i in np.flatnonzero(~is_done & ~is_unclear):
            place = first[which[i]]
            table = cells[place : place + arity[which[i]] * n_classes]
            table = table.reshape(-1, n_classes)
            log_p[i] = self._of_table(table[table.any(axis=1)])
        return log_p

    def _log_chi_square(self, g_square: Any, df: Any, inverses: Any) -> Any:
        """By the chi-square law of G², with Williams' correction.

        ``inverses`` is the sum of 1 / size over the categories.
        """
        n = self._n
        spread = (n * inverses - 1.0) * (n * np.sum(1.0 / self._class_counts) - 1.0)
        return log_chi_square_tail(g_square / (1.0 + spread / (6.0 * n * df)), df)

    def _of_rows(self, counts: IntArray) -> FloatArray:
        """Log p-values of categories against the rest, by their class counts.

        They are shape (tables, classes).
        """
        classes, n = self._class_counts, self._n
        ones = counts.sum(axis=1)
        # The same table with its rows exchanged.
        is_frequent = 2 * ones > n
        counts = np.where(is_frequent[:, None], classes - counts, counts)
        ones = np.minimum(ones, n - ones)
        log_p = np.zeros(ones.size)
        if classes.size == 2:
            both = np.ascontiguousarray(counts[:, 1])
            n_1 = np.full(ones.size, classes[1])
            log_fisher(self._log_factorial, ones, both, n_1, n, log_p)
            return log_p
        level = 1 << np.ceil(np.log2(np.clip(ones, 16, 1 << 40))).astype(np.int64)
        for most in np.unique(level).tolist():
            chosen = np.flatnonzero(level == most)
            law = self._law_of_rarest(most)
            if law is not None:
                log_p[chosen] = law.log_p(ones[chosen], counts[chosen])
                continue
            smallest = float(classes.min()) * ones[chosen] / n
            for i, least in zip(chosen.tolist(), smallest.tolist(), strict=True):
                log_p[i] = self._of_large_row(counts[i], int(ones[i]), least)
        return log_p

    def _of_large_row(self, counts: IntArray, ones: int, least: float) -> float:
        """The same for one category that is too large for a grid."""
        n, classes = self._n, self._class_counts
        if not ones:
            return 0.0
        if least >= LARGE:
            g_square = 2.0 * float(
                special.rel_entr(counts, classes * (ones / n)).sum()
                + special.rel_entr(classes - counts, classes * (1.0 - ones / n)).sum()
            )
            df, inverses = classes.size - 1.0, 1.0 / ones + 1.0 / (n - ones)
            return float(self._log_chi_square(g_square, df, inverses))
        log_p = np.zeros(classes.size)
        all_ones = np.full(classes.size, ones)
        log_fisher(self._log_factorial, all_ones, counts.copy(), classes, n, log_p)
        return min(0.0, float(log_p.min()) + math.log(classes.size))

    def _law_of_rarest(self, most: int) -> GridLaw | None:
        """The law of two categories, the rarer of up to ``most`` rows, if it pays."""
        with self._lock:
            if most not in self._by_rarest:
                law = GridLaw(self._class_counts, min(most, self._n // 2))
                is_quick = most <= _MOST_ON_GRID and law.work <= _MOST_WORK
                if is_quick:
                    law.prepare()
                self._by_rarest[most] = law if is_quick else None
            return self._by_rarest[most]

    def _of_table(self, table: IntArray) -> float:
        """Log p-value of one table with small expected counts."""
        if self._class_counts.size == 2:
            found = self._of_two_classes(table)
            if found is not None:
                return found
        log_p = self._of_rows(table)
        return min(0.0, float(log_p.min()) + math.log(log_p.size))

    def _of_two_classes(self, table: IntArray) -> float | None:
        """Log p-value of several categories and two classes, if it can be counted."""
        rarer = int(self._class_counts.argmin())
        n_drawn = int(self._class_counts[rarer])
        sizes, drawn = table.sum(axis=1), table[:, rarer]
        order = np.lexsort((drawn, sizes))
        sizes, drawn = sizes[order], drawn[order]
        if count_draws(sizes[:-1], n_drawn) <= MOST_DRAWS:
            return self._by_counting(sizes, drawn, n_drawn)
        key = tuple(sizes.tolist())
        with self._lock:
            law = self._by_sizes.get(key)
            if law is None:
                law = GridLaw(sizes, n_drawn, n_drawn)
                if law.work > _MOST_WORK_ONCE:
                    return None
                law.prepare()
                if len(self._by_sizes) < _MOST_GRIDS:
                    self._by_sizes[key] = law
        return float(law.log_p(np.array([n_drawn]), drawn[None, :])[0])

    def _by_counting(self, sizes: IntArray, drawn: IntArray, n_drawn: int) -> float:
        """The same by counting all tables of these margins."""
        begins = np.append(0, np.cumsum(sizes + 1))
        parts = np.empty(begins[-1])
        log_weights = np.empty(begins[-1])
        share, least = n_drawn / self._n, 0.0
        for g, size in enumerate(sizes.tolist()):
            here = slice(begins[g], begins[g + 1])
            k = np.arange(size + 1.0)
            parts[here] = special.rel_entr(k, size * share)
            parts[here] += special.rel_entr(size - k, size * (1.0 - share))
            log_weights[here] = log_binomials(self._log_factorial, size)
            least += parts[begins[g] + drawn[g]]
        slack = _TIE * max(least, 1.0)
        margins = parts, log_weights, begins, n_drawn
        return float(log_tail_of_draws(*margins, -math.inf, least, slack))


def log_chi_square_tail(x: Any, df: Any) -> Any:
    """Log of the probability that a chi-square variable exceeds ``x``."""
    with np.errstate(divide="ignore"):
        found = np.log(special.chdtrc(df, x))
    if np.all(np.isfinite(found)):
        return found
    # The first terms of the asymptotic series, where the probability underflows.
    half, shape = np.asarray(x) / 2.0, np.asarray(df) / 2.0
    tail = 1.0 + (shape - 1.0) / half * (1.0 + (shape - 2.0) / half)
    far = (shape - 1.0) * np.log(half) - half - special.gammaln(shape) + np.log(tail)
    return np.where(np.isfinite(found), found, far)

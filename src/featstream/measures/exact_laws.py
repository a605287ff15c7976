"""Exact laws of sums over groups of rows, of which a fixed number is drawn.

If rows have no relation to the classes, the rows of a class are a random draw. The
number of rows drawn from each of several groups then follows a hypergeometric law, and
the tail of any statistic that is a sum of one part per group follows by counting: in
full, if there are few possible draws, or on a grid.

Natural logarithms of probabilities are used throughout, so that nothing underflows.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from featstream.jit import kernel
from featstream.protocols import FloatArray, IntArray

MOST_DRAWS = 1 << 14
"""Draws that are counted one by one, at most."""


@kernel(allocates=True)
def log_tail_of_draws(parts, log_weights, begins, n_drawn, most, least, slack):
    """Log probability that a sum is at least ``least``, or at most ``most``.

    The sum is one over groups. Sums that differ from these by less than ``slack`` count
    as equal to them.

    Group ``g`` has ``begins[g + 1] - begins[g] - 1`` rows; with ``k`` of them drawn its
    part of the sum is ``parts[begins[g] + k]``, and there are
    ``exp(log_weights[begins[g] + k])`` ways to draw them. ``n_drawn`` rows are drawn in
    all. The last group takes what the others leave, so it should be the largest.
    """
    n_groups = begins.size - 1
    n_before = n_groups - 1  # groups that are counted through
    drawn = np.zeros(n_groups, np.int64)
    left = np.zeros(n_groups + 1, np.int64)  # rows still to be drawn from group g on
    value = np.zeros(n_groups + 1)
    weight = np.zeros(n_groups + 1)
    left[0] = n_drawn
    largest = begins[n_groups] - begins[n_before] - 1
    n_all, total = 0.0, 0.0
    n_rows = 0
    for g in range(n_groups):
        n_rows += begins[g + 1] - begins[g] - 1
    scale = math.lgamma(n_rows + 1.0) - math.lgamma(n_drawn + 1.0)
    scale -= math.lgamma(n_rows - n_drawn + 1.0)
    g = 0
    while g >= 0:
        if g == n_before:
            rest = left[g]
            if rest <= largest:
                place = begins[g] + rest
                chance = math.exp(weight[g] + log_weights[place] - scale)
                n_all += chance
                found = value[g] + parts[place]
                if found >= least - slack or found <= most + slack:
                    total += chance
            g -= 1
            continue
        if drawn[g] >= begins[g + 1] - begins[g] or drawn[g] > left[g]:
            drawn[g] = 0
            g -= 1
            continue
        place = begins[g] + drawn[g]
        left[g + 1] = left[g] - drawn[g]
        value[g + 1] = value[g] + parts[place]
        weight[g + 1] = weight[g] + log_weights[place]
        drawn[g] += 1
        g += 1
    if total <= 0.0:
        return -np.inf
    return math.log(total / n_all)


def count_draws(sizes: IntArray, n_drawn: int) -> float:
    """How many draws `log_tail_of_draws` counts through for groups of these sizes."""
    most = np.minimum(sizes, n_drawn) + 1.0
    rough = float(np.prod(most))
    if rough <= MOST_DRAWS or n_drawn > 3:
        return rough
    # Few rows are drawn: most combinations draw too many.
    return float(special.comb(sizes.sum() + n_drawn, n_drawn))


def log_binomials(log_factorial: FloatArray, size: int) -> FloatArray:
    """Log numbers of ways to draw 0 … ``size`` rows of as many."""
    some = log_factorial[: size + 1]
    found: FloatArray = some[-1] - some - some[::-1]
    return found


@kernel(allocates=True)
def _add_group(state, after, cells, chances, out):
    """The law on the grid with one more group.

    Of each row (rows drawn) of ``state``, ``after[j, i]`` is the chance of cell ``i``
    or a later one. All that leaves the grid is counted in its last cell.
    """
    n_cells = state.shape[1]
    for j in range(state.shape[0]):
        for k in range(min(j + 1, cells.size)):
            cell, chance = cells[k], chances[k]
            if cell >= n_cells - 1:
                out[j, n_cells - 1] += chance * after[j - k, 0]
                continue
            for i in range(n_cells - 1 - cell):
                out[j, i + cell] += chance * state[j - k, i]
            out[j, n_cells - 1] += chance * after[j - k, n_cells - 1 - cell]


class GridLaw:
    """The law of the information in a table of two rows, given its margins.

    ``sizes`` are the sizes of the groups (columns of the table), and up to ``most``
    rows are drawn. The statistic is the information in nats, G² / 2, in whole steps of
    ``step`` per group: the law of that whole number is exact, so that its p-values
    never promise too much, and it orders tables as G² does, to within the rounding.
    One law serves all numbers of rows drawn from half of ``most`` on.
    """

    step = 0.05
    _tilt = 0.95

    def __init__(self, sizes: IntArray, most: int, n_drawn: int | None = None) -> None:
        n = int(sizes.sum())
        typical = 0.72 * most if n_drawn is None else n_drawn
        self._share = min(typical / n, 1.0 - 0.5 / n)
        self.most = most
        self._n = n
        ends = np.array([most, (most + 1) // 2]) if n_drawn is None else [n_drawn]
        extra = max(n * _divergence(end / n, self._share) for end in ends)
        # That far the law is counted, beyond it is bounded: p-values of about 1e-17.
        nats = 40.0 + 1.2 * (sizes.size - 1)
        self.n_cells = int((nats + extra) / self.step) + 2
        self.cells = [self._cells_of(int(size)) for size in sizes]
        self._log_p: FloatArray | None = None
        self._sizes = sizes

    def _cells_of(self, size: int) -> IntArray:
        """The part of a group of this size, by the number of its rows drawn."""
        drawn = np.arange(min(size, self.most) + 1) / size
        nats = size * _divergence(drawn, self._share)
        cells: IntArray = np.rint(nats / self.step).astype(np.int64)
        return cells

    @property
    def work(self) -> float:
        """Additions that the law takes, about."""
        inside = [np.count_nonzero(cells < self.n_cells) for cells in self.cells]
        return float(np.sum(inside)) * self.most * self.n_cells / 2.0

    def prepare(self) -> None:
        """Count the law."""
        shape = self.most + 1, self.n_cells
        state = np.zeros(shape)
        state[0, 0] = 1.0
        moment = np.zeros(self.most + 1)
        moment[0] = 1.0
        known: dict[int, tuple[FloatArray, FloatArray]] = {}
        for size, cells in zip(self._sizes.tolist(), self.cells, strict=True):
            if size not in known:
                drawn = np.arange(cells.size)
                log_chance = special.gammaln(size + 1.0) - special.gammaln(drawn + 1.0)
                log_chance -= special.gammaln(size - drawn + 1.0)
                log_chance += special.xlogy(drawn, self._share)
                log_chance += special.xlog1py(size - drawn, -self._share)
                tilted = np.exp(log_chance + self._tilt * self.step * cells)
                known[size] = np.exp(log_chance), tilted
            chances, tilted = known[size]
            after = np.ascontiguousarray(np.cumsum(state[:, ::-1], axis=1)[:, ::-1])
            out = np.zeros(shape)
            _add_group(state, after, cells, chances, out)
            state = out
            moment = np.convolve(moment, tilted)[: self.most + 1]
        tails = np.cumsum(state[:, ::-1], axis=1)[:, ::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._log_p = np.log(tails / tails[:, :1])
            self._log_moment = np.log(moment / tails[:, 0])

    def log_p(self, n_drawn: IntArray, drawn: IntArray) -> FloatArray:
        """Log p-values of tables: the rows drawn, in all and from each group."""
        if self._log_p is None:
            self.prepare()
            assert self._log_p is not None
        cell = np.zeros(n_drawn.size, np.int64)
        for cells, counts in zip(self.cells, drawn.T, strict=True):
            cell += cells[counts]
        found = self._log_p[n_drawn, np.minimum(cell, self.n_cells - 1)]
        # Markov's inequality for exp(tilt * information) orders the far tail.
        bound = self._log_moment[n_drawn] - self._tilt * self.step * cell
        is_beyond = cell >= self.n_cells - 1
        result: FloatArray = np.where(is_beyond, np.minimum(found, bound), found)
        return np.minimum(result, 0.0)


def _divergence(share: FloatArray | float, of: float) -> FloatArray:
    """Kullback and Leibler's divergence of two binary laws, in nats."""
    rest = 1.0 - np.asarray(share)
    found: FloatArray = special.rel_entr(share, of) + special.rel_entr(rest, 1.0 - of)
    return found

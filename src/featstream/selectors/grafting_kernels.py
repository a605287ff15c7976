"""Grafting: the gradient test of new columns, and the fit of the weights they get.

Columns are standardised on the way. Zeros are counted, not visited, in dense as in
sparse columns, so that both are summed in the same order, to the same bit.
"""

from __future__ import annotations

import numpy as np

from featstream.jit import inner, inner_jit, jit


@inner
def _gradient(values, rows, n, residuals, totals):
    """Largest slope of the loss along a standardised column, by its nonzeros."""
    size, mean, square = values.size, 0.0, 0.0
    for e in range(size):
        mean += values[e]
    mean /= n
    for e in range(size):
        square += (values[e] - mean) * (values[e] - mean)
    square += (n - size) * mean * mean
    if not square > 1e-24 * n * mean * mean:
        return 0.0, mean, 0.0
    scale, largest = np.sqrt(square / n), 0.0
    for t in range(totals.size):
        slope = 0.0
        for e in range(size):
            slope += values[e] * residuals[rows[e], t]
        slope = abs(slope - mean * totals[t]) / (n * scale)
        largest = max(largest, slope)
    return largest, mean, scale


@inner
def _find_nonzeros(columns, indptr, stored_rows, j, values, rows):
    """Write the nonzeros of a column, of an array or stored; how many there are."""
    size = 0
    if columns.ndim == 2:
        column = columns[:, j]
        for i in range(column.size):
            if column[i] != 0:
                values[size], rows[size] = column[i], i
                size += 1
    else:
        for e in range(indptr[j], indptr[j + 1]):
            if columns[e] != 0:
                values[size], rows[size] = columns[e], stored_rows[e]
                size += 1
    return size


@jit
def graft(columns, indptr, stored_rows, begin, residuals, totals, price, slopes):
    """Slopes of the columns from ``begin`` on; stops at the first above the price.

    ``columns`` is an array, or the values of sparse columns. Returns the position of
    that column with mean and scale, or the number of columns.
    """
    n = residuals.shape[0]
    values, rows = np.empty(n), np.empty(n, np.int32)
    for j in range(begin, slopes.size):
        size = _find_nonzeros(columns, indptr, stored_rows, j, values, rows)
        slopes[j], mean, scale = _gradient(
            values[:size], rows[:size], n, residuals, totals
        )
        if slopes[j] > price:
            return j, mean, scale
    return slopes.size, 0.0, 0.0


@jit
def objective(margins, signs, weights, l1, l2):
    """Mean logistic loss with its penalties; the first weight is the intercept."""
    total = 0.0
    for i in range(margins.size):
        margin = signs[i] * margins[i]
        if margin > 0:
            total += np.log1p(np.exp(-margin))
        else:
            total += np.log1p(np.exp(margin)) - margin
    total /= margins.size
    for j in range(1, weights.size):
        total += l1 * abs(weights[j]) + l2 * weights[j] * weights[j]
    return total


@inner_jit
def _descend(gradient, hessian, weights, l1, l2, step):
    """Coordinate descent on the quadratic model of the loss with its penalties."""
    k = weights.size
    step[:] = 0.0
    for _ in range(1000):
        moved = 0.0
        for j in range(k):
            slope = gradient[j]
            for m in range(k):
                slope += hessian[j, m] * step[m]
            curvature = hessian[j, j] + 1e-12
            old = weights[j] + step[j]
            if j > 0:
                slope += 2.0 * l2 * old
                curvature += 2.0 * l2
            aim = curvature * old - slope
            penalty = l1 if j > 0 else 0.0
            new = 0.0
            if aim > penalty:
                new = (aim - penalty) / curvature
            elif aim < -penalty:
                new = (aim + penalty) / curvature
            step[j] += new - old
            moved = max(moved, abs(new - old))
        if moved <= 1e-12:
            break


@jit
def fit_logistic(design, signs, weights, l1, l2):
    """Weights that minimise the penalised logistic loss, from those given on.

    Proximal Newton: each round solves the quadratic model exactly, and halves the
    step until the objective falls. Returns the objective.
    """
    n, k = design.shape
    gradient, hessian, step = np.empty(k), np.empty((k, k)), np.empty(k)
    margins = design @ weights
    best = objective(margins, signs, weights, l1, l2)
    for _ in range(100):
        gradient[:] = 0.0
        hessian[:] = 0.0
        for i in range(n):
            p = 1.0 / (1.0 + np.exp(signs[i] * margins[i]))
            curvature = max(p * (1.0 - p), 1e-10) / n
            for j in range(k):
                gradient[j] -= signs[i] * p * design[i, j] / n
                for m in range(j + 1):
                    hessian[j, m] += curvature * design[i, j] * design[i, m]
        for j in range(k):
            for m in range(j):
                hessian[m, j] = hessian[j, m]
        _descend(gradient, hessian, weights, l1, l2, step)
        size, value = 1.0, best
        for _ in range(40):
            trial = weights + size * step
            trial_margins = design @ trial
            value = objective(trial_margins, signs, trial, l1, l2)
            if value <= best:
                break
            size /= 2.0
        if not value < best:
            break
        gain = best - value
        weights[:] = trial
        margins[:] = trial_margins
        best = value
        if gain <= 1e-14 * max(1.0, abs(best)):
            break
    return best

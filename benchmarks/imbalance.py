"""What AUC needs where one class is rare: variants of relevance and of redundancy.

``python -m benchmarks.imbalance`` compares them at equal numbers of features on hiva,
dorothea and thrombin (3.5%, 9.8% and 2.2% of the rows in the rare class). Candidates
are features that pass Benjamini and Hochberg's procedure at 5%; they are taken from the
most relevant on, and dropped if a test, given a feature taken before, does not reject
at 5%: the batch counterpart of ``SAOLA(redundancy="conditional")``. Logistic regression
as in ``benchmarks.beyond``, ten (thrombin: five) stratified random splits with a third
held back.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from scipy import stats

from benchmarks.beyond import load, remembered, row, rows_of, score, splits
from featstream import SymmetricalUncertainty
from featstream.sources import SparseSource

DATA = {"hiva_train": 10, "dorothea": 10, "thrombin_train": 5}
"""Data sets, and the number of splits."""

SIZES = (10, 20, 40, 80)
LEVEL = 0.05


def entropy(p):
    p = np.clip(p, 1e-300, 1.0)
    return -p * np.log(p)


def information(in_1, in_0, n_1, n_0, weight):
    """Of a binary feature and a class of prior ``weight``, from counts of ones."""
    a, b = in_1 / n_1, in_0 / n_0
    mean = weight * a + (1 - weight) * b
    whole = entropy(mean) + entropy(1 - mean)
    within = weight * (entropy(a) + entropy(1 - a))
    return whole - within - (1 - weight) * (entropy(b) + entropy(1 - b))


def candidates(p_values):
    """Features that pass Benjamini and Hochberg's procedure."""
    ordered = np.sort(p_values)
    is_below = ordered <= LEVEL * np.arange(1, ordered.size + 1) / ordered.size
    return np.flatnonzero(p_values <= ordered[is_below].max(initial=-1.0))


def p_given(f, ones_1, kept, kept_1, y, test):
    """P-values of a feature and the class, given each of the kept features."""
    n, n_1 = y.size, y.sum()
    statistic, gap, spread, df = (np.zeros(kept.shape[1]) for _ in range(4))
    winner, winner_1 = kept.sum(axis=0), kept_1.sum(axis=0)
    common, common_1 = kept.T @ f, kept_1.T @ f
    strata = (
        (winner, winner_1, common, common_1),
        (n - winner, n_1 - winner_1, f.sum() - common, ones_1 - common_1),
    )
    for size, in_class, ones, both in strata:
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = ones * in_class / size
            variance = expected * (size - ones) * (size - in_class) / size / (size - 1)
        varies = variance > 0
        df += varies
        if test == "g":
            cells = np.array([both, ones - both, in_class - both])
            cells = np.vstack([cells, size - cells.sum(axis=0)])
            margins = ones, size - ones, in_class, size - in_class
            total = sum(nlogn(c) for c in cells) - sum(nlogn(m) for m in margins)
            statistic += np.where(varies, 2 * (total + nlogn(size)), 0.0)
        else:
            gap += np.where(varies, both - expected, 0.0)
            spread += np.where(varies, variance, 0.0)
    if test == "g":
        return np.where(df > 0, stats.chi2.sf(statistic, np.maximum(df, 1)), 1.0)
    return stats.chi2.sf(gap**2 / np.where(spread > 0, spread, np.inf), 1)


def nlogn(x):
    return x * np.log(np.maximum(x, 1))


def take(D, y, order, test):
    """Candidates in order, those left out that add nothing to one taken before."""
    taken: list[int] = []
    kept, kept_1 = np.empty((2, y.size, max(SIZES)))
    for j in order:
        if len(taken) == max(SIZES):
            break
        f, n = D[:, j], len(taken)
        shown = kept[:, :n], kept_1[:, :n], y, test
        if test and n and (p_given(f, f @ y, *shown) > LEVEL).any():
            continue
        kept[:, n], kept_1[:, n] = f, f * y
        taken.append(j)
    return taken


VARIANTS = {
    # relevance, p-values of candidates, conditional test
    "ranking by SU": ("su", "exact", None),
    "ranking by exact p-values": ("p", "exact", None),
    "ranking by information of balanced classes": ("balanced", "exact", None),
    "conditional G², as built": ("su", "exact", "g"),
    "– candidates by the chi-square law": ("su", "law", "g"),
    "– ordered by exact p-values": ("p", "exact", "g"),
    "– ordered by information of balanced classes": ("balanced", "exact", "g"),
    "– Mantel and Haenszel's test in place of G²": ("su", "exact", "mh"),
}


def run(name, k):
    """AUC of every variant at every size, on one split."""
    X, y, _ = load(name, is_binary=True)
    train, test = splits(y, [], 10, seed=100)[k]
    part, labels = rows_of(X, train), y[train]
    measure = SymmetricalUncertainty().bind(labels)
    blocks = [measure.encode(block) for block in SparseSource(part).blocks()]
    judged = [(measure.relevance(block), block) for block in blocks]
    scores = np.concatenate([found for found, _ in judged])
    exact = np.concatenate([measure.p_values(b, found) for found, b in judged])
    n, n_1 = labels.size, labels.sum()
    ones = np.diff(part.indptr).astype(float)
    ones_1 = part.T @ labels
    plain = information(ones_1, ones - ones_1, n_1, n - n_1, n_1 / n)
    p_values = {
        "exact": exact,
        "law": stats.chi2.sf(2 * n * plain, 1),
    }
    relevance = {
        "su": scores,
        "p": -exact,
        "balanced": information(ones_1, ones - ones_1, n_1, n - n_1, 0.5),
    }
    found = {}
    for label, (by, law, conditional) in VARIANTS.items():
        chosen = candidates(p_values[law])
        chosen = chosen[np.argsort(-relevance[by][chosen], kind="stable")]
        D = part[:, chosen].astype(float).toarray()
        taken = chosen[take(D, labels, range(chosen.size), conditional)]
        found[label] = [
            score(X, y, train, test, taken[:size], is_scaled=False)[1] for size in SIZES
        ]
    return found


def main():
    for name, n_splits in DATA.items():
        runs = [
            remembered(partial(run, name, k), "rare", name, k) for k in range(n_splits)
        ]
        for label in VARIANTS:
            aucs = np.array([found[label] for found in runs])
            gain = aucs - np.array(
                [found["conditional G², as built"] for found in runs]
            )
            error = gain.std(axis=0, ddof=1) / np.sqrt(len(runs))
            cells = zip(aucs.mean(axis=0), error, strict=True)
            row(name, label, *(f"{auc:.3f} ± {e:.3f}" for auc, e in cells))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()

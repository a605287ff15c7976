"""Random problems, solved here and on an engine."""

import warnings

import numpy as np
from scipy import sparse

from featstream import FisherZ, GroupSAOLA, MutualInformation, SymmetricalUncertainty
from featstream.sources import ArraySource, SparseSource
from strategies import RULES

OPTIONS = {name: RULES[name] for name in ("bound", "ties", "pruning", "overlap")} | {
    "redundancy": ["bound", "conditional"],
    "correction": ["none", "bonferroni", "online-fdr"],
}


def make_options(rng):
    """Any options that go together."""
    options = {name: rng.choice(values).item() for name, values in OPTIONS.items()}
    if options["redundancy"] == "conditional":
        del options["bound"], options["overlap"]
    return options


class SharedArray(ArraySource):
    """An array that workers open by themselves, as they open a file."""

    def reopener(self):
        return lambda: self


def make_data(rng):
    """Columns of few values, many of them alike; ties are common."""
    n, p = int(rng.integers(6, 40)), int(rng.integers(2, 60))
    y = rng.integers(0, rng.integers(2, 4), n)
    y[:2] = [0, 1]
    is_discrete = rng.random() < 0.7
    X = rng.integers(0, rng.integers(2, 5), (n, p)).astype(float)
    if not is_discrete:
        X = np.round(4 * rng.normal(size=(n, p)))
    for j in range(p):
        kind, other = rng.integers(0, 7), int(rng.integers(0, max(1, j)))
        noisy = rng.random(n) < rng.choice([0.1, 0.3, 0.6])
        if kind == 0:
            X[:, j] = np.where(noisy, X[:, j], y)
        elif kind in (1, 2):
            X[:, j] = np.where(noisy, X[:, j], X[:, other])
        elif kind == 3:
            X[:, j] = X[:, other]
        elif kind == 4:
            X[:, j] *= rng.random(n) < 0.3
    return X, y, is_discrete


def make_binary(rng, n_features=400, n_samples=120):
    """Binary columns, each a noisy copy of the class or of a column before it."""
    y = rng.integers(0, 2, n_samples)
    X = rng.integers(0, 2, (n_samples, n_features)).astype(np.uint8)
    for j in range(n_features):
        origin = y if rng.random() < 0.3 or not j else X[:, rng.integers(0, j)]
        X[:, j] = np.where(rng.random(n_samples) < rng.random(), X[:, j], origin)
    return X, y


def make_selector(rng, is_discrete, kind):
    options = make_options(rng)
    kinds = [SymmetricalUncertainty, MutualInformation] if is_discrete else [FisherZ]
    alpha = rng.choice([None, 0.15] if is_discrete else [0.05, 0.19])
    options["measure"] = rng.choice(kinds)(alpha=alpha)
    options["trace"] = rng.choice(["full", "full", "kept"]).item()
    if kind is GroupSAOLA:
        options["reading"] = rng.choice(["relevant", "literal", "library"]).item()
        if options["reading"] == "library":
            for name in ("ties", "pruning", "overlap"):
                options.pop(name, None)
    if rng.random() < 0.3:
        options["max_features"] = int(rng.integers(1, 6))
    return kind(**options)


def make_source(rng, X):
    width = int(rng.integers(1, 9))
    if rng.random() < 0.3:
        return SparseSource(sparse.csc_array(X), block_columns=width)
    kind = rng.choice([ArraySource, SharedArray])
    X = np.asfortranarray(X)
    names = [f"f{i}" for i in range(X.shape[1])] if rng.random() < 0.5 else None
    return kind(X, names, block_bytes=width * X.shape[0] * 8)


def make_groups(rng, source):
    p = source.n_features
    labels = rng.integers(0, rng.integers(1, p + 1), p)
    return None if rng.random() < 0.2 else np.sort(labels)


def solve(selector, y, source, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return selector.start(y).consume(source, **options)

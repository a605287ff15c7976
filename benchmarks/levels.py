"""What levels mean: true sizes of the tests that judge features, and noise selected.

    python -m benchmarks.levels                 # all of the following
    python -m benchmarks.levels tables          # tables of counts, by enumeration
    python -m benchmarks.levels columns         # continuous columns, 10^5 each
    python -m benchmarks.levels noise [RUNS]    # what is selected from noise
    python -m benchmarks.levels power           # what is found, beside the plain tests

``docs/levels.md`` shows what these print. The size of a test is how often it calls an
irrelevant feature significant; here it is divided by the level, so that 1 is right and
more than 1 promises too much.
"""

import sys
import time
import warnings

import numpy as np
from scipy import sparse, special, stats

from featstream import FisherZ, SelectFromStream, SymmetricalUncertainty
from featstream.measures.storages.tables import fixed_point_nlogn
from featstream.measures.table_laws import TableLaws
from featstream.protocols import Block

LEVELS = (0.05, 1e-3, 1e-5)

# Rows of the table (categories) and its columns (classes).
KNOWN = (
    ((4989, 11), (2500, 2500)),
    ((4985, 15), (2500, 2500)),
    ((899, 101), (950, 50)),
    ((38, 12), (25, 25)),
    ((1999, 1), (1800, 200)),
    ((996, 4), (100,) * 10),
    ((994, 6), (100,) * 10),
    ((97, 3), (60, 30, 10)),
    ((280, 15, 5), (270, 30)),
    ((970, 30), (900, 50, 50)),
)
OWN = (
    ((20, 20), (20, 20)),
    ((70, 30), (95, 5)),
    ((400, 100), (250, 250)),
    ((700, 300), (990, 10)),
    ((1850, 150), (1000, 1000)),
    ((9800, 200), (9900, 100)),
    ((9970, 30), (5000, 5000)),
    ((200, 100), (297, 3)),
    ((600, 400), (667, 333)),
    ((2500, 2500), (4950, 50)),
    ((75, 25), (50, 30, 20)),
    ((638, 12), (300, 200, 100, 50)),
    ((90, 10), (20,) * 5),
    ((960, 40), (500, 300, 150, 50)),
    ((1095, 15), (1000, 100, 10)),
    ((233, 7), (40,) * 6),
    ((67, 33), (33, 33, 34)),
    ((94, 6), (90, 5, 5)),
    ((780, 20), (200,) * 4),
    ((900, 100), (970, 20, 10)),
    ((995, 5), (50,) * 20),
    ((600, 400), (900, 50, 50)),
    ((700, 260, 40), (500, 500)),
    ((850, 140, 10), (950, 50)),
    ((50, 30, 20), (70, 30)),
    ((970, 10, 10, 10), (800, 200)),
    ((400, 400, 200), (970, 30)),
    ((40, 40, 20), (60, 30, 10)),
    ((940, 60), (50,) * 20),
    ((850, 150), (50,) * 20),
    ((600, 400), (50,) * 20),
    ((20,) * 5, (50, 30, 20)),
    ((200,) * 5, (950, 50)),
    ((200,) * 5, (100,) * 10),
    ((850, 140, 10), (600, 300, 100)),
)
MOST_TABLES = 300_000
N_DRAWN = 1_000_000


def draws(sizes, n_drawn):
    """All ways to draw some rows from groups, or None if they are too many."""
    found = np.zeros((1, 0), np.int64)
    for g, size in enumerate(sizes):
        left = n_drawn - found.sum(axis=1)
        rest = sum(sizes[g + 1 :])
        low, high = np.maximum(left - rest, 0), np.minimum(left, size)
        lengths = high - low + 1
        if lengths.sum() > MOST_TABLES:
            return None
        own = np.arange(lengths.sum()) - np.repeat(
            np.cumsum(lengths) - lengths, lengths
        )
        own += np.repeat(low, lengths)
        found = np.column_stack([np.repeat(found, lengths, axis=0), own])
    return found


def tables_of(categories, classes, rng):
    """Tables of some margins, shape (tables, categories, classes), and their chances.

    All of them if there are two categories or two classes, and not too many tables;
    otherwise random ones.
    """
    categories, classes = np.array(categories), np.array(classes)
    n = categories.sum()
    groups, n_drawn = (classes, categories[1]), (categories, classes[1])
    for sizes, drawn, is_turned in ((*groups, False), (*n_drawn, True)):
        other = categories if not is_turned else classes
        known = draws(sizes.tolist(), int(drawn)) if other.size == 2 else None
        if known is None:
            continue
        log_chance = log_ways(sizes, known).sum(axis=1) - log_ways(n, drawn)
        pair = np.stack([sizes - known, known], axis=2 if is_turned else 1)
        return pair, np.exp(log_chance), "all"
    found = np.zeros((N_DRAWN, categories.size, classes.size), np.int64)
    left = np.tile(classes, (N_DRAWN, 1))
    for i, size in enumerate(categories[:-1]):
        taken = np.full(N_DRAWN, size)
        for c in range(classes.size - 1):
            good, bad = left[:, c], left[:, c + 1 :].sum(axis=1)
            found[:, i, c] = rng.hypergeometric(good, bad, taken)
            taken = taken - found[:, i, c]
        found[:, i, -1] = taken
        left = left - found[:, i]
    found[:, -1] = left
    return found, np.full(N_DRAWN, 1.0 / N_DRAWN), "drawn"


def log_ways(n, k):
    return (
        special.gammaln(n + 1.0)
        - special.gammaln(k + 1.0)
        - special.gammaln(n - k + 1.0)
    )


def plain_g(tables):
    """P-values by the chi-square law of G²."""
    counts = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
    expected = counts / tables.sum(axis=(1, 2), keepdims=True)
    g = 2 * special.rel_entr(tables, expected).sum(axis=(1, 2))
    return special.chdtrc((tables.shape[1] - 1) * (tables.shape[2] - 1), g)


def tables():
    """The size of the tests of tables, by all tables of their margins."""
    print(
        "\n| categories | classes | tables | " + " | ".join(map(str, LEVELS)), end=" "
    )
    print("| chi-square law, largest |\n|---|---|---|" + "---:|" * (len(LEVELS) + 1))
    worst = 0.0
    for categories, classes in KNOWN + OWN:
        rng = np.random.default_rng(0)
        found, chance, how = tables_of(categories, classes, rng)
        counts = np.array(classes)
        laws = TableLaws(counts, fixed_point_nlogn(int(counts.sum())))
        arity = np.full(len(found), len(categories))
        p = np.exp(laws.log_p_values(found.ravel(), arity))
        sizes = [chance[p <= level].sum() / level for level in LEVELS]
        plain = plain_g(found)
        others = max(chance[plain <= level].sum() / level for level in LEVELS)
        worst = max(worst, *sizes)
        shown = " | ".join(f"{size:.2f}" for size in sizes)
        what = f"{len(found):,} {how}"
        print(
            f"| {brief(categories)} | {brief(classes)} | {what} | {shown} |"
            f" {others:.1f} |",
            flush=True,
        )
    print(f"\nlargest ratio: {worst:.2f}")


def brief(sizes):
    if len(set(sizes)) == 1 and len(sizes) > 3:
        return f"{len(sizes)} of {sizes[0]:,}"
    return " / ".join(f"{size:,}" for size in sizes)


def lognormal(sigma):
    return lambda rng, shape: rng.lognormal(0.0, sigma, shape)


def mostly_zero(low, high):
    """Columns with a given number of exponential values; the others are zero."""

    def draw(rng, shape):
        order = np.argsort(rng.random(shape), axis=1)
        is_there = order < rng.integers(low, high + 1, (shape[0], 1))
        return np.where(is_there, rng.exponential(size=shape), 0.0)

    return draw


LAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "lognormal, sigma 1": lognormal(1.0),
    "lognormal, sigma 2": lognormal(2.0),
    "t3": lambda rng, shape: rng.standard_t(3, shape),
    "Cauchy": lambda rng, shape: rng.standard_cauchy(shape),
    "1 to 20 not zero": mostly_zero(1, 20),
    "20 to 60 not zero": mostly_zero(20, 60),
    "Poisson, mean 0.05": lambda rng, shape: rng.poisson(0.05, shape).astype(float),
    "Poisson, mean 1": lambda rng, shape: rng.poisson(1.0, shape).astype(float),
    "log1p(Poisson), mean 0.05": lambda rng, shape: np.log1p(rng.poisson(0.05, shape)),
}


def class_of(n, *sizes):
    """Classes of these sizes; all other rows are in one more."""
    y = np.zeros(n, np.int64)
    y[: sum(sizes)] = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    return y


def heavy_target(rng, n):
    return rng.lognormal(0.0, 2.0, n)


def mostly_zero_target(rng, n):
    return np.where(rng.random(n) < 0.05, rng.lognormal(0.0, 1.0, n), 0.0)


TARGETS = {
    "10 of 500": class_of(500, 10),
    "50 of 500": class_of(500, 50),
    "250 of 500": class_of(500, 250),
    "5 of 1,000": class_of(1000, 5),
    "50 of 1,000": class_of(1000, 50),
    "6 of 40": class_of(40, 6),
    "10 classes of 100": np.arange(1000) % 10,
    "20 classes of 50": np.arange(1000) % 20,
    "900 / 50 / 50": class_of(1000, 50, 50),
    "lognormal target, n 500": heavy_target(np.random.default_rng(0), 500),
    "target 95% zero, n 1,000": mostly_zero_target(np.random.default_rng(0), 1000),
}


def columns(n_columns=100_000):
    """The size of the tests of continuous columns, and of the F-test alone."""
    heads = " | ".join(f"F, {level:g} | {level:g}" for level in LEVELS)
    print(f"\n| target | columns | {heads} |\n|---|---|" + "---:|" * 2 * len(LEVELS))
    worst = 0.0
    for target, y in TARGETS.items():
        kind = "numeric" if y.dtype.kind == "f" else "nominal"
        for name, draw in LAWS.items():
            bound = FisherZ(alpha=0.05, target=kind).bind(y)
            bound.use_level(0.05)
            rng, plain, ours, begin = np.random.default_rng(1), [], [], 0
            while begin < n_columns:
                X = draw(rng, (2000, y.size))
                block = Block(np.asfortranarray(X.T), start=begin)
                encoded = bound.encode(block)
                scores = bound.relevance(encoded)
                plain.append(np.exp(bound._log_p_of_f(scores)))
                ours.append(bound.p_values(encoded, scores))
                begin += 2000
            rates = [
                np.mean(np.concatenate(p) <= level) / level
                for level in LEVELS
                for p in (plain, ours)
            ]
            # What chance adds, in two standard errors, is left out of the worst.
            spread = 2.0 / np.sqrt(n_columns * np.array(LEVELS))
            worst = max(worst, *(np.array(rates[1::2]) - spread))
            shown = " | ".join(f"{rate:.2f}" for rate in rates)
            print(f"| {target} | {name} | {shown} |", flush=True)
    print(f"\nlargest ratio, less two standard errors: {worst:.2f}")


def tf_idf(share):
    def draw(rng, shape):
        is_there = rng.random(shape) < share
        return sparse.csc_array(np.where(is_there, rng.exponential(size=shape), 0.0))

    return draw


NOISE = {
    "normal": LAWS["normal"],
    "lognormal, sigma 1": lognormal(1.0),
    "lognormal, sigma 2": lognormal(2.0),
    "t3": LAWS["t3"],
    "Cauchy": LAWS["Cauchy"],
    "0.5% not zero (tf-idf)": tf_idf(0.005),
    "2% not zero (tf-idf)": tf_idf(0.02),
    "counts, mean 0.05": lambda rng, shape: sparse.csc_array(rng.poisson(0.05, shape)),
    "log1p(counts), mean 0.1": lambda rng, shape: np.log1p(rng.poisson(0.1, shape)),
    "binary, 3 to 10 ones": lambda rng, shape: (
        np.argsort(rng.random(shape), axis=0) < rng.integers(3, 11, shape[1])
    ).astype(np.uint8),
}
NOISE_TARGETS = {
    "5": lambda rng: class_of(1000, 5),
    "20": lambda rng: class_of(1000, 20),
    "50": lambda rng: class_of(1000, 50),
    "500": lambda rng: class_of(1000, 500),
    "10 classes": lambda rng: np.arange(1000) % 10,
    "20 classes": lambda rng: np.arange(1000) % 20,
    "lognormal": lambda rng: heavy_target(rng, 1000),
}


def noise(n_runs=200):
    """Runs on pure noise that select something, and the features selected in all."""
    print(f"\n| noise, {n_runs} runs | " + " | ".join(NOISE_TARGETS) + " |")
    print("|---|" + "---:|" * len(NOISE_TARGETS))
    most = 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_runs)
    worst = 0.0
    for k, (name, draw) in enumerate(NOISE.items()):
        cells = []
        for j, make in enumerate(NOISE_TARGETS.values()):
            found = []
            for run in range(n_runs):
                rng = np.random.default_rng([run, j, k])
                y = make(rng)
                kind = "numeric" if y.dtype.kind == "f" else "nominal"
                is_quantity = kind == "numeric" or "counts" in name
                measure = FisherZ(target=kind) if is_quantity else "auto"
                X = draw(rng, (1000, 1000))
                selector = SelectFromStream(measure=measure).fit(X, y)
                found.append(selector.selected_.size)
            share = np.count_nonzero(found) / n_runs
            worst = max(worst, share)
            cells.append(f"{np.count_nonzero(found)}/{sum(found)}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(
        f"\nlargest share of runs: {worst:.3f}; 5% and two standard errors: {most:.3f}"
    )


def power(n_columns=20_000):
    """Share of shifted columns that are found, by the plain tests and by ours."""
    print("\n| columns | class | level | plain test | ours |\n|---|---|---:|---:|---:|")
    rng = np.random.default_rng(0)
    for n, n_1 in ((200, 100), (1000, 500), (1000, 200), (1000, 50), (2000, 20)):
        y = class_of(n, n_1)
        error = np.sqrt(n / (n_1 * (n - n_1)))
        for level in (1e-3, 1e-5):
            z = stats.norm.isf(level / 2)
            # The power of half of them is between one in six and five in six.
            shift = rng.normal(z, 1.0, n_columns) * error
            X = rng.normal(size=(n, n_columns)) + np.outer(y, shift)
            bound = FisherZ(target="nominal").bind(y)
            bound.use_level(0.05)
            encoded = bound.encode(Block(np.asfortranarray(X)))
            scores = bound.relevance(encoded)
            plain = np.exp(bound._log_p_of_f(scores)) <= level
            ours = bound.p_values(encoded, scores) <= level
            rates = f"{plain.mean():.3f} | {ours.mean():.3f}"
            print(f"| normal, n {n:,} | {n_1} | {level:g} | {rates} |")
            for share in (0.1, 0.3, 0.5):
                rate = np.clip(share + shift * np.sqrt(share * (1 - share)), 0, 1)
                ones = rng.random((n, n_columns)) < np.where(y[:, None], rate, share)
                bound = SymmetricalUncertainty().bind(y)
                encoded = bound.encode(Block(np.asfortranarray(ones, np.uint8)))
                ours = bound.p_values(encoded, bound.relevance(encoded)) <= level
                counts = np.array([ones[y == c].sum(axis=0) for c in (0, 1)]).T
                both = np.stack([np.bincount(y) - counts, counts], axis=1)
                rates = f"{np.mean(plain_g(both) <= level):.3f} | {ours.mean():.3f}"
                print(f"| {share:.0%} ones, n {n:,} | {n_1} | {level:g} | {rates} |")


PARTS = {"tables": tables, "columns": columns, "noise": noise, "power": power}


def main(arguments):
    """Run the named parts, or all; a number after a part is given to it."""
    warnings.simplefilter("ignore")
    chosen = [part for part in PARTS if part in arguments] or list(PARTS)
    numbers = [int(number) for number in arguments if number.isdigit()]
    for part in chosen:
        began = time.process_time()
        PARTS[part](*(numbers if part in ("noise", "columns") else []))
        print(
            f"\n({part}: {time.process_time() - began:.0f} s of CPU time)", flush=True
        )


if __name__ == "__main__":
    main(sys.argv[1:])

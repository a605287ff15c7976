"""Numbers of features of FCBF, IAMB and MMMB beside Table 17 of the SAOLA paper.

``python -m benchmarks.counts [fcbf] [iamb] [mmmb]`` fits each method with the settings
that the paper leaves open, on the training parts of dexter, arcene and dorothea, and
prints what it selects. The best setting is the one with the least sum of differences.
"""

import argparse
import itertools
import time
import warnings

from benchmarks.timing import SHARED
from featstream import FCBF, IAMB, MMMB, SymmetricalUncertainty
from featstream.measures import FisherZTest, GTest
from featstream.paper.datasets import load_dataset

PRINTED = {
    "fcbf": {"dexter": 55, "arcene": 31, "dorothea": 96},
    "iamb": {"dexter": 4, "arcene": 3, "dorothea": 6},
    "mmmb": {"dexter": 11, "arcene": 5},  # it did not end on dorothea in three days
}
SECONDS = 60.0
"""After which a search is stopped; its number of features is then marked."""

CUTS = {
    "2 bins": {"n_bins": 2},
    "3 bins": {"n_bins": 3},
    "5 bins": {"n_bins": 5},
    "10 bins": {"n_bins": 10},
    "2 of equal width": {"binning": "uniform", "n_bins": 2},
    "5 of equal width": {"binning": "uniform", "n_bins": 5},
    "10 of equal width": {"binning": "uniform", "n_bins": 10},
    "MDL": {"binning": "mdl"},
}
"""How numbers are cut. Bins are of equal frequency unless it says otherwise."""


def fcbf_settings():
    """All ways to cut, of whole numbers too or only where they are many."""
    for name, options in CUTS.items():
        for limit, whole in ((2, "all numbers"), (None, "many values")):
            measure = SymmetricalUncertainty(max_categories=limit, **options)
            yield f"{name}, {whole}", FCBF(measure=measure)
    yield "Fisher's Z", FCBF(measure="fisher-z")


def tests():
    """Tests by name: the statistic, the level, and the rule of reliability.

    A table of two binary variables has four cells and one degree of freedom, so that
    20 samples per degree of freedom are five per cell.
    """
    for alpha in (0.01, 0.05):
        yield f"Fisher's Z, {alpha:g}", FisherZTest(alpha=alpha)
    cuts = ("2 bins", "3 bins", "5 bins", "MDL")
    rules = itertools.product((5, 20), ("observed", "occurring"))
    for cut, (least, arity), alpha in itertools.product(cuts, rules, (0.01, 0.05)):
        test = GTest(
            alpha=alpha,
            samples_per_df=least,
            arity=arity,
            max_categories=2,
            **CUTS[cut],
        )
        yield f"G², {cut}, {least} per df, df {arity}, {alpha:g}", test


def iamb_settings():
    """All tests; Fisher's Z, which has no rule of reliability, with limits too."""
    for name, test in tests():
        limits = (2, 3, 5) if isinstance(test, FisherZTest) else (None,)
        for limit in limits:
            note = "" if limit is None else f", max_condition={limit}"
            selector = IAMB(test=test, max_condition=limit, max_seconds=SECONDS)
            yield name + note, selector


def mmmb_settings():
    """All tests, with sets of up to three, with the correction of 2006 and without.

    Fisher's Z with smaller sets as well.
    """
    for name, test in tests():
        limits = (3, 2, 1) if isinstance(test, FisherZTest) else (3,)
        for limit, symmetric in itertools.product(limits, (False, True)):
            note = ", symmetric" if symmetric else ""
            selector = MMMB(
                test=test,
                max_condition=limit,
                symmetric=symmetric,
                max_seconds=SECONDS,
            )
            yield f"{name}, max_condition={limit}{note}", selector


SETTINGS = {"fcbf": fcbf_settings, "iamb": iamb_settings, "mmmb": mmmb_settings}


def count(selector, data):
    """How many features it selects, and whether its search ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = selector.fit(data.X, data.y)
    return len(fitted.selected_), getattr(fitted, "is_complete_", True)


def main():
    """Print a table per method, and its best settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=list(SETTINGS))
    arguments = parser.parse_args()
    data = {name: load_dataset(name, SHARED / "data") for name in PRINTED["fcbf"]}
    for method in arguments.methods:
        began, off = time.process_time(), {}
        printed = PRINTED[method]
        print(f"\n| {method} | {' | '.join(printed)} |\n|---{'|---:' * len(printed)}|")
        print(f"| paper | {' | '.join(map(str, printed.values()))} |")
        for name, selector in SETTINGS[method]():
            found = {d: count(selector, data[d]) for d in printed}
            shown = [
                f"{n}{'' if is_done else ' (stopped)'}" for n, is_done in found.values()
            ]
            print(f"| {name} | {' | '.join(shown)} |", flush=True)
            off[name] = sum(abs(found[d][0] - printed[d]) for d in printed)
        least = min(off.values())
        best = "; ".join(name for name, total in off.items() if total == least)
        print(f"\nnearest, {least} off in all: {best}")
        print(f"{time.process_time() - began:.0f} CPU s")


if __name__ == "__main__":
    main()

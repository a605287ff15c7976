"""SAOLA against a pass over memory, scikit-learn's filters, and its own plain scan.

One thread, after warm-up. ``python -m benchmarks.core``.
"""

import subprocess
import sys
from functools import partial

import numpy as np
from sklearn.feature_selection import f_classif, mutual_info_classif

from benchmarks.timing import (
    SHARED,
    alternate,
    as_matrix,
    binary,
    continuous,
    latent_copies,
    one_entry_columns,
    shared_set,
    table,
)
from featstream import SAOLA, FisherZ, SymmetricalUncertainty
from featstream.selectors.saola.kept import Tuning


class PlainScan(SAOLA):
    """Every newcomer against every kept feature: no inverted index."""

    _tuning = Tuning(index_from=np.inf)


def dense_continuous():
    X, y = continuous()
    selector = SAOLA(measure=FisherZ(alpha=0.01))
    selector.fit(X[:, :5000], y)
    best = alternate(
        {
            "saola": lambda: selector.fit(X, y),
            "two threads": lambda: SAOLA(measure="fisher-z", n_jobs=2).fit(X, y),
            "sum": lambda: np.sum(X),
            "half": lambda: selector.fit(X[:, :50_000], y),
        }
    )
    best |= alternate({"f_classif": lambda: f_classif(X, y)}, rounds=2)
    return [
        ("SAOLA / np.sum", best["saola"] / best["sum"], "at most 3"),
        ("f_classif / SAOLA", best["f_classif"] / best["saola"], "at least 12"),
        (
            "f_classif / SAOLA with two threads",
            best["f_classif"] / best["two threads"],
            "at least 12",
        ),
        ("all features / half of them", best["saola"] / best["half"], "2, within 15%"),
        ("one thread / two", best["saola"] / best["two threads"], "at least 1.6"),
    ]


def by_row():
    rows = []
    fisher, su = FisherZ(alpha=0.01), SymmetricalUncertainty(threshold=0.003)
    for name, make, measure in (
        ("float32, few informative", partial(continuous, informative=0.001), fisher),
        ("float32, a fifth informative", continuous, fisher),
        ("uint8", binary, su),
    ):
        X, y = make()
        X = np.ascontiguousarray(X)
        one, two = SAOLA(measure=measure), SAOLA(measure=measure, n_jobs=2)
        one.fit(X[:, :5000], y)
        best = alternate(
            {
                "saola": partial(one.fit, X, y),
                "two threads": partial(two.fit, X, y),
                "sum": partial(np.sum, X),
            }
        )
        rows += [
            (f"{name}: SAOLA / np.sum", best["saola"] / best["sum"], ""),
            (f"{name}: one thread / two", best["saola"] / best["two threads"], ""),
        ]
    return rows


def dense_copies():
    X, y = latent_copies()
    selector = SAOLA(measure=FisherZ(alpha=0.01))
    selector.fit(X[:, :5000], y)
    best = alternate({"saola": lambda: selector.fit(X, y), "sum": lambda: np.sum(X)})
    n_kept = len(selector.selected_)
    return [
        (f"SAOLA / np.sum, {n_kept} kept", best["saola"] / best["sum"], "at most 3.5")
    ]


def dense_noise():
    X, y = continuous(informative=0.001)
    selector = SAOLA(measure=FisherZ(alpha=0.01))
    selector.fit(X[:, :5000], y)
    best = alternate({"saola": lambda: selector.fit(X, y), "sum": lambda: np.sum(X)})
    best |= alternate({"f_classif": lambda: f_classif(X, y)}, rounds=2)
    return [
        ("SAOLA / np.sum", best["saola"] / best["sum"], "at most 3"),
        ("f_classif / SAOLA", best["f_classif"] / best["saola"], "at least 12"),
    ]


def dense_binary():
    X, y = binary()
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.003))
    two = SAOLA(measure=SymmetricalUncertainty(threshold=0.003), n_jobs=2)
    selector.fit(X[:, :5000], y)
    best = alternate(
        {
            "saola": lambda: selector.fit(X, y),
            "two threads": lambda: two.fit(X, y),
            "sum": lambda: np.sum(X),
        }
    )
    return [
        ("SAOLA / np.sum", best["saola"] / best["sum"], "at most 3"),
        ("one thread / two", best["saola"] / best["two threads"], "at least 1.6"),
    ]


def sparse_overhead():
    X, y = one_entry_columns()
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.01))
    selector.fit(X[:, :1000], y)
    best = alternate({"saola": lambda: selector.fit(X, y)})
    return [("microseconds per feature, in total", best["saola"], "below 1")]


def plain_scans():
    rows = []
    for name, rounds in (("dorothea", 5), ("thrombin_train", 5), ("news20_bigram", 1)):
        found = shared_set(name)
        if found is None:
            print(f"(no {name}.npz in {SHARED / 'data'}: left out)")
            continue
        source, y = found
        traces = {}

        def run(selector, source=source, y=y, traces=traces):
            fitted = selector(measure="su").fit(source, y)
            traces[selector.__name__] = fitted.result_.trace.records.tobytes()

        run(SAOLA)
        best = alternate(
            {"saola": lambda: run(SAOLA), "plain": lambda: run(PlainScan)}, rounds
        )
        assert traces["SAOLA"] == traces["PlainScan"]
        wanted = "at least 10" if name == "news20_bigram" else "at least 0.9"
        ratio = best["plain"] / best["saola"]
        rows.append((f"{name}: plain scan / SAOLA, same trace", ratio, wanted))
    return rows


def dorothea_against_mutual_info():
    path = SHARED / "data" / "dorothea.npz"
    if not path.exists():
        return []
    from featstream.sources import open_npz

    data = open_npz(path)
    selector = SAOLA(measure="su")
    selector.fit(data.source, data.y)
    best = alternate({"saola": lambda: selector.fit(data.source, data.y)})
    part = as_matrix(next(iter(data.source.blocks())))[:, :2000]
    slow = alternate(
        {"mi": lambda: mutual_info_classif(part, data.y, discrete_features=True)}, 1
    )
    ratio = slow["mi"] * (100_000 / 2000) / best["saola"]
    return [("mutual_info_classif (2% of it, scaled) / SAOLA", ratio, "at least 100")]


def second_process():
    path = SHARED / "data" / "madelon.npz"
    if not path.exists():
        return []
    code = (
        "import time; began = time.perf_counter()\n"
        "from featstream import SAOLA\n"
        f"SAOLA().fit({str(path)!r})\n"
        "print(time.perf_counter() - began)\n"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        for _ in range(3)
    )
    return [("seconds to fit madelon in a new process", seconds, "at most 3")]


def main():
    table(dense_continuous(), "1,000 x 100,000 float32, a fifth informative (FisherZ)")
    table(dense_noise(), "the same, one in a thousand informative")
    table(dense_copies(), "the same, a fifth of it copies of 50 latent features")
    table(dense_binary(), "2,000 x 100,000 uint8, a fifth informative (SU)")
    table(by_row(), "the same, row-major")
    table(sparse_overhead(), "1,000,000 sparse columns of one entry (SU)")
    table(plain_scans(), "inverted index (SU, threshold 0)")
    table(dorothea_against_mutual_info(), "dorothea, 800 x 100,000 sparse (SU)")
    table(second_process(), "start-up")


if __name__ == "__main__":
    main()

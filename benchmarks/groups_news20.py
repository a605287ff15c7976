"""10,000 random groups on news20_bigram, against SAOLA on the same columns.

Training rows, symmetrical uncertainty, one thread, after warm-up.
``python -m benchmarks.groups_news20 [threshold]``. The default is 0.001. With 0,
the paper's, two thirds of the 1.45 million features are relevant, and every one of
them walks twice: along its group, and, if it is left, along what is kept.
"""

import sys

from benchmarks.timing import alternate, shared_set, table
from featstream import SAOLA, GroupSAOLA, SymmetricalUncertainty, random_groups

N_GROUPS = 10_000


def main(threshold=0.001, rounds=3):
    found = shared_set("news20_bigram")
    if found is None:
        sys.exit("news20_bigram is not there; set FEATSTREAM_SHARED")
    source, y = found
    groups = random_groups(source.n_features, N_GROUPS)
    measure = SymmetricalUncertainty(threshold=threshold)
    alone = SAOLA(measure=measure)
    grouped = {
        reading: GroupSAOLA(measure=measure, reading=reading)
        for reading in ("printed", "library")
    }
    functions = {"saola": lambda: alone.fit(source, y)}
    for reading, selector in grouped.items():
        functions[reading] = lambda s=selector: s.fit(source, y, groups=groups)
    if rounds > 1:
        alternate(functions, rounds=1)  # compiles
    best = alternate(functions, rounds)
    print(f"SAOLA: {best['saola']:.2f} s, {alone.result_}")
    for reading, selector in grouped.items():
        print(f"{reading}: {best[reading]:.2f} s, {selector.result_}")
    rows = [
        ("groups / SAOLA", best["printed"] / best["saola"], "at most 2"),
        ("groups, library's reading / SAOLA", best["library"] / best["saola"], "—"),
    ]
    table(rows, f"news20_bigram, {N_GROUPS:,} random groups, threshold {threshold:g}")


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:2]))

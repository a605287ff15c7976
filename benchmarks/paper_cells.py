"""How many cells of the paper's tables come out again, and every one that does not.

Reads what ``featstream paper run all -o OUT`` wrote, and counts the cells whose rows
are the paper's: those of the published training and test parts. Times are left out.
A score is equal within .005 and near within .02; a number of features or groups is
equal within half a feature or 2%, and near within 1.5 features or 10%.
``python -m benchmarks.paper_cells OUT [--all] [METHOD ...]`` also lists cells: of the
methods that are named, or with ``--all`` of every method.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

PUBLISHED = ("madelon", "dexter", "dorothea", "arcene", "hiva")
COUNTS = ("n_features", "n_groups")
GRADES = ("equal", "near", "different")
LIMITS = {"score": (0.005, 0.02), "count": (0.5, 1.5), "share": (0.02, 0.1)}


def grade(metric, ours, printed):
    """Which of `GRADES` a cell deserves."""
    gap = abs(ours - printed) - 1e-9
    for i, name in enumerate(GRADES[:2]):
        if metric in COUNTS:
            allowed = max(LIMITS["count"][i], LIMITS["share"][i] * printed)
        else:
            allowed = LIMITS["score"][i]
        if gap <= allowed:
            return name
    return GRADES[2]


def read_cells(folder):
    """The cells with both numbers, by table: dataset, method, classifier, metric."""
    for path in sorted(folder.glob("table*.csv"), key=lambda p: int(p.stem[5:])):
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                is_known = row["ours"] and row["paper"]
                is_published = row["dataset"] in PUBLISHED
                if is_known and is_published and row["metric"] != "seconds":
                    yield path.stem, row


def main(folder, *methods):
    tables, listed = {}, []
    for table, row in read_cells(Path(folder)):
        ours, printed = float(row["ours"]), float(row["paper"])
        found = grade(row["metric"], ours, printed)
        tables.setdefault(table, Counter())[found] += 1
        if row["method"] in methods or "--all" in methods:
            what = row["classifier"] or row["metric"]
            listed.append(
                (table, row["dataset"], row["method"], what, ours, printed, found)
            )
    print("| table | " + " | ".join(GRADES) + " |")
    print("| --- |" + " ---: |" * len(GRADES))
    total = sum(tables.values(), Counter())
    for table, counts in [*tables.items(), ("all", total)]:
        print(f"| {table} | " + " | ".join(str(counts[g]) for g in GRADES) + " |")
    if listed:
        print("\n| table | data | method | | ours | paper | |")
        print("| --- | --- | --- | --- | ---: | ---: | --- |")
    for *names, ours, printed, found in listed:
        print(f"| {' | '.join(names)} | {ours:.4f} | {printed:.4f} | {found} |")


if __name__ == "__main__":
    main(*sys.argv[1:])

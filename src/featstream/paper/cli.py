"""The command that runs the SAOLA paper again: ``featstream paper list | run``.

Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from featstream.paper.exhibits import Exhibit
    from featstream.paper.findings import Findings

_TIME_LIMIT = 60.0


def add_paper(paper: argparse.ArgumentParser) -> None:
    """Add the actions of the command and their flags."""
    paper.description = (
        "Run what the SAOLA paper's tables and figures show, and put it next to the "
        "paper's own numbers."
    )
    actions = paper.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list",
        help="list the tables and figures, and which data they need",
        description="List the tables and figures, and which data they need.",
    )
    _add_data(listing)
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)

    run = actions.add_parser(
        "run",
        help="run tables and figures",
        description="Run tables and figures, and write each next to the paper's "
        "numbers. The same command continues where it was interrupted.",
    )
    run.add_argument(
        "exhibits",
        nargs="+",
        metavar="TABLE|FIGURE|all",
        help="as printed (table3, figure14), by label (tb3, fig16), or all",
    )
    _add_data(run)
    run.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("paper"),
        metavar="OUT",
        help="folder for the results (default: paper); what is done is kept there",
    )
    run.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="processes at a time (default: 1, which measures time best)",
    )
    run.add_argument(
        "--time-limit",
        type=float,
        default=_TIME_LIMIT,
        metavar="S",
        help="seconds for a selection, and for each classifier (default: "
        f"{_TIME_LIMIT:g})",
    )
    run.add_argument(
        "--memory-limit", metavar="SIZE", help="memory of each process (default: none)"
    )
    run.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    run.add_argument(
        "--quick", action="store_true", help="three repetitions, for a first look"
    )
    run.add_argument("--json", action="store_true", help="print JSON")
    run.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    run.set_defaults(run=_run)


def _add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--data",
        metavar="DIR",
        help="folder of the data sets (default: the variable FEATSTREAM_DATA)",
    )


def _list(arguments: argparse.Namespace) -> int:
    from featstream.errors import ParameterError
    from featstream.paper.datasets import available_datasets, files_of_dataset
    from featstream.paper.exhibits import exhibits

    try:
        present = available_datasets(arguments.data)
    except ParameterError:  # no folder is named, which is no reason not to list
        present = ()
    wanted = dict.fromkeys(d for e in exhibits() for d in e.datasets)
    missing = {d: files_of_dataset(d) for d in wanted if d not in present}
    if arguments.json:
        listed = [_facts(e, present) for e in exhibits()]
        facts = {"exhibits": listed, "data": list(present), "missing": missing}
        print(json.dumps(facts, indent=2))
        return 0
    print(f"{'name':<10}{'label':<14}{'§':<5}{'data':<7}what it compares")
    for exhibit in exhibits():
        here = sum(d in present for d in exhibit.datasets)
        print(
            f"{exhibit.name:<10}{exhibit.label:<14}{exhibit.section:<5}"
            f"{f'{here}/{len(exhibit.datasets)}':<7}{exhibit.title}"
        )
    print(f"\ndata sets here: {', '.join(present) or 'none'}")
    if missing:
        print("data sets that are not here, and the files to put there:")
        for name, files in missing.items():
            print(f"  {name}: {files}")
    return 0


def _facts(exhibit: Exhibit, present: tuple[str, ...]) -> dict[str, Any]:
    return {
        "name": exhibit.name,
        "label": exhibit.label,
        "section": exhibit.section,
        "title": exhibit.title,
        "methods": list(exhibit.methods),
        "classifiers": list(exhibit.classifiers),
        "design": exhibit.design,
        "datasets": list(exhibit.datasets),
        "datasets_not_here": [d for d in exhibit.datasets if d not in present],
    }


def _run(arguments: argparse.Namespace) -> int:
    from featstream.paper.pages import headline, write_paper
    from featstream.paper.study import PaperStudy

    study = PaperStudy(
        _wanted(arguments.exhibits),
        arguments.data,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        memory_limit=arguments.memory_limit,
        is_quick=arguments.quick,
    )
    _claim_folder(arguments.output)
    began = time.monotonic()
    try:
        findings = study.run(
            arguments.output / "work",
            n_jobs=arguments.jobs,
            progress=not arguments.quiet,
        )
    except KeyboardInterrupt:
        command = shlex.join(["featstream", *arguments.command_line])
        print(
            f"featstream: interrupted; what is done is kept. To continue: {command}",
            file=sys.stderr,
        )
        return 130
    written = write_paper(
        findings,
        study.exhibits,
        arguments.output,
        provenance=_provenance(arguments, findings, time.monotonic() - began),
    )
    if arguments.json:
        facts = {
            "written": [str(path) for path in written.paths],
            "not_shown": written.obstacles,
            "data": list(findings.about),
            "unreadable": findings.unreadable,
        }
        print(json.dumps(facts, indent=2))
    else:
        top = headline(findings)
        if top:
            print(f"SAOLA on the published training and test parts\n\n{top}\n")
        for name, why in written.obstacles.items():
            print(f"{name}: nothing to show, {why}")
        print(
            f"written: {arguments.output / 'README.md'} and {len(written.paths) - 1} "
            "more"
        )
    for name, reason in findings.unreadable.items():
        print(f"featstream: error: {name} is left out. {reason}", file=sys.stderr)
    if not findings.results and not findings.unreadable:
        print(
            "featstream: error: none of the data sets is there. featstream paper list "
            "says which files to put there.",
            file=sys.stderr,
        )
    return 0 if findings.results and not findings.unreadable else 1


def _claim_folder(folder: Path) -> None:
    """Refuse a folder with files that an earlier run has not made."""
    from featstream.errors import ParameterError, printable

    others = sorted(path.name for path in folder.glob("*"))
    if others and not (folder / "work").is_dir():
        raise ParameterError(
            f"{printable(folder, limit=400)} holds other files, such as "
            f"{printable(others[0])}. Choose a folder that is new or empty with -o."
        )
    (folder / "work").mkdir(parents=True, exist_ok=True)


def _wanted(names: list[str]) -> list[Exhibit]:
    """The tables and figures asked for, in the paper's order, each once."""
    from featstream.paper.exhibits import exhibits, find

    if "all" in names:
        return list(exhibits())
    found = {find(name) for name in names}
    return [exhibit for exhibit in exhibits() if exhibit in found]


def _provenance(
    arguments: argparse.Namespace, findings: Findings, seconds: float
) -> str:
    """How the results were made, as recorded with any one of them."""
    for result in findings.results.values():
        facts = result.about["provenance"]
        versions = ", ".join(f"{name} {v}" for name, v in facts["versions"].items())
        return (
            f"`featstream paper run {' '.join(arguments.exhibits)}`, {facts['date']}, "
            f"{facts['platform']}, {facts['n_cores']} cores, {facts['n_jobs']} cells "
            f"at a time, seed {arguments.seed}; {seconds / 60:.0f} min, less what was "
            f"saved before; {versions}."
        )
    return ""

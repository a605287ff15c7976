"""The command that runs the SAOLA paper again: ``featstream paper list | run``.

Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from featstream.cli.main import JSON, QUIET, add_flags, answer
from featstream.errors import ParameterError, printable

if TYPE_CHECKING:
    from featstream.paper.study import Findings

_DATA = "--data DIR  folder of the data sets (default: the variable FEATSTREAM_DATA)"
_RUN = """
exhibits TABLE|FIGURE|all...  as printed (table3, figure14), by label (tb3, fig16), or
    all
-o, --output FOLDER  folder for the results (default: paper); what is done is kept there
--jobs N  processes at a time (default: 1, which measures time best)
--time-limit S  seconds for a selection, and for each classifier (default: 60)
--memory-limit SIZE  memory of each process (default: none)
--seed N  default: 0
--quick  three repetitions, for a first look
"""


def add_paper(paper: argparse.ArgumentParser) -> None:
    """Add the actions of the command and their flags."""
    paper.description = (
        "Run what the SAOLA paper's tables and figures show, and put it next to the "
        "paper's own numbers."
    )
    actions = paper.add_subparsers(title="actions", metavar="ACTION", required=True)
    about = "list the tables and figures, and which data they need"
    listing = actions.add_parser("list", help=about, description=f"L{about[1:]}.")
    add_flags(listing, _DATA, JSON)
    listing.set_defaults(run=_list)
    run = actions.add_parser(
        "run",
        help="run tables and figures",
        description="Run tables and figures, and write each next to the paper's "
        "numbers. The same command continues where it was interrupted.",
    )
    add_flags(run, _RUN, _DATA, JSON, QUIET)
    run.set_defaults(run=_run, output=Path("paper"), jobs=1, time_limit=60.0, seed=0)
    run.set_defaults(keeps_cells=True)


def _list(arguments: argparse.Namespace) -> int:
    from featstream.paper.datasets import available_datasets, files_of_dataset
    from featstream.paper.tables import exhibits

    try:
        present = available_datasets(arguments.data)
    except ParameterError:  # no folder is named, which is no reason not to list
        present = ()
    wanted = dict.fromkeys(d for e in exhibits() for d in e.datasets)
    missing = {d: files_of_dataset(d) for d in wanted if d not in present}
    lines = [f"{'name':<10}{'label':<14}{'§':<5}{'data':<7}what it compares"]
    listed = []
    for e in exhibits():
        absent = [d for d in e.datasets if d not in present]
        listed.append({"name": e.name, **asdict(e), "datasets_not_here": absent})
        here = f"{len(e.datasets) - len(absent)}/{len(e.datasets)}"
        lines.append(f"{e.name:<10}{e.label:<14}{e.section:<5}{here:<7}{e.title}")
    lines.append(f"\ndata sets here: {', '.join(present) or 'none'}")
    if missing:
        lines.append("data sets that are not here, and the files to put there:")
        lines += [f"  {name}: {files}" for name, files in missing.items()]
    facts = {"exhibits": listed, "data": list(present), "missing": missing}
    return answer(arguments, facts, *lines)


def _run(arguments: argparse.Namespace) -> int:
    from featstream.paper.pages import headline, write_paper
    from featstream.paper.study import PaperStudy
    from featstream.paper.tables import exhibits, find_exhibit

    chosen = set(exhibits())
    if "all" not in arguments.exhibits:
        chosen = {find_exhibit(name) for name in arguments.exhibits}
    study = PaperStudy(
        [exhibit for exhibit in exhibits() if exhibit in chosen],
        arguments.data,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        memory_limit=arguments.memory_limit,
        is_quick=arguments.quick,
    )
    _claim_folder(arguments.output)
    began, work = time.monotonic(), arguments.output / "work"
    findings = study.run(work, n_jobs=arguments.jobs, progress=not arguments.quiet)
    provenance = _provenance(arguments, findings, time.monotonic() - began)
    written = write_paper(findings, study.exhibits, arguments.output, provenance)
    facts = {
        "written": [str(path) for path in written.paths],
        "not_shown": written.obstacles,
        "data": list(findings.about),
        "unreadable": findings.unreadable,
    }
    lines = [f"{name}: nothing to show, {w}" for name, w in written.obstacles.items()]
    if top := headline(findings):
        lines.insert(0, f"SAOLA on the published training and test parts\n\n{top}\n")
    n_more = len(written.paths) - 1
    lines.append(f"written: {arguments.output / 'README.md'} and {n_more} more")
    answer(arguments, facts, *lines)
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
    others = sorted(path.name for path in folder.glob("*"))
    if others and not (folder / "work").is_dir():
        raise ParameterError(
            f"{printable(folder, limit=400)} holds other files, such as "
            f"{printable(others[0])}. Choose a folder that is new or empty with -o."
        )
    (folder / "work").mkdir(parents=True, exist_ok=True)


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

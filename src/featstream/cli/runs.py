"""The commands that work on run folders: ``resume | update | explain``.

Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featstream.cli.groups import add_group_flags, read_told_groups, tell_groups
from featstream.cli.options import (
    OPTIONS,
    add_data_options,
    chosen_options,
    found_again,
)

if TYPE_CHECKING:
    from featstream.checkpoint import Checkpoint
    from featstream.result import SelectionResult
    from featstream.sources import Dataset

__all__ = [
    "add_run_commands",
    "describe_run",
    "print_interruption",
    "print_result",
    "run_checkpoint",
]

_SHOWN = 20


def add_run_commands(commands: Any) -> None:
    """Add the parsers of the commands."""
    resume = commands.add_parser(
        "resume",
        help="go on with an interrupted run",
        description="Go on with an interrupted run, where it was last saved.",
    )
    _add_run(resume)
    resume.add_argument(
        "--data", metavar="FILE", help="where the data are, if they have moved"
    )
    add_group_flags(resume)
    resume.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    resume.set_defaults(run=_resume)

    update = commands.add_parser(
        "update",
        help="take more features into a run",
        description="Take features that arrive later into a finished run. Samples "
        "must be the same, in the same order.",
    )
    _add_run(update)
    update.add_argument("data", metavar="FILE", help="the features, as for select")
    add_data_options(update)
    add_group_flags(update)
    update.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    update.set_defaults(run=_update)

    explain = commands.add_parser(
        "explain",
        help="say why a feature or a group was kept or dropped",
        description="Say why features or groups were kept or dropped in a run.",
    )
    _add_run(explain)
    explain.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="a feature's name, or a group's label",
    )
    explain.set_defaults(run=_explain)


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("output", type=Path, metavar="RUN", help="folder of the run")
    command.add_argument("--json", action="store_true", help="print JSON")


def run_checkpoint(
    folder: Path,
    found: dict[str, Any],
    command: list[str],
    groups: dict[str, Any] | None = None,
) -> Checkpoint:
    """Where a run is saved, and how its data are found again."""
    from featstream.checkpoint import Checkpoint

    if groups is not None:
        found = {**found, "groups": groups}
    return Checkpoint(folder, data=found, command=["featstream", *command])


def print_interruption(arguments: argparse.Namespace) -> None:
    """Say how to go on after a Ctrl-C."""
    folder = getattr(arguments, "output", None)
    if folder is not None and (folder / "run.json").exists():
        command = shlex.join(["featstream", "resume", str(folder)])
        print(f"featstream: interrupted; to go on: {command}", file=sys.stderr)
    else:
        print("featstream: interrupted", file=sys.stderr)


def _open_run(arguments: argparse.Namespace) -> Any:
    """The selector of a run to which features arrive."""
    import featstream
    from featstream.errors import RunError
    from featstream.selectors.base import OnlineSelector

    selector = featstream.resume(arguments.output)
    if not isinstance(selector, OnlineSelector):
        raise RunError(
            f"{arguments.output} is a run of {type(selector).__name__}, which learns "
            "from rows. Go on in Python, with featstream.resume and partial_fit."
        )
    return selector


def _resume(arguments: argparse.Namespace) -> int:
    from featstream.errors import RunError
    from featstream.selectors.resuming import begin_again

    selector = begin_again(arguments.output) or _open_run(arguments)
    rest = selector._run.unfinished
    if rest is not None:
        told = rest.get("data")
        told = told if isinstance(told, dict) else {}
        path, target = arguments.data or told.get("path"), told.get("target")
        options = {name: told[name] for name in OPTIONS if name in told}
        if not isinstance(path, str) or not all(
            isinstance(value, str | None) for value in (target, *options.values())
        ):
            raise RunError(
                "The run does not say where its data are. Name them with --data."
            )
        dataset = _open_like(selector, path, target, options)
        groups = _groups_of(arguments, selector, rest) or told.get("groups")
        if groups is None and "fingerprint" in (rest.get("groups") or {}):
            groups = {}  # an error: there are groups, and nobody says which
        found = found_again(path, target, options)
        _take_in(arguments, selector, dataset, found, groups)
    print_result(selector.result_, as_json=arguments.json)
    return 0


def _update(arguments: argparse.Namespace) -> int:
    from featstream.errors import ParameterError, RunError

    selector = _open_run(arguments)
    if selector._run.unfinished is not None:
        raise RunError(
            "The run is not done with its own data yet. Go on with them first: "
            f"featstream resume {shlex.quote(str(arguments.output))}"
        )
    groups = getattr(selector.result_, "groups", None)
    told = _groups_of(arguments, selector, {"begin": selector.n_seen_})
    if (told is None) != (groups is None):
        how = "Leave the groups out."
        if groups is not None:
            how = (
                "Say how these features fall into groups: --groups, --group-size or "
                "--group-by."
            )
        raise ParameterError(f"The run is one of {type(selector).__name__}. {how}")
    target = arguments.target
    known = [s.get("data") for s in selector._run.sources]
    names = [d.get("target") for d in known if isinstance(d, dict)]
    options = chosen_options(arguments)
    dataset = _open_like(
        selector, arguments.data, target, options, [n for n in names if n]
    )
    found = found_again(arguments.data, target, options)
    _take_in(arguments, selector, dataset, found, told)
    print_result(selector.result_, as_json=arguments.json)
    return 0


def _groups_of(
    arguments: argparse.Namespace, selector: Any, source: dict[str, Any]
) -> dict[str, Any] | None:
    """The groups that the flags describe, for a source of a run."""
    groups = getattr(selector.result_, "groups", None)
    n_before = 0 if groups is None else sum(groups.ends <= source["begin"])
    return tell_groups(arguments, int(n_before))


def _take_in(
    arguments: argparse.Namespace,
    selector: Any,
    dataset: Dataset,
    found: dict[str, Any],
    told: Any,
) -> None:
    """Let a selector consume data, and its run remember where they are."""
    how = {} if told is None else {"groups": read_told_groups(told, dataset)}
    saving = run_checkpoint(arguments.output, found, arguments.command_line, told)
    selector.consume(
        dataset.source, checkpoint=saving, progress=not arguments.quiet, **how
    )


def _open_like(
    selector: Any,
    path: str,
    target: str | None,
    options: dict[str, Any],
    target_names: list[str] | None = None,
) -> Dataset:
    """Open data whose target, if they have one, is that of the run.

    With ``target_names``, a table need not have one: only a column of such a name
    is taken for it.
    """
    from featstream.selectors.description import fingerprint_of_target
    from featstream.selectors.sameness import refuse_other_target
    from featstream.sources import open_dataset, open_features

    if target_names is not None and target is None:
        dataset = open_features(path, target_names, **options)
    else:
        dataset = open_dataset(path, target, **options)
    if not hasattr(selector, "_stream"):  # the run stopped before its first feature
        selector.start(dataset.y)
    if dataset.y is not None:
        found = {
            "n_samples": len(dataset.y),
            "y_fingerprint": fingerprint_of_target(dataset.y),
        }
        refuse_other_target(selector._facts(), found, "The run")
    return dataset


def _explain(arguments: argparse.Namespace) -> int:
    selector = _open_run(arguments)
    told = {name: _reason(selector, name) for name in arguments.names}
    if arguments.json:
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(told.values()))
    return 0


def _reason(selector: Any, name: str) -> str:
    """Why a feature was kept or dropped; or a group, whose label may be a number."""
    from featstream.errors import DataError

    try:
        return str(selector.explain(name))
    except DataError:
        groups = getattr(selector.result_, "groups", None)
        for label in () if groups is None else groups.labels:
            if str(label) == name:
                return str(selector.explain(group=label))
        raise


def describe_run(arguments: argparse.Namespace) -> int:
    """Print what a run folder says of itself."""
    from featstream.checkpoint import RunFolder
    from featstream.selectors.description import load_run

    facts = load_run(RunFolder(arguments.data)).description
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return 0
    is_done = all(source["is_done"] for source in facts["sources"])
    chosen = ", ".join(f"{k}={v}" for k, v in facts["parameters"].items())
    print(
        f"{arguments.data}: a run of {facts['selector']} "
        f"({'done' if is_done else 'interrupted'}), generation {facts['generation']}, "
        f"saved {facts.get('saved_at')} by featstream {facts.get('featstream')}"
    )
    if facts.get("arrives") == "rows":
        print(
            f"{facts.get('n_kept')} kept of {facts['n_features']:,} features, "
            f"{facts['n_seen']:,} samples seen"
        )
    elif facts["generation"] == 0:
        print("stopped while its data were being read: no feature has been seen")
    else:
        print(
            f"{facts.get('n_kept')} kept of {facts['n_seen']:,} features seen, "
            f"{facts['n_samples']:,} samples, measure {facts['measure']}, "
            f"{facts['seconds']:.2f} s"
        )
    if "n_groups" in facts:
        print(f"{facts.get('n_groups_kept')} kept of {facts['n_groups']} groups seen")
    print(f"parameters: {chosen}")
    for source in facts["sources"]:
        data, groups = source.get("data") or {}, source.get("groups") or {}
        told = f", groups: {groups.get('kind')}" if groups else ""
        print(
            f"source: {data.get('path', source.get('kind'))}, from feature "
            f"{source['begin']:,} on{'' if source['is_done'] else ', not done'}{told}"
        )
    if facts["command"]:
        print(f"command: {shlex.join(facts['command'])}")
    if not is_done:
        print(f"to go on: {shlex.join(['featstream', 'resume', str(arguments.data)])}")
    return 0


def print_result(result: SelectionResult, *, as_json: bool) -> None:
    """A few lines about a result for people, or all of it for programs."""
    if as_json:
        print(json.dumps(result.to_dict(), indent=2))
        return
    counts = result.trace.counts()
    lines = [
        f"{len(result):,} of {result.n_features:,} features selected "
        f"({result.selector}, {result.measure}, {result.n_samples:,} samples, "
        f"{result.seconds:.2f} s)",
        f"dropped: {counts['irrelevant']:,} irrelevant, {counts['redundant']:,} "
        f"redundant, {counts['displaced']:,} displaced by better ones",
    ]
    groups = getattr(result, "groups", None)
    if groups is not None:
        fates = groups.counts()
        lines.append(
            f"groups: {fates['kept']:,} of {len(groups):,} selected; "
            f"{fates['irrelevant']:,} irrelevant, {fates['redundant']:,} redundant, "
            f"{fates['displaced']:,} displaced"
        )
    if len(result):
        ranked = result.ranked()
        width = max(len("feature"), *(len(name) for name, _, _ in ranked[:_SHOWN]))
        lines += ["", f"{'feature':<{width}}  {'index':>9}  relevance"]
        lines += [
            f"{name:<{width}}  {index:>9}  {score:.6f}"
            for name, index, score in ranked[:_SHOWN]
        ]
        if len(ranked) > _SHOWN:
            n_more = len(ranked) - _SHOWN
            lines.append(f"... and {n_more:,} more (all with --json or -o)")
    print("\n".join(lines))

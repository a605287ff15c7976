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

from featstream.cli_data import (
    OPTIONS,
    add_data_options,
    chosen_options,
    found_again,
)

if TYPE_CHECKING:
    from featstream.checkpoint import Checkpoint
    from featstream.result import SelectionResult
    from featstream.selectors.single import StreamSelector
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
    update.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    update.set_defaults(run=_update)

    explain = commands.add_parser(
        "explain",
        help="say why a feature was kept or dropped",
        description="Say why features were kept or dropped in a run.",
    )
    _add_run(explain)
    explain.add_argument("names", nargs="+", metavar="NAME", help="a feature's name")
    explain.set_defaults(run=_explain)


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("output", type=Path, metavar="RUN", help="folder of the run")
    command.add_argument("--json", action="store_true", help="print JSON")


def run_checkpoint(
    folder: Path, found: dict[str, Any], command: list[str]
) -> Checkpoint:
    """Where a run is saved, and how its data are found again."""
    from featstream.checkpoint import Checkpoint

    return Checkpoint(folder, data=found, command=["featstream", *command])


def print_interruption(arguments: argparse.Namespace) -> None:
    """Say how to go on after a Ctrl-C."""
    folder = getattr(arguments, "output", None)
    if folder is not None and (folder / "run.json").exists():
        command = shlex.join(["featstream", "resume", str(folder)])
        print(f"featstream: interrupted; to go on: {command}", file=sys.stderr)
    else:
        print("featstream: interrupted", file=sys.stderr)


def _resume(arguments: argparse.Namespace) -> int:
    import featstream
    from featstream.errors import RunError

    selector = featstream.resume(arguments.output)
    link = selector._run
    assert link is not None
    rest = link.unfinished
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
        found = found_again(path, target, options)
        saving = run_checkpoint(arguments.output, found, arguments.command_line)
        selector.consume(
            dataset.source, checkpoint=saving, progress=not arguments.quiet
        )
    print_result(selector.result_, as_json=arguments.json)
    return 0


def _update(arguments: argparse.Namespace) -> int:
    import featstream
    from featstream.errors import RunError

    selector = featstream.resume(arguments.output)
    link = selector._run
    assert link is not None
    if link.unfinished is not None:
        raise RunError(
            "The run is not done with its own data yet. Go on with them first: "
            f"featstream resume {shlex.quote(str(arguments.output))}"
        )
    target = arguments.target
    known = [s.get("data") for s in link.sources]
    names = [d.get("target") for d in known if isinstance(d, dict)]
    options = chosen_options(arguments)
    dataset = _open_like(
        selector, arguments.data, target, options, [n for n in names if n]
    )
    found = found_again(arguments.data, target, options)
    saving = run_checkpoint(arguments.output, found, arguments.command_line)
    selector.consume(dataset.source, checkpoint=saving, progress=not arguments.quiet)
    print_result(selector.result_, as_json=arguments.json)
    return 0


def _open_like(
    selector: StreamSelector,
    path: str,
    target: str | None,
    options: dict[str, Any],
    target_names: list[str] | None = None,
) -> Dataset:
    """Open data whose target, if they have one, is that of the run.

    With ``target_names``, a table need not have one: only a column of such a name
    is taken for it.
    """
    from featstream.selectors.recording import refuse_other_target
    from featstream.selectors.state import describe_selector, fingerprint_of_target
    from featstream.sources import open_dataset, open_features

    if target_names is not None and target is None:
        dataset = open_features(path, target_names, **options)
    else:
        dataset = open_dataset(path, target, **options)
    if dataset.y is not None:
        found = {
            "n_samples": len(dataset.y),
            "y_fingerprint": fingerprint_of_target(dataset.y),
        }
        refuse_other_target(describe_selector(selector), found, "The run")
    return dataset


def _explain(arguments: argparse.Namespace) -> int:
    import featstream

    selector = featstream.resume(arguments.output)
    told = {name: selector.explain(name) for name in arguments.names}
    if arguments.json:
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(told.values()))
    return 0


def describe_run(arguments: argparse.Namespace) -> int:
    """Print what a run folder says of itself."""
    from featstream.checkpoint import RunFolder
    from featstream.selectors.state import load_run

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
    print(
        f"{facts.get('n_kept')} kept of {facts['n_seen']:,} features seen, "
        f"{facts['n_samples']:,} samples, measure {facts['measure']}, "
        f"{facts['seconds']:.2f} s"
    )
    print(f"parameters: {chosen}")
    for source in facts["sources"]:
        data = source.get("data") or {}
        print(
            f"source: {data.get('path', source.get('kind'))}, from feature "
            f"{source['begin']:,} on{'' if source['is_done'] else ', not done'}"
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

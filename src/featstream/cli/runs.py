"""The commands that work on run folders: ``resume | update | explain | report``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from featstream.cli.main import (
    GROUPS,
    JSON,
    OPTIONS,
    QUIET,
    READING,
    Location,
    adder,
    answer,
    groups_from_flags,
)
from featstream.cli.select import about_target, print_result, result_of
from featstream.errors import (
    DataError,
    FeatstreamError,
    FeatstreamWarning,
    MissingFileError,
    ParameterError,
    RunError,
    printable,
)

_RUN = "output RUN  folder of the run"
_MOVED = """
--data FILE  where the data are, if they have moved
--drop-unfinished  go back to what the run was before the file that it stopped in
"""
_MORE = "data FILE  the features, as for select"
_NAMES = """
names NAME...  name or arrival (0 for the first) of a feature, or label of a group
"""
_REPORT = """
folder FOLDER  what select -o or compare -o has written
-o, --output FILE  the report (default: report.html in the folder)
"""


def _resume(arguments: argparse.Namespace) -> int:
    """Continue an interrupted run from where it was last saved."""
    import featstream
    from featstream.runs.session import begin_again, write_selection

    path = arguments.output
    if arguments.drop_unfinished:
        if all(source["is_done"] for source in _sources_in(path)):
            warnings.warn(
                f"{printable(Path(path))} is finished: there is nothing to drop.",
                FeatstreamWarning,
                stacklevel=2,
            )
        selector = featstream.resume(path, drop_unfinished=True)
    else:
        selector = begin_again(path) or featstream.resume(path)
    if not hasattr(selector, "consume"):  # it learns from rows, and has seen them all
        return print_result(selector, None, as_json=arguments.json)
    rest = selector._run.unfinished
    if rest is not None:
        saved = rest.get("data")
        saved = saved if isinstance(saved, dict) else {}
        path, target = arguments.data or saved.get("path"), saved.get("target")
        options = {name: saved[name] for name in OPTIONS if name in saved}
        found = (target, *options.values())
        is_plain = all(isinstance(value, str | int | list | None) for value in found)
        if not isinstance(path, str) or not is_plain:
            raise RunError(
                "The run does not say where its data are. Name them with --data."
            )
        n_groups = _n_groups_before(selector, rest["begin"])
        groups = groups_from_flags(arguments, n_groups) or saved.get("groups")
        if not isinstance(groups, dict) and "fingerprint" in (rest.get("groups") or {}):
            groups = {}  # an error: the run has groups, and no flag names them
        location = Location(path, target, options, groups)
        dataset = _open(location, selector) if rest["begin"] else location.open()
        _consume(arguments, selector, location, dataset)
    write_selection(selector)
    return _print(selector, arguments)


def _sources_in(path: str) -> list[dict[str, Any]]:
    """What a run folder says of the sources of its run."""
    from featstream.runs.folder import RunFolder
    from featstream.runs.state import load_run

    return list(load_run(RunFolder(path)).description["sources"])


add_resume = adder(_resume, _RUN, JSON, _MOVED, QUIET, GROUPS)


def _update(arguments: argparse.Namespace) -> int:
    """Add features that arrive later to a finished run.

    The samples must be the same, in the same order.
    """
    import featstream
    from featstream.runs.session import write_selection

    selector = featstream.resume(arguments.output)
    if not hasattr(selector, "consume"):
        raise RunError(
            f"{arguments.output} is a run of {type(selector).__name__}, which learns "
            "from rows. Continue in Python, with featstream.resume and partial_fit."
        )
    if selector._run.unfinished is not None:
        again = f"featstream resume {shlex.quote(str(arguments.output))}"
        hint = ""
        if selector._run.folder.has_finished:
            hint = f". Or drop what it has taken of them: {again} --drop-unfinished"
        raise RunError(
            f"The run is not done with its own data yet. Resume it first: {again}{hint}"
        )
    arguments.n_sources = len(selector._run.sources)
    n_groups = _n_groups_before(selector, selector.n_seen_)
    location = Location.from_flags(arguments, n_groups)
    has_groups = hasattr(selector.result_, "groups")
    if has_groups != (location.groups is not None):
        hint = "Leave the groups out."
        if has_groups:
            hint = (
                "Say how these features fall into groups: --groups, --group-size or "
                "--group-by."
            )
        raise ParameterError(f"The run is one of {type(selector).__name__}. {hint}")
    dataset = _open(location, selector)
    begin = _taken_before(selector, location, dataset)
    if begin is None:
        _consume(arguments, selector, location, dataset)
    else:
        n_features = dataset.source.n_features or 0
        warnings.warn(
            f"{printable(Path(location.path))} is in the run already, as features "
            f"{begin:,} to {begin + n_features - 1:,}: nothing was added. If its "
            "features are others now, give the file another name.",
            FeatstreamWarning,
            stacklevel=2,
        )
        write_selection(selector)
    return _print(selector, arguments)


add_update = adder(_update, _RUN, JSON, _MORE, QUIET, READING, GROUPS)


def _open(location: Location, selector: Any) -> Any:
    """Open what is added to a run; a table need not have a target."""
    from featstream.sources import open_features
    from featstream.sources.combined import without_identifier

    if location.target is not None:
        dataset = location.open()
    else:
        names = [data.get("target") for data in _data_of(selector)]
        known = [name for name in names if name]
        dataset = open_features(location.path, known, **location.options)
    samples = selector._stream.samples
    if samples is None or samples.column is None:
        return dataset
    source = without_identifier(dataset.source, samples.column)
    return replace(dataset, source=source, names=getattr(source, "names", None))


def _taken_before(selector: Any, location: Location, dataset: Any) -> int | None:
    """The first feature of a file, if the run has consumed the file before.

    So that a command which was killed at its very end can be given again.
    """
    from featstream.runs.state import describe_source, is_same_source

    path, found = os.path.abspath(location.path), None
    for source in selector._run.sources:
        if (source.get("data") or {}).get("path") == path:
            found = found or describe_source(dataset.source)
            if is_same_source(source, found):
                return int(source["begin"])
    return None


def _n_groups_before(selector: Any, begin: int) -> int:
    """How many groups ended before the feature that arrived at a position."""
    groups = getattr(getattr(selector, "result_", None), "groups", None)
    return 0 if groups is None else int(sum(groups.ends <= begin))


def _consume(
    arguments: argparse.Namespace, selector: Any, location: Location, dataset: Any
) -> None:
    """Let a selector consume data, whose target, if any, must be that of the run."""
    from featstream.runs.session import REFUSED
    from featstream.runs.state import fingerprint_of_target, refuse_other_target

    if not hasattr(selector, "_stream"):  # the run stopped before its first feature
        selector.start(dataset.y)
    if dataset.y is not None:
        fingerprint = fingerprint_of_target(dataset.y)
        found = {"n_samples": len(dataset.y), "y_fingerprint": fingerprint}
        refuse_other_target(selector._facts(), found, "The run")
    run, groups = location.checkpoint(arguments, dataset), location.read_groups(dataset)
    options = {"checkpoint": run, "progress": not arguments.quiet}
    try:
        selector.consume(dataset.source, **options, **groups)
    except REFUSED:
        run = selector._run
        if selector.n_seen_ and run is not None and run.unfinished is None:
            path = printable(Path(location.path))
            unchanged = f"the run is as it was before {path}"
            print(f"featstream: {unchanged}, which is refused", file=sys.stderr)
        raise


def _data_of(selector: Any) -> list[dict[str, Any]]:
    """What a run says about where its data are."""
    found = [source.get("data") for source in selector._run.sources]
    return [data for data in found if isinstance(data, dict)]


def _print(selector: Any, arguments: argparse.Namespace) -> int:
    """Print the result of a run, with the target that its data were said to have."""
    names = [name for data in _data_of(selector) if (name := data.get("target_name"))]
    y, is_numeric = selector._stream.y, selector._has_numeric_target
    about = about_target(y, next(iter(names), None), is_numeric=is_numeric)
    return print_result(selector, about, as_json=arguments.json)


def how_to_continue(arguments: argparse.Namespace) -> str:
    """What a Ctrl-C has left of a run, and what to type."""
    from featstream.runs.folder import RunFolder

    folder = str(arguments.output)
    again = f"to continue: {shlex.join(['featstream', 'resume', folder])}"
    try:
        facts = RunFolder(folder).load().description
        sources, n_seen = facts["sources"], facts["n_seen"]
        last = sources[-1] if sources else {"is_done": True}
        if last["is_done"]:
            if len(sources) > getattr(arguments, "n_sources", 0):
                return "; the run is complete"
            name = printable(Path(arguments.data))
            command = shlex.join(["featstream", *arguments.command_line])
            return (
                f"; nothing of {name} was taken, and the run is as it was. To begin "
                f"again: {command}"
            )
        n_taken, n_features = n_seen - last["begin"], last.get("n_features")
    except (FeatstreamError, LookupError, TypeError):
        return f"; {again}"
    of = "" if n_features is None else f" of {n_features:,}"
    taken = f"{n_taken:,}{of} features are taken" if n_taken else "none is taken yet"
    back = " (or drop them: add --drop-unfinished)" if last["begin"] else ""
    return f"; {taken}; {again}{back}"


def _explain(arguments: argparse.Namespace) -> int:
    """Say why features or groups were kept or dropped in a run."""
    import featstream

    selector = featstream.resume(arguments.output)
    reasons = {name: _reason(selector, name) for name in arguments.names}
    return answer(arguments, reasons, *reasons.values())


add_explain = adder(_explain, _RUN, JSON, _NAMES)


def _reason(selector: Any, name: str) -> str:
    """Why a feature or group was kept or not, by its name, label or arrival."""
    if not hasattr(selector, "explain"):
        return _weight(selector, name)
    try:
        return str(selector.explain(name))
    except DataError:
        groups = getattr(selector.result_, "groups", None)
        for label in () if groups is None else groups.labels:
            if str(label) == name:
                return str(selector.explain(group=label))
        if name.isdecimal():
            return str(selector.explain(int(name)))
        raise


def _weight(selector: Any, name: str) -> str:
    """The weight of a feature in a selector that learns from rows."""
    from featstream.protocols import feature_name

    n = selector.n_features_in_
    names = list(getattr(selector, "feature_names_in_", map(feature_name, range(n))))
    if name not in names and not (name.isdecimal() and int(name) < n):
        raise DataError(f"No feature {printable(name)} among the {n:,} of the run.")
    index = names.index(name) if name in names else int(name)
    shown = printable(names[index])
    if not selector.support_[index]:
        return f"{shown} is not kept: others have larger weights."
    weight = selector.scores_[selector.selected_ == index][0]
    return f"{shown} is kept: its weight is {weight:g}."


def describe_run(arguments: argparse.Namespace) -> int:
    """Print what a run folder says of itself."""
    from featstream.runs.folder import RunFolder
    from featstream.runs.state import load_run, shown

    facts = load_run(RunFolder(arguments.data)).description
    is_done = all(source["is_done"] for source in facts["sources"])
    parameters = facts["parameters"].items()
    words = (f"{k}={v if isinstance(v, str) else shown(v)}" for k, v in parameters)
    lines = [
        f"{arguments.data}: a run of {facts['selector']} "
        f"({'done' if is_done else 'interrupted'}), generation {facts['generation']}, "
        f"saved {facts.get('saved_at')} by featstream {facts.get('featstream')}"
    ]
    if facts.get("arrives") == "rows":
        lines.append(
            f"{facts.get('n_kept')} kept of {facts['n_features']:,} features, "
            f"{facts['n_seen']:,} samples seen"
        )
    elif facts["generation"] == 0:
        lines.append("stopped while its data were being read: no feature has been seen")
    else:
        lines.append(
            f"{facts.get('n_kept')} kept of {facts['n_seen']:,} features seen, "
            f"{facts['n_samples']:,} samples, measure {facts['measure']}, "
            f"{facts['seconds']:.2f} s"
        )
    if "n_groups" in facts:
        n_kept, n_groups = facts.get("n_groups_kept"), facts["n_groups"]
        lines.append(f"{n_kept} kept of {n_groups} groups seen")
    lines.append(f"parameters: {', '.join(words)}")
    for source in facts["sources"]:
        data, groups = source.get("data") or {}, source.get("groups") or {}
        path = data.get("path", source.get("kind"))
        line = f"source: {path}, from feature {source['begin']:,} on"
        line += "" if source["is_done"] else ", not done"
        lines.append(line + (f", groups: {groups.get('kind')}" if groups else ""))
    if facts["command"]:
        lines.append(f"command: {shlex.join(facts['command'])}")
    if not is_done:
        again = shlex.join(["featstream", "resume", str(arguments.data)])
        lines.append(f"to continue: {again}")
    return answer(arguments, facts, *lines)


def _report(arguments: argparse.Namespace) -> int:
    """Write a report of a run or of a comparison.

    It is one HTML file that opens in any browser, without a network.
    """
    from featstream.evaluation import open_comparison
    from featstream.runs.folder import is_run
    from featstream.runs.session import resume

    folder = arguments.folder
    if not folder.is_dir():
        raise MissingFileError(
            f"There is no folder {printable(folder)}. Give what select -o or compare "
            "-o has written."
        )
    result = result_of(resume(folder)) if is_run(folder) else open_comparison(folder)
    path = result.report(arguments.output or folder / "report.html")
    size = path.stat().st_size
    facts = {"report": str(path), "bytes": size}
    return answer(arguments, facts, f"written: {path} ({size / 1e6:.1f} MB)")


add_report = adder(_report, _REPORT, JSON)

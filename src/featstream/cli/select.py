"""The command that selects features: ``featstream select``."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import sys
from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from inspect import getdoc, signature
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from featstream.cli.main import (
    DATA,
    GROUPS,
    JSON,
    QUIET,
    READING,
    SCHEDULER,
    Location,
    add_flags,
    engine_of,
    refuse_input,
)
from featstream.cli.settings import change_settings
from featstream.errors import (
    ParameterError,
    label_text,
    printable,
    some_of,
    visible,
)
from featstream.selectors.registry import SELECTORS

if TYPE_CHECKING:
    from featstream.selectors.result import SelectionResult
    from featstream.sources import Dataset

_FILES = (".csv", ".tsv", ".json")
_SHOWN = 20
_SHARED = ("measure", "alpha", "target", "trace", "n_jobs", "engine", "group_size")
"""Parameters of selectors that the command line sets in its own way."""
_SELECTOR = f"""
--selector NAME  {", ".join(SELECTORS)} (default: the first, or group-saola for groups)
"""
_FLAGS = f"""
--measure NAME  su, mi (discrete), fisher-z (continuous), or auto (default)
--alpha X  level: false discovery rate (default: 0.05), or with --selector saola
    significance level (default for fisher-z: 0.01)
--delta X  relevance threshold of su and mi (default: 0)
--target-type {{class,numeric}}  whether the target is a class (default) or a quantity
    (fisher-z)
--identifiers {{drop,keep}}  text columns with about one category per row: leave them
    out (default), or score them (su, mi)
{_SELECTOR}
--jobs N  threads (default: all cores); the result does not depend on them
-o, --output OUT  folder that records the run, to be resumed and updated; or a file for
    the selection, if it ends in .csv, .tsv or .json
--overwrite  replace an earlier file of results
--live  serve a page that shows the run, on this machine, while it lasts
"""


def add_select(select: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    select.description = (
        "Select features of a data file, by default with SelectFromStream, or with "
        "group-SAOLA if they come in groups. --selector saola is the paper's algorithm."
    )
    what = "run on a Dask cluster (select-from-stream, saola, group-saola)"
    cluster = SCHEDULER.format(what)
    add_flags(select, DATA, _FLAGS, cluster, JSON, QUIET, READING, GROUPS)
    select.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="NAME=VALUE",
        help="another parameter of the selector, or of its measure or test, as in "
        "--set measure__n_bins=2; may be given several times",
    )
    _add_selector_flags(select)
    select.set_defaults(run=_select, measure="auto", target_type=None)


def _add_selector_flags(command: argparse.ArgumentParser) -> None:
    """Add the options of the selector that is named with ``--selector``.

    Options come from the parameters of its class. Help without ``--selector`` shows
    none, so that it need not import them.
    """
    early = argparse.ArgumentParser(add_help=False)
    for flag in ("--selector", "--groups", "--group-size", "--group-by"):
        early.add_argument(flag)
    given, others = early.parse_known_args(command.get_default("command_line"))
    has_groups = {given.groups, given.group_size, given.group_by} != {None}
    default = "group-saola" if has_groups else "select-from-stream"
    name = given.selector or default
    command.set_defaults(selector=name)
    if given.selector is None and {"-h", "--help"} & set(others):
        command.epilog = (
            "Each selector has options of its own, such as --bound and --max-features: "
            "featstream select --selector saola --help"
        )
        return
    cls, group = SELECTORS[name], command.add_argument_group(f"options of {name}")
    homes = (vars(sys.modules[base.__module__]) for base in cls.__mro__)
    hints = get_type_hints(cls.__init__, localns=ChainMap(*homes))
    for parameter in signature(cls).parameters:
        if parameter not in _SHARED:
            flag, kind = parameter.replace("_", "-"), _flag_type(hints.get(parameter))
            kind["metavar"] = None if "choices" in kind else "VALUE"
            group.add_argument(f"--{flag}", help=_described(cls, parameter), **kind)


def _flag_type(hint: Any) -> dict[str, Any]:
    """How argparse reads a parameter of this type."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = [w for p in parts if get_origin(p) is Literal for w in get_args(p)]
    if bool in parts:
        words += ["true", "false"]
    if bool in parts and len(words) == 2:
        return {"choices": words, "nargs": "?", "const": "true"}
    if words:
        return {"choices": words}
    types = [p for p in parts if p in (int, float) and str not in parts]
    if types:
        return {"type": types[0]}
    return {"type": lambda text: int(text) if text.isdecimal() else text}


def _described(cls: Any, name: str) -> str:
    """The first sentence about a parameter in the docstring of a class."""
    pattern = rf"(?m)^{name} : (.*)\n((?:    .*\n)+)"
    found = re.search(pattern, getdoc(cls) or "")
    if found is None:
        return ""
    sentence = re.split(r"(?<=[.:]) ", " ".join(found[2].split()))[0].rstrip(".:")
    default = re.search(r"default=(\S+)", found[1])
    text = sentence[0].lower() + sentence[1:]
    if default is not None and default[1] != "None":
        text += f" (default: {default[1].strip(chr(34))})"
    return text.replace("%", "%%")


def _select(arguments: argparse.Namespace) -> int:
    file = _result_file(arguments)
    selector = _make_selector(arguments)
    if _is_missing_for_measure(arguments):
        arguments.missing = None
    location = Location.from_flags(arguments)
    has_folder = arguments.output is not None and file is None
    if not hasattr(selector, "consume"):
        if arguments.live:
            raise ParameterError(f"--live has no meaning for {arguments.selector}.")
        dataset = location.open(needs_target=True)
        _learn_rows(selector, dataset)
        if has_folder:
            selector.save(arguments.output)
    else:
        from featstream.runs import session

        run = location.checkpoint(arguments) if has_folder else None
        with nullcontext() if run is None else session.saving(selector, run):
            dataset = location.open(needs_target=True)
            options = location.read_groups(dataset)
            if has_folder:
                options["checkpoint"] = location.checkpoint(arguments, dataset)
            selector.start(dataset.y)
            with (
                _observed(arguments, selector) as progress,
                engine_of(arguments) as engine,
            ):
                selector.consume(dataset.source, progress=progress, **options, **engine)
    is_numeric = arguments.target_type == "numeric"
    about = about_target(dataset.y, dataset.target_name, is_numeric=is_numeric)
    if file is not None:
        _write(file, result_of(selector), about, arguments.overwrite)
    return print_result(selector, about, as_json=arguments.json)


@contextmanager
def _observed(arguments: argparse.Namespace, selector: Any) -> Iterator[Any]:
    """What `consume` shows its progress to: a line, a page, both or nothing."""
    if not arguments.live:
        yield not arguments.quiet
        return
    from featstream.progress import observed
    from featstream.reporting.live import live

    with (
        observed(not arguments.quiet, type(selector).__name__) as show,
        live(selector, show) as page,
    ):
        print(f"live: {page.url}", file=sys.stderr, flush=True)
        yield page


def _make_selector(arguments: argparse.Namespace) -> Any:
    """The selector that the flags describe."""
    cls = SELECTORS[arguments.selector]
    parameters, known = _selector_parameters(arguments), signature(cls).parameters
    has_measure, has_alpha = "measure" in known, "alpha" in known
    is_numeric = arguments.target_type == "numeric"
    for flag, value, is_known in (
        ("--measure", arguments.measure != "auto", has_measure),
        ("--delta", arguments.delta, has_measure and not has_alpha),
        ("--identifiers", arguments.identifiers, has_measure),
        ("--alpha", arguments.alpha, has_measure or has_alpha),
        ("--target-type numeric", is_numeric, has_measure or "target" in known),
        ("--scheduler", arguments.scheduler, "engine" in known),
        ("--jobs", arguments.jobs, "n_jobs" in known),
        ("--groups", arguments.groups, hasattr(cls, "group_of_")),
        ("--group-size", arguments.group_size, hasattr(cls, "group_of_")),
        ("--group-by", arguments.group_by, hasattr(cls, "group_of_")),
    ):
        if value in (None, False) or is_known:
            continue
        fitting = "group-saola" if flag.startswith("--group") else "saola"
        hint = f"another --selector, such as {fitting}"
        if flag == "--jobs":
            hint = "one thread, or another --selector"
        if flag == "--measure" and "test" in known:
            hint = "--test"
        raise ParameterError(
            f"{flag} has no meaning for the selector {arguments.selector}. Use {hint}."
        )
    if "n_jobs" in known:
        parameters["n_jobs"] = -1 if arguments.jobs is None else arguments.jobs
    if has_alpha and arguments.alpha is not None:  # not a parameter of the measure
        parameters["alpha"], arguments.alpha = arguments.alpha, None
    if has_measure:
        parameters["measure"] = _measure(arguments)
    elif is_numeric:
        parameters["target"] = "numeric"
    return change_settings(cls(**parameters), arguments.settings)


def _selector_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the selector that were given by its own flags."""
    known = signature(SELECTORS[arguments.selector]).parameters
    words, chosen = {"true": True, "false": False}, {}
    for name in known:
        value = getattr(arguments, name, None)
        if name not in _SHARED and value is not None:
            chosen[name] = words.get(value, value)
    return chosen


def _learn_rows(selector: Any, dataset: Dataset) -> None:
    """Fit a selector that learns from rows; they are held in memory."""
    import numpy as np

    from featstream.evaluation.tasks import as_matrix

    X, names = as_matrix(dataset.source, "the data")[:2]
    selector.fit(X, dataset.y)
    if names is not None:
        selector.feature_names_in_ = np.array(names, object)


def result_of(selector: Any) -> SelectionResult:
    """The result of a selector; of one that learns from rows, its weights."""
    found: SelectionResult | None = getattr(selector, "result_", None)
    if found is not None:
        return found
    from featstream.protocols import feature_name
    from featstream.selectors.result import SelectionResult, Trace

    names = getattr(selector, "feature_names_in_", None)
    indices = selector.selected_
    return SelectionResult(
        tuple(feature_name(i) if names is None else names[i] for i in indices),
        indices,
        selector.scores_,
        selector.n_features_in_,
        selector.n_seen_,
        type(selector).__name__,
        "weight",
        selector.get_params(deep=False),
        0.0,
        Trace(None),
    )


def _measure(arguments: argparse.Namespace) -> Any:
    """The measure that the flags describe."""
    from featstream.measures.inputs import MEASURES, resolve_measure

    is_numeric = arguments.target_type == "numeric"
    # The other measures know classes alone.
    is_class = arguments.target_type == "class" and arguments.measure == "fisher-z"
    has_category = _is_missing_for_measure(arguments)
    flags = {
        "--alpha": ("alpha", arguments.alpha),
        "--delta": ("threshold", arguments.delta),
        "--identifiers": ("identifiers", arguments.identifiers),
        "--target-type numeric": ("target", "numeric" if is_numeric else None),
        "--target-type class": ("target", "nominal" if is_class else None),
        "--missing category": ("missing", "category" if has_category else None),
    }
    given = {flag: pair for flag, pair in flags.items() if pair[1] is not None}
    name = arguments.measure
    if name == "auto" and (is_numeric or has_category):
        name = "fisher-z" if is_numeric else "su"
    measure = resolve_measure(name)
    for flag, (parameter, value) in given.items():
        if measure is None or not hasattr(measure, parameter):
            fitting = [n for n, m in MEASURES.items() if hasattr(m(), parameter)]
            raise ParameterError(
                f"{flag} has no meaning for the measure {name}. Use it with --measure "
                f"{' or '.join(fitting)}."
            )
        setattr(measure, parameter, value)
    return measure if given else name


def _is_missing_for_measure(arguments: argparse.Namespace) -> bool:
    """Whether missing values become a category in the measure, not in the reader."""
    path = arguments.data
    names = os.listdir(path) if os.path.isdir(path) else [path]
    is_genotypes = any(name.endswith(".bed") for name in names)
    return arguments.missing == "category" and not is_genotypes


def _result_file(arguments: argparse.Namespace) -> Path | None:
    """The file for the selection; None if there is none, or a run folder instead."""
    if arguments.output is None:
        if arguments.overwrite:
            raise ParameterError("--overwrite goes with -o. Name the file to replace.")
        return None
    path = Path(os.path.realpath(arguments.output))
    refuse_input(path, [arguments.data, arguments.target, arguments.groups])
    suffix = path.suffix.lower()
    is_folder = path.is_dir() or arguments.output.endswith(("/", os.sep))
    if suffix in _FILES and not is_folder:
        if not path.parent.is_dir():
            folder = printable(path.parent)
            raise ParameterError(f"There is no folder {folder} for the output.")
        _refuse_existing(path, arguments.overwrite)
        return path
    if not is_folder and re.fullmatch(r"\.[a-z]\w{0,7}", suffix):
        raise ParameterError(
            f"The selection is not written as {suffix}. Got -o {arguments.output}. "
            f"Use {', '.join(_FILES[:-1])} or {_FILES[-1]}; or, for a folder that "
            f"records the run, -o {arguments.output}/"
        )
    if path.exists() and not is_folder:
        raise ParameterError(
            f"{printable(arguments.output)} is a file, and a run is recorded in a "
            "folder. Choose another name."
        )
    if arguments.overwrite:
        raise ParameterError(
            "--overwrite is for a file of results. A run folder is continued, not "
            "replaced: choose a new one."
        )
    return None


def _refuse_existing(path: Path, may_overwrite: bool) -> None:
    """Refuse to replace a file, except an earlier result if that is asked for."""
    if path.exists() and not may_overwrite:
        raise ParameterError(
            f"{printable(path)} exists. Choose another name, or replace an earlier "
            "result with --overwrite."
        )
    if path.exists() and not _is_result(path):
        raise ParameterError(
            f"{printable(path)} exists and is not a selection that featstream has "
            "written, so --overwrite does not replace it. Choose another name."
        )


def _is_result(path: Path) -> bool:
    """Whether a file is empty or looks like what `_write` writes."""
    if not path.is_file():
        return False
    is_json = path.suffix.lower() == ".json"
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read(None if is_json else 400)
    if not text or not is_json:
        return not text or text.replace("\t", ",").startswith("feature,index,")
    try:
        return {"selector", "selected"} <= set(json.loads(text))
    except (ValueError, TypeError):
        return False


def _write(
    path: Path, result: SelectionResult, about: dict[str, Any], may_overwrite: bool
) -> None:
    """Write the selection in one step, in the format of the suffix."""
    from featstream.runs.folder import SHARED, replace_file

    text = result.as_csv()
    if path.suffix.lower() == ".tsv":
        table = io.StringIO(newline="")
        rows = csv.reader(io.StringIO(text, newline=""))
        csv.writer(table, delimiter="\t").writerows(rows)
        text = table.getvalue()
    elif path.suffix.lower() == ".json":
        text = json.dumps(result.to_dict() | {"target": about}, indent=2) + "\n"
    _refuse_existing(path, may_overwrite)
    replace_file(path, lambda file: file.write(text.encode()), mode=SHARED)


def about_target(
    y: Any, name: str | None, *, is_numeric: bool = False
) -> dict[str, Any]:
    """The name of the target, and its classes with their sizes or its range."""
    import numpy as np

    from featstream.measures.inputs import as_vector

    values, counts = np.unique(as_vector(y), return_counts=True)
    if is_numeric:
        low, high = float(values[0]), float(values[-1])
        return {"name": name, "type": "numeric", "low": low, "high": high}
    labels = map(label_text, values.tolist())
    classes = dict(zip(labels, counts.tolist(), strict=True))
    return {"name": name, "type": "class", "classes": classes}


def target_line(about: dict[str, Any]) -> str:
    """One line about the target."""
    name = "" if about["name"] is None else f"{printable(about['name'])}, "
    if about["type"] == "numeric":
        return f"target: {name}numeric, from {about['low']:g} to {about['high']:g}"
    sizes = [
        f"{repr(label) if ' ' in label else visible(label)} ({n:,})"
        for label, n in about["classes"].items()
    ]
    return f"target: {name}{len(sizes):,} classes: {some_of(sizes, 10)}"


def print_result(
    selector: Any, about: dict[str, Any] | None, *, as_json: bool, console: Any = None
) -> int:
    """All of a result for programs; or lines and a table that fit the terminal."""
    result = result_of(selector)
    if as_json:
        facts = result.to_dict() | {"target": about}
        if hasattr(selector, "is_complete_"):  # a search may stop at its budget
            facts["is_complete"] = selector.is_complete_
        print(json.dumps(facts, indent=2))
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [
        f"{len(result):,} of {result.n_features:,} features selected "
        f"({result.selector}, {result.measure}, {result.n_samples:,} samples, "
        f"{result.seconds:.2f} s)"
    ]
    if about is not None:
        lines.append(target_line(about))
    if result.measure_reason:
        lines.append(f"measure: {result.measure}, because {result.measure_reason}")
    said = "{irrelevant:,} irrelevant, {redundant:,} redundant, {displaced:,} displaced"
    if result.trace.level == "full":
        lines.append(f"dropped: {said.format(**result.trace.counts())} by better ones")
    groups = getattr(result, "groups", None)
    if groups is not None:
        fates = groups.counts()
        n_kept = f"{fates['kept']:,} of {len(groups):,}"
        lines.append(f"groups: {n_kept} selected; {said.format(**fates)}")
    width = None if sys.stdout.isatty() else 1000
    console = console or Console(highlight=False, width=width)
    console.print(Text("\n".join(lines)))
    if not len(result):
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    room = max(8, console.width - 22)  # longer names are cut
    table.add_column("feature", no_wrap=True, overflow="ellipsis", max_width=room)
    table.add_column("index", justify="right", no_wrap=True, min_width=7)
    table.add_column("relevance", justify="right", no_wrap=True, min_width=9)
    for name, index, score in result.ranked()[:_SHOWN]:
        table.add_row(Text(visible(name)), str(index), f"{score:.6f}")
    console.print()
    console.print(table)
    if len(result) > _SHOWN:
        console.print(f"... and {len(result) - _SHOWN:,} more (all with --json or -o)")
    return 0

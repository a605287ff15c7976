"""The command line: ``featstream select | resume | update | explain | info | ...``.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed,
2 usage, 130 interrupted. Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import featstream
from featstream.cli.compare import add_compare
from featstream.cli.convert import add_convert
from featstream.cli.groups import add_group_flags, read_told_groups, tell_groups
from featstream.cli.options import add_data, chosen_options, found_again
from featstream.cli.runs import (
    add_run_commands,
    describe_run,
    print_interruption,
    print_result,
    run_checkpoint,
)
from featstream.cli_paper import add_paper

if TYPE_CHECKING:
    from featstream.sources import Dataset

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    arguments.command_line = list(sys.argv[1:] if argv is None else argv)
    try:
        return int(arguments.run(arguments) or 0)
    except KeyboardInterrupt:
        print_interruption(arguments)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        return 0
    except (OSError, ValueError, TypeError, ImportError) as error:
        from featstream.errors import FeatstreamError

        if not isinstance(error, OSError | FeatstreamError):
            raise
        print(f"featstream: error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="featstream",
        description="Select a small, predictive subset of very many features, "
        "in one pass.",
    )
    parser.add_argument(
        "--version", action="version", version=f"featstream {featstream.__version__}"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_select(commands)
    add_run_commands(commands)
    add_compare(commands)
    add_paper(commands)
    add_convert(commands)
    _add_info(commands)
    _add_demo(commands)
    return parser


def _add_select(commands: Any) -> None:
    select = commands.add_parser(
        "select",
        help="select features of a data file",
        description="Select features of a data file with SAOLA, or with group-SAOLA "
        "if they come in groups.",
    )
    add_data(select)
    select.add_argument(
        "--measure",
        default="auto",
        metavar="NAME",
        help="su, mi (discrete), fisher-z (continuous), or auto (default)",
    )
    select.add_argument(
        "--alpha", type=float, help="significance level of fisher-z (default: 0.01)"
    )
    select.add_argument(
        "--delta", type=float, help="relevance threshold of su and mi (default: 0)"
    )
    for option, choices in (
        ("bound", ("min", "max")),
        ("ties", ("keep", "drop")),
        ("pruning", ("interleaved", "deferred")),
    ):
        select.add_argument(
            f"--{option}",
            choices=choices,
            default=choices[0],
            help=f"as printed in the paper: {choices[0]} (default)",
        )
    add_group_flags(select)
    select.add_argument(
        "--max-features", type=int, metavar="K", help="keep at most K features"
    )
    select.add_argument(
        "--jobs",
        type=int,
        default=-1,
        metavar="N",
        help="threads (default: all cores); the result does not depend on them",
    )
    select.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="RUN",
        help="folder that records the run, to be resumed and updated; or, if it ends "
        "in .csv, file for the selection",
    )
    select.add_argument("--json", action="store_true", help="print JSON")
    select.add_argument("-q", "--quiet", action="store_true", help="show no progress")
    select.set_defaults(run=_select)


def _add_info(commands: Any) -> None:
    info = commands.add_parser(
        "info",
        help="describe a data file or a run",
        description="Describe a data file, and say which measure suits it; or "
        "describe a run.",
    )
    add_data(info)
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info)


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser(
        "demo",
        help="select from a generated stream whose answer is known",
        description="Select from a generated stream whose answer is known.",
    )
    demo.add_argument("--features", type=int, default=50_000, help="default: 50,000")
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--json", action="store_true", help="print JSON")
    demo.set_defaults(run=_demo)


def _measure(arguments: argparse.Namespace) -> Any:
    """The measure that the flags describe."""
    from featstream.errors import ParameterError
    from featstream.measures import FisherZ, resolve_measure

    measure = resolve_measure(arguments.measure)
    alpha, delta = arguments.alpha, arguments.delta
    if measure is None:
        if alpha is not None or delta is not None:
            raise ParameterError(
                "--alpha and --delta belong to a measure. Add --measure fisher-z "
                "(for --alpha) or --measure su (for --delta)."
            )
        return "auto"
    given, other = (alpha, delta) if isinstance(measure, FisherZ) else (delta, alpha)
    if other is not None:
        wrong, right = ("--delta", "--alpha")
        if not isinstance(measure, FisherZ):
            wrong, right = right, wrong
        raise ParameterError(
            f"{wrong} has no meaning for the measure {arguments.measure}; use {right}."
        )
    if given is not None:
        name = "alpha" if isinstance(measure, FisherZ) else "threshold"
        setattr(measure, name, given)
    return measure


def _open(arguments: argparse.Namespace) -> Dataset:
    from featstream.errors import DataError, printable
    from featstream.sources import open_dataset

    dataset = open_dataset(
        arguments.data, arguments.target, **chosen_options(arguments)
    )
    if dataset.y is None:
        raise DataError(
            f"{printable(arguments.data)} holds no target. Name it with --target."
        )
    return dataset


def _select(arguments: argparse.Namespace) -> int:
    from featstream.errors import ParameterError
    from featstream.selectors import SAOLA, GroupSAOLA
    from featstream.selectors.recording import begun

    options = {
        "measure": _measure(arguments),
        "bound": arguments.bound,
        "ties": arguments.ties,
        "pruning": arguments.pruning,
        "n_jobs": arguments.jobs,
    }
    told, how = tell_groups(arguments), {}
    selector: SAOLA | GroupSAOLA
    if told is None:
        selector = SAOLA(max_features=arguments.max_features, **options)
    elif arguments.max_features is not None:
        raise ParameterError("--max-features has no meaning for groups. Leave it out.")
    else:
        selector = GroupSAOLA(**options)
    output, saving = arguments.output, None
    if output is not None and output.suffix.lower() != ".csv":
        found = found_again(arguments.data, arguments.target, chosen_options(arguments))
        saving = run_checkpoint(output, found, arguments.command_line, told)
    with begun(selector, saving):
        dataset = _open(arguments)
        if told is not None:
            how["groups"] = read_told_groups(told, dataset)
        selector.start(dataset.y).consume(
            dataset.source, progress=not arguments.quiet, checkpoint=saving, **how
        )
    if output is not None and saving is None:
        selector.result_.to_csv(output)
    print_result(selector.result_, as_json=arguments.json)
    return 0


def _info(arguments: argparse.Namespace) -> int:
    if Path(arguments.data, "run.json").exists():
        return describe_run(arguments)
    import numpy as np

    from featstream.measures import choose_measure
    from featstream.protocols import SparseColumns
    from featstream.sources import open_dataset

    dataset = open_dataset(
        arguments.data, arguments.target, **chosen_options(arguments)
    )
    source = dataset.source
    first = next(iter(source.blocks()))
    columns = first.columns
    values = columns.values if isinstance(columns, SparseColumns) else columns
    measure, reason = choose_measure([first], 256)
    facts: dict[str, Any] = {
        "file": str(arguments.data),
        "n_samples": first.n_samples,
        "n_features": source.n_features,
        "storage": "sparse" if first.is_sparse else "dense",
        "dtype": str(values.dtype),
        "first_features": [first.name(i) for i in range(min(5, first.n_columns))],
        "target": None,
        "measure": type(measure).__name__,
        "measure_reason": reason,
    }
    if dataset.y is not None:
        classes, sizes = np.unique(dataset.y, return_counts=True)
        facts["target"] = {
            str(label): int(size) for label, size in zip(classes, sizes, strict=True)
        }
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return 0
    print(
        f"{facts['file']}: {first.n_samples:,} samples × {source.n_features or '?':,} "
        f"features, {facts['storage']} {facts['dtype']}"
    )
    print(f"features: {', '.join(facts['first_features'])}, ...")
    if facts["target"] is None:
        print("target: none in the file; name it with --target")
    else:
        shown = list(facts["target"].items())[:10]
        print("target: " + ", ".join(f"{label} ({size:,})" for label, size in shown))
    print(f"measure: {facts['measure']}, because {reason}")
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    from featstream.datasets import make_stream
    from featstream.measures import FisherZ
    from featstream.selectors import SAOLA

    stream = make_stream(
        n_samples=500,
        n_features=arguments.features,
        kind="continuous",
        seed=arguments.seed,
    )
    if arguments.json:
        selector = SAOLA(measure=FisherZ(alpha=1e-6)).fit(stream.X, stream.y)
        print_result(selector.result_, as_json=True)
        return 0
    print(
        f"A stream of {stream.X.shape[1]:,} features of {stream.X.shape[0]} samples: "
        f"{stream.informative.size} informative, {stream.redundant.size} redundant, "
        f"{stream.irrelevant.size:,} irrelevant."
    )
    print("Compiling kernels on first use takes some seconds; they are cached.\n")
    selector = SAOLA(measure=FisherZ(alpha=1e-6)).start(stream.y)
    selector.consume(stream.source(), progress=True)
    print_result(selector.result_, as_json=False)
    print("\nWhy some were dropped:")
    for arrival in (*stream.redundant[:3], stream.irrelevant[0]):
        print("  " + selector.explain(int(arrival)))
    found = set(selector.selected_) & set(stream.blanket)
    print(
        f"\nOf the {stream.blanket.size} features that determine the class, "
        f"{len(found)} were found."
    )
    return 0 if len(found) == stream.blanket.size else 1

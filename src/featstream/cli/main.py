"""The command line: its entry, and the flags that several commands share.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed,
2 usage, 130 interrupted. Only the module of the chosen command is imported, and
that imports nothing heavy before it is needed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import featstream
from featstream.errors import (
    DataError,
    FeatstreamError,
    FeatstreamWarning,
    ParameterError,
    RunError,
    printable,
    visible,
)

if TYPE_CHECKING:
    from featstream.runs.folder import Checkpoint
    from featstream.sources import Dataset

COMMANDS = {
    "select": ("featstream.cli.select", "select features of a data file"),
    "resume": ("featstream.cli.runs", "continue an interrupted run"),
    "update": ("featstream.cli.runs", "add features that arrive later to a run"),
    "explain": ("featstream.cli.runs", "say why a feature or a group was kept or not"),
    "report": ("featstream.cli.runs", "write a report of a run or a comparison"),
    "compare": ("featstream.cli.compare", "compare selectors on data files"),
    "paper": ("featstream.cli.paper", "run the SAOLA paper again: tables and figures"),
    "convert": ("featstream.cli.data", "turn a data file into a column store"),
    "info": ("featstream.cli.data", "describe a data file or a run"),
    "demo": ("featstream.cli.demo", "find the words that tell three novels apart"),
}
"""Module and help of each command; ``add_NAME`` of the module adds its flags."""

_FLAGS = {
    "threshold": "--delta",
    "n_jobs": "--jobs",
    "n_runs": "--runs",
    "n_repeats": "--runs",
    "n_folds": "--folds",
    "size": "--group-size",
    "pattern": "--group-by",
}
"""Flags whose names differ from those of the Python parameters that they set."""

_MEASURES = {
    "FisherZ": "fisher-z",
    "MutualInformation": "mi",
    "SymmetricalUncertainty": "su",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments, show_others = argparse.Namespace(), warnings.showwarning

    def show(message: Any, category: Any, *where: Any, **options: Any) -> None:
        """Show a warning of ours without the line of code that gave it."""
        if issubclass(category, FeatstreamWarning):
            _tell(f"warning: {in_flags(message.in_shell(), arguments)}")
        else:
            show_others(message, category, *where, **options)

    if isinstance(sys.stdout, io.TextIOWrapper):  # what it cannot encode is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings():
        try:
            _parser(words).parse_args(words, arguments)
            warnings.showwarning = show
            code: int = arguments.run(arguments)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            _tell(f"interrupted{_how_to_continue(arguments)}")
            return 130
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except FeatstreamError as error:
            _tell(f"error: {in_flags(error.in_shell(), arguments)}")
            return 1
        except OSError as error:
            _tell(f"error: {error}")
            return 1
        except MemoryError as error:
            reason = printable(str(error) or "the system gave none", limit=200)
            _tell(
                f"error: there is not enough memory for this ({reason}). Convert the "
                "data to a column store first: featstream convert DATA NEW.cols; or "
                "use a machine with more."
            )
            return 1


def _tell(text: str) -> None:
    print(f"featstream: {text}", file=sys.stderr)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the flags of the command that is called."""
    parser = argparse.ArgumentParser(
        prog="featstream",
        description="Select a small, predictive subset of very many features, "
        "in one pass.",
    )
    parser.add_argument(
        "--version", action="version", version=f"featstream {featstream.__version__}"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        command.set_defaults(command_line=list(words))
        if name in words[:1]:
            getattr(import_module(module), f"add_{name}")(command)
    return parser


def _how_to_continue(arguments: argparse.Namespace) -> str:
    """What to type after a Ctrl-C, if the work so far is saved."""
    folder = getattr(arguments, "output", None)
    if getattr(arguments, "keeps_cells", False):
        if folder is None:
            return "; nothing is kept without -o OUT"
        command = shlex.join(["featstream", *arguments.command_line])
        return f"; what is done is kept. To continue: {command}"
    is_run = folder is not None and os.path.exists(os.path.join(folder, "run.json"))
    if not is_run or arguments.command_line[0] not in ("select", "resume", "update"):
        return ""
    from featstream.cli.runs import how_to_continue

    return how_to_continue(arguments)


def in_flags(text: str, arguments: argparse.Namespace) -> str:
    """A message about Python parameters in terms of the command's flags.

    >>> given = argparse.Namespace(alpha=5.0, measure="auto")
    >>> in_flags("`alpha` of FisherZ must be below 1. Write alpha=0.05.", given)
    '--alpha must be below 1. Write --alpha 0.05.'
    """

    def flag(name: str) -> str | None:
        known = _FLAGS.get(name, "--" + name.replace("_", "-"))
        return known if hasattr(arguments, known[2:].replace("-", "_")) else None

    def assigned(match: re.Match[str]) -> str:
        known, value = flag(match[1]), match[2].strip("'\"")
        if known is None:
            return match[0]
        return known if value == "True" else f"{known} {value}"

    text = re.sub(r"\w+=\S+ \(command line: (--[^)]+)\)", r"\1", text)
    text = text.replace("FisherZ(target='numeric')", "--target-type numeric")
    as_classes = "--measure fisher-z --target-type class"
    text = text.replace("FisherZ(target='nominal')", as_classes)
    for class_name, name in _MEASURES.items():
        text = text.replace(f"measure={class_name}()", f"measure='{name}'")
        pattern = rf"(?:measure=)?\b{class_name}\((\w.*?)\)"
        text = re.sub(pattern, rf"measure='{name}' \1", text)
    text = re.sub(r"(missing='\w+') to the measure", r"\1", text)
    text = re.sub(
        r"`(\w+)`(?: of \w+)?", lambda match: flag(match[1]) or match[0], text
    )
    value = r"""('[^']*'|"[^"]*"|[\w.+-]*\w)(?![\w(])"""
    return re.sub(rf"(?<![\w'\"])(\w+)={value}", assigned, text)


JSON = "--json  print JSON"
QUIET = "-q, --quiet  show no progress"
SCHEDULER = """
--scheduler ADDRESS  {}: tcp://HOST:PORT of its scheduler, or local for one process per
    core; the result does not depend on it
"""
DATA = """
data FILE  .npz, .npy, .csv, .tsv, .parquet, .feather, .zarr, .h5ad, .bed, svmlight or
    .cols; or a folder of such files
"""
READING = """
how the file is read:
--target NAME  the array (.npz, .zarr) or column (table, obs of .h5ad) of the target; or
    the file that holds it, FILE or FILE:COLUMN
--layer NAME  layer of .h5ad, or array of .zarr (default: X)
--orient {samples,features}  what a row of .parquet or of text is (default: samples)
--separator CHAR  between the cells of a text table
--decimal CHAR  decimal point of a text table, '.' or ','
--thousands CHAR  between the thousands in a text table, such as ',' in 1,234
--encoding NAME  of a text table, such as latin-1 or utf-16 (default: utf-8)
--skip-rows N  lines before the header of a text table (default: comments, #)
--no-header  a text table begins with data: its columns are called x0, x1, and so on
--max-bytes SIZE  most memory that a compressed file may unpack to, such as 8GB
    (default: 200 times its size)
--na-values WORDS  words that mean a missing value, separated by commas, such as '?,.'
--missing {error,mode,category}  missing values: refuse them (default), count them as a
    category (su, mi), or take the commonest genotype (.bed)
--drop-unlabelled  leave out the rows whose target is missing
--duplicates {error,number}  features of the same name: refuse them (default), or number
    them
"""
OPTIONS = [flag.replace("-", "_") for flag in re.findall("\n--([a-z-]+)", READING)][1:]
"""Named parameters of `featstream.sources.open_dataset`, which these flags set."""
GROUPS = """
features in groups:
--groups FILE  a text file with one label per line, or a CSV of feature and group
--group-size K  groups of K consecutive features
--group-by REGEX  group by what this finds in the names
"""

_TYPES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("N", "K"), int),
    **dict.fromkeys(("S", "X"), float),
    **dict.fromkeys(("FOLDER", "RUN"), Path),
    "WORDS": lambda text: tuple(text.split(",")),
}
"""What the values of flags become, by the word that stands for them."""


def add_flags(command: argparse.ArgumentParser, *texts: str, **types: Any) -> None:
    """Add arguments, written as a page of help shows them: ``-n, --size N  meaning``.

    An argument without a value is a switch; ``{a,b}`` lists the allowed words, and
    ``FILE...`` takes several values. A line that ends with a colon starts a section.
    """
    group: Any = command
    for entry in re.split(r"\n(?! )", "\n".join(texts)):
        written, _, about = entry.partition("  ")
        names, _, value = written.replace(", ", ",").partition(" ")
        flags = names.split(",")
        options: dict[str, Any] = {"help": " ".join(about.split())}
        if written.endswith(":"):
            group = command.add_argument_group(written[:-1])
            continue
        if value.startswith("{"):
            options["choices"] = value[1:-1].split(",")
        elif value:
            word = value.removesuffix("...")
            kind = types.get(flags[-1].strip("-"), _TYPES.get(word, str))
            options |= {"metavar": word, "type": kind}
            options["nargs"] = None if word == value else "+"
        else:
            options["action"] = "store_true"
        if written:
            group.add_argument(*flags, **options)


def adder(
    run: Callable[[argparse.Namespace], int], *texts: str, **defaults: Any
) -> Callable[[argparse.ArgumentParser], None]:
    """Make what adds the flags of a command; the docstring of ``run`` describes it."""

    def add(command: argparse.ArgumentParser) -> None:
        command.description = " ".join((run.__doc__ or "").split())
        add_flags(command, *texts)
        command.set_defaults(run=run, **defaults)

    return add


def answer(arguments: argparse.Namespace, facts: Any, *lines: str) -> int:
    """Print facts for programs, with ``--json``, or lines for people."""
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return 0
    for line in lines:
        # A name may hold codes that a terminal obeys; one escape has 10 characters.
        print(visible(line, limit=1 + 10 * len(line)))
    return 0


@contextmanager
def engine_of(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The parameter ``engine`` of what runs on a cluster, if the flags name one."""
    if arguments.scheduler is None:
        yield {}
        return
    from featstream.engines import connected

    with connected(arguments.scheduler) as client:
        yield {"engine": client}


def chosen_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of `open_dataset` that were given, besides path and target."""
    given = {name: getattr(arguments, name) for name in OPTIONS}
    return {name: value for name, value in given.items() if value not in (None, False)}


@dataclass(frozen=True, slots=True)
class Location:
    """Where data are, how they are read, and how their features fall into groups.

    ``options`` are those of `open_dataset`. ``groups`` says where the groups come from:
    ``path``, ``size`` or ``pattern``, and the number of the ``first`` group.
    """

    path: str
    target: str | None
    options: Mapping[str, Any]
    groups: Mapping[str, Any] | None = None

    @classmethod
    def from_flags(cls, arguments: argparse.Namespace, n_groups: int = 0) -> Location:
        """What the flags of a command say; ``n_groups`` groups have come before."""
        options = chosen_options(arguments)
        groups = groups_from_flags(arguments, n_groups)
        return cls(arguments.data, arguments.target, options, groups)

    def open(self, *, needs_target: bool = False) -> Dataset:
        """The data, which may need to have a target."""
        from featstream.sources import open_dataset

        dataset = open_dataset(self.path, self.target, **self.options)
        if needs_target and dataset.y is None:
            raise DataError(
                f"{printable(self.path)} holds no target. Name it with --target."
            )
        return dataset

    def read_groups(self, dataset: Dataset) -> dict[str, Any]:
        """The parameter ``groups`` of `consume`, if there are any."""
        if self.groups is None:
            return {}
        from featstream.sources.grouping import read_groups

        types = {"path": str, "pattern": str, "size": int, "first": int}
        given = {name: self.groups.get(name) for name in types}
        is_read = all(type(given[n]) in (types[n], type(None)) for n in types)
        if not self.groups or not is_read:
            raise RunError(
                "The run does not say how to find its groups. Name them with --groups, "
                "--group-size or --group-by."
            )
        given |= {"names": dataset.names, "n_features": dataset.source.n_features}
        return {"groups": read_groups(**given | {"first": given["first"] or 0})}

    def checkpoint(
        self, arguments: argparse.Namespace, dataset: Dataset | None = None
    ) -> Checkpoint:
        """Where a run is saved, and how its data are found again, from any folder."""
        from featstream.runs.folder import Checkpoint

        target = self.target
        if target is not None:
            file, colon, column = target.rpartition(":")
            if Path(target).exists():
                target = os.path.abspath(target)
            elif colon and Path(file).is_file():
                target = f"{os.path.abspath(file)}:{column}"
        data = {"path": os.path.abspath(self.path), "target": target, **self.options}
        name = getattr(dataset, "target_name", None)
        extra = {"target_name": name, "groups": self.groups}
        data |= {name: value for name, value in extra.items() if value is not None}
        command = ["featstream", *arguments.command_line]
        return Checkpoint(arguments.output, data=data, command=command)


def groups_from_flags(
    arguments: argparse.Namespace, n_before: int = 0
) -> dict[str, Any] | None:
    """Where groups come from; None if there are no such flags.

    ``n_before`` groups have come before: those of ``--group-size`` are numbered.
    """
    path, size, pattern = arguments.groups, arguments.group_size, arguments.group_by
    if (path, size, pattern) == (None, None, None):
        return None
    path = None if path is None else os.path.abspath(path)
    return {"path": path, "size": size, "pattern": pattern, "first": n_before}


def refuse_input(output: Path, inputs: Iterable[str | None]) -> None:
    """Refuse an output that is an input, or lies inside one."""
    whole = [name for name in inputs if name]
    for path in (*whole, *(name.rpartition(":")[0] for name in whole)):
        if not path or not os.path.exists(path):
            continue
        is_same = output.exists() and os.path.samefile(output, path)
        begin = os.path.realpath(path) + os.sep
        is_inside = os.path.isdir(path) and os.path.realpath(output).startswith(begin)
        if is_same or is_inside:
            raise ParameterError(
                f"The output {printable(output)} would overwrite the input "
                f"{printable(Path(path))}. Choose another name."
            )

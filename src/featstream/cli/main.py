"""The entry of the command line: parse, run one command, report errors.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed,
2 usage, 130 interrupted. Only the module of the chosen command is imported, and
that imports nothing heavy before it is needed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module

import featstream

COMMANDS = {
    "select": ("featstream.cli.select", "select features of a data file"),
    "resume": ("featstream.cli.runs", "continue an interrupted run"),
    "update": ("featstream.cli.runs", "add features that arrive later to a run"),
    "explain": ("featstream.cli.runs", "say why a feature or a group was kept or not"),
    "report": ("featstream.cli.report", "write a report of a run or a comparison"),
    "compare": ("featstream.cli.compare", "compare selectors on data files"),
    "paper": ("featstream.paper.cli", "run the SAOLA paper again: tables and figures"),
    "convert": ("featstream.cli.convert", "turn a data file into a column store"),
    "info": ("featstream.cli.info", "describe a data file or a run"),
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
    with _writable_output(), warnings.catch_warnings():
        arguments = argparse.Namespace()
        try:
            _parser(words).parse_args(words, arguments)
            show = partial(_print_warning, arguments, warnings.showwarning)
            warnings.showwarning = show
            code = int(arguments.run(arguments) or 0)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            print(
                f"featstream: interrupted{_how_to_continue(arguments)}", file=sys.stderr
            )
            return 130
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except (OSError, ValueError, TypeError, ImportError) as error:
            from featstream.errors import FeatstreamError

            if not isinstance(error, OSError | FeatstreamError):
                raise
            text = in_flags(str(error), arguments)
            print(f"featstream: error: {text}", file=sys.stderr)
            return 1


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


@contextmanager
def _writable_output() -> Iterator[None]:
    """Escape what the encoding of stdout cannot write, instead of failing."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is None:
        yield
        return
    stream, before = sys.stdout, sys.stdout.errors
    reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        if not stream.closed:
            reconfigure(errors=before)


def _print_warning(
    arguments: argparse.Namespace,
    default: Callable[..., None],
    message: Warning | str,
    category: type[Warning],
    *where: object,
) -> None:
    """Show a warning of ours without the line of code that gave it."""
    from featstream.errors import FeatstreamWarning

    if issubclass(category, FeatstreamWarning):
        text = in_flags(str(message), arguments)
        print(f"featstream: warning: {text}", file=sys.stderr)
    else:
        default(message, category, *where)


def _how_to_continue(arguments: argparse.Namespace) -> str:
    """What to type after a Ctrl-C, if the work so far is saved."""
    folder = getattr(arguments, "output", None)
    if folder is None or not os.path.exists(os.path.join(folder, "run.json")):
        return ""
    return f"; to continue: {shlex.join(['featstream', 'resume', str(folder)])}"


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

"""Run the pages of the documentation as a reader would, from top to bottom."""

from __future__ import annotations

import doctest
import re
import shlex
import warnings
from pathlib import Path
from typing import NamedTuple

from featstream.cli import main

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


class Example(NamedTuple):
    """A fenced block of a page, or an indented command."""

    language: str
    code: str
    line: int


def examples_of(text):
    """Every example of a page, in order.

    Fenced blocks have a language: ``python`` and ``pycon`` are run in one namespace,
    ``console`` holds commands after ``$``. All else is not run: ``text`` marks a
    transcript. An indented line that begins with ``featstream`` is a command.
    """
    found, fence, start, inside = [], None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        opened = re.match(r"(```+)(\S*)", line)
        if fence is None and opened:
            fence, start, inside = opened, number, []
        elif fence is None and line.startswith("    featstream "):
            found.append(Example("console", f"$ {line.strip()}", number))
        elif fence is not None and line.strip() == fence[1]:
            found.append(Example(fence[2], "\n".join(inside) + "\n", start))
            fence = None
        elif fence is not None:
            inside.append(line)
    return found


def run_page(path: Path, capsys) -> None:
    """Run every example of a page in the current folder; the first failure raises."""
    names = {"__name__": path.stem}
    for language, code, line in examples_of(path.read_text("utf-8")):
        where = f"{path.name}:{line}"
        if language in ("python", "pycon") and ">>> " in code:
            _run_session(code, names, where)
        elif language in ("python", "pycon"):
            exec(compile(code, where, "exec"), names)
        elif language == "console":
            _run_commands(code, where, capsys)


def _run_session(code, names, where):
    test = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    failures = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=failures.append, clear_globs=False)
    assert not failures, "".join(failures)
    names.update(test.globs)


def _run_commands(code, where, capsys):
    """Run ``$ featstream ...`` lines; lines below a command are what it prints."""
    assert code.startswith("$ "), where
    for part in re.split(r"^\$ ", code, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        program, *words = shlex.split(command, comments=True)
        assert program == "featstream", (where, command)
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert main(words) == 0, (where, command, capsys.readouterr().err)
        printed = capsys.readouterr().out
        assert printed, (where, command)
        if expected.strip():
            is_equal = doctest.OutputChecker().check_output(expected, printed, FLAGS)
            assert is_equal, f"{where}: {command}\n{printed}"

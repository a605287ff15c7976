"""The command that writes reports: ``featstream report``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from featstream.cli.main import JSON, add_flags
from featstream.errors import MissingFileError, printable

_FLAGS = """
folder FOLDER  what select -o or compare -o has written
-o, --output FILE  the report (default: report.html in the folder)
"""


def add_report(report: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    report.description = (
        "Write a report of a run or of a comparison: one HTML file that opens in any "
        "browser, without a network."
    )
    add_flags(report, _FLAGS, JSON, output=Path)
    report.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    from featstream.runs.folder import is_run

    folder = arguments.folder
    if not folder.is_dir():
        raise MissingFileError(
            f"There is no folder {printable(folder, limit=400)}. Give what select -o "
            "or compare -o has written."
        )
    target = arguments.output or folder / "report.html"
    if is_run(folder):
        from featstream.cli.select import result_of
        from featstream.runs.session import resume

        result_of(resume(folder)).report(target)
    else:
        from featstream.evaluation import open_comparison

        open_comparison(folder).report(target)
    if arguments.json:
        print(json.dumps({"report": str(target), "bytes": target.stat().st_size}))
    else:
        print(f"written: {target} ({target.stat().st_size / 1e6:.1f} MB)")
    return 0

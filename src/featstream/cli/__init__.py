"""The command line: ``main``, and one file per command."""

from featstream.cli.main import main

__all__ = ["main"]

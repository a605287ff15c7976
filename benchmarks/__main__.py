"""``python -m benchmarks``: all of the quick ones."""

from benchmarks import core

core.main()

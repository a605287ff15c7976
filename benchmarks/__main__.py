"""``python -m benchmarks``: the suite behind the README, in twenty minutes or so."""

from benchmarks import core, growth, peers

for part in (core, growth, peers):
    part.main()

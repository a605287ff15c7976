"""Feed damaged input to a reader until the time is up.

Nothing but the documented error may come out. An input that causes another is
written to ``fuzz/crashers/`` and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz.mutation import mutate
from fuzz.targets import TARGETS

_CRASHERS = Path(__file__).parent / "crashers"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    with tempfile.TemporaryDirectory() as folder:
        return fuzz(parser.parse_args(), Path(folder))


def fuzz(arguments: argparse.Namespace, folder: Path) -> int:
    target = TARGETS[arguments.target](folder)
    rng = np.random.default_rng(arguments.seed)
    corpus, outcomes = list(target.seeds()), Counter()
    known = {target.run(seed) for seed in corpus}
    end = time.monotonic() + arguments.seconds
    n_bad = 0
    while time.monotonic() < end:
        content = mutate(corpus, target.words, rng)
        began = time.monotonic()
        try:
            outcome = target.run(content)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            n_bad += 1
            _CRASHERS.mkdir(exist_ok=True)
            path = _CRASHERS / f"{arguments.target}-{arguments.seed}-{n_bad}"
            path.write_bytes(content)
            traceback.print_exc()
            print(f"crasher: {path}", file=sys.stderr)
            outcome = f"BAD {type(error).__name__}"
            if n_bad >= 10:
                break
        if time.monotonic() - began > 1.0:
            outcomes["slower than 1 s"] += 1
        outcomes[outcome.partition(":")[0]] += 1
        if outcome not in known and len(corpus) < 2000:
            known.add(outcome)  # a message not seen before is new ground
            corpus.append(content)
    print(f"{arguments.target}: {outcomes.total():,} inputs, {n_bad} bad")
    for outcome, count in outcomes.most_common(12):
        print(f"  {count:>9,}  {outcome}")
    print(f"  {len(known):>9,}  distinct outcomes")
    return 1 if n_bad else 0


if __name__ == "__main__":
    raise SystemExit(main())

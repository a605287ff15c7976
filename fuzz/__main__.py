"""Feed damaged input to a reader until the time is up, or a number of times.

Nothing but the documented error may come out, and no more than 2 GB of memory may be
taken. An input that causes something else, or ends the process, is written to
``fuzz/crashers/`` and the exit code is 1.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from fuzz.commands import NOT_OURS
from fuzz.mutation import mutate
from fuzz.targets import TARGETS

_CRASHERS = Path(__file__).parent / "crashers"
_MOST_MEMORY = 2 << 30
_ADDRESSES = 12 << 30
"""Room for addresses, most of which are never used; more is refused by the system."""
_MOST_BAD = 10
_SLOWEST = 30
"""Seconds after which an input has hung; the system then ends the process."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--count", type=int, help="inputs, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.count is not None:
        arguments.seconds = math.inf
    with tempfile.TemporaryDirectory() as folder:
        return supervise(arguments, Path(folder))


def supervise(arguments: argparse.Namespace, folder: Path) -> int:
    """Fuzz in a process of its own; another one follows if a signal ends it."""
    n_done, n_killed = folder / "n_done", 0
    n_done.write_text("0")
    left, code = arguments.count, 0
    while True:
        child = os.fork()
        if not child:
            home = folder / f"{n_killed}"
            home.mkdir()
            try:
                code = fuzz(arguments, home, left, n_done)
            except BaseException:
                traceback.print_exc()
                code = 3
            sys.stdout.flush()
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        excuse = NOT_OURS.get(arguments.target)
        if not os.WIFSIGNALED(status):
            if n_killed:
                print(f"{n_killed} ended by a signal: {excuse or 'a crash'}")
            return os.WEXITSTATUS(status) or int(n_killed > 0 and not excuse)
        n_killed += 1
        path = _CRASHERS / f"{arguments.target}-{arguments.seed}-signal-{n_killed}"
        _CRASHERS.mkdir(exist_ok=True)
        path.write_bytes((folder / "current").read_bytes())
        how = signal.Signals(os.WTERMSIG(status)).name
        print(f"crasher: {path}, ended by {how}", file=sys.stderr)
        if left is not None:
            left -= int(n_done.read_text())
        is_over = left is not None and left <= 0
        if is_over or (n_killed >= _MOST_BAD and not excuse):
            return int(not excuse)
        arguments.seed += 1


def fuzz(
    arguments: argparse.Namespace, folder: Path, count: int | None, n_done: Path
) -> int:
    """Run mutations of the seeds, and of inputs that gave something new."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    target = TARGETS[arguments.target](folder)
    rng = np.random.default_rng(arguments.seed)
    corpus, outcomes = list(target.seeds()), Counter()
    known = {target.run(seed) for seed in corpus}
    end = time.monotonic() + arguments.seconds
    n_bad, n_run = 0, 0
    current = folder.parent / "current"
    while time.monotonic() < end and n_run != count:
        content = mutate(corpus, target.words, rng)
        began, before = time.monotonic(), _peak_memory()
        current.write_bytes(content)
        n_run += 1
        n_done.write_text(str(n_run))
        signal.alarm(_SLOWEST)
        try:
            outcome = target.run(content)
            signal.alarm(0)
            peak = _peak_memory()
            assert peak == before or peak < _MOST_MEMORY, f"{peak >> 20:,} MB"
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
            if n_bad >= _MOST_BAD:
                break
        if time.monotonic() - began > 1.0:
            outcomes["slower than 1 s"] += 1
        outcomes[outcome.partition(":")[0]] += 1
        if outcome not in known and len(corpus) < 2000:
            known.add(outcome)  # a message not seen before is new ground
            corpus.append(content)
    peak = f"peak memory {_peak_memory() >> 20:,} MB"
    print(f"{arguments.target}: {n_run:,} inputs, {n_bad} bad, {peak}")
    for outcome, n_times in outcomes.most_common(12):
        print(f"  {n_times:>9,}  {outcome}")
    print(f"  {len(known):>9,}  distinct outcomes")
    return 1 if n_bad else 0


def _peak_memory() -> int:
    """The most memory that this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak << 10


if __name__ == "__main__":
    raise SystemExit(main())

"""What a scan of 10^9 features on 100 workers would send: a simulation.

``python -m benchmarks.cluster_plan`` prints the counts of ``docs/cluster.md``. No data
are read. Blocks are dispatched, committed and walked again by the rules of the driver;
how many features of a block are kept, and how many they displace, is drawn at random
from a rate that falls as the stream goes on.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from featstream.selectors.saola.spread import FIRST_WIDTH

WIDTH = 2**14  # of a block of a column store


class Counts(NamedTuple):
    """What was sent in a scan."""

    blocks: int
    walked_again: int
    messages: int
    columns: int


def simulate(n_features, n_workers, law, rng):
    """Count the messages of a scan.

    ``law(n)`` is the expected number of features ever kept among the first ``n``. Each
    displaces one on average, once there are some: the kept set grows slowly.
    """
    waiting, window, position, grown = deque(), 1, 0, FIRST_WIDTH
    n_blocks = n_walked = n_snapshots = n_columns = n_changes = 0
    sent = -1  # the change up to which the kept features have been sent
    while True:
        while len(waiting) < window and position < n_features:
            stop = min(position + grown, (position // WIDTH + 1) * WIDTH, n_features)
            n_kept = rng.poisson(law(stop) - law(position))
            n_snapshots += sent != n_changes
            sent = n_changes
            waiting.append((n_kept, n_changes, not waiting))
            position, grown = stop, 2 * grown
        if not waiting:
            break
        n_kept, seen, is_final = waiting.popleft()
        # A change since its dispatch took the witness of some feature of the block.
        is_uncertain = not is_final and (n_kept > 0 or seen != n_changes)
        if is_uncertain:
            n_walked += 1
            n_snapshots += sent != n_changes
            sent = n_changes
        n_blocks += 1
        n_columns += n_kept
        n_changes += n_kept > 0
        window = min(window + 1, 2 * n_workers)
    messages = 1 + n_blocks + n_walked + n_snapshots
    return Counts(n_blocks, n_walked, messages, n_columns)


LAWS = {
    "log: 400 kept per tenfold": lambda n: 400 * np.log10(1 + n / 10),
    "root: 3,764 in the first 10^6": lambda n: 3.764 * np.sqrt(n),
    "linear: 1 of 2,000 features": lambda n: n / 2000,
}


def main() -> None:
    """Print a table."""
    print("| features ever kept | blocks | walked again | messages/block | columns |")
    print("|---|---|---|---|---|")
    for name, law in LAWS.items():
        c = simulate(10**9, 100, law, np.random.default_rng(0))
        print(
            f"| {name} | {c.blocks:,} | {c.walked_again / c.blocks:.1%} | "
            f"{c.messages / c.blocks:.2f} | {c.columns:,} |"
        )


if __name__ == "__main__":
    main()

"""Byte strings made from others: flipped, cut, spliced, with words put in."""

from __future__ import annotations

import numpy as np

_NUMBERS = (0, 1, 127, 128, 255)


def mutate(
    corpus: list[bytes], words: tuple[bytes, ...], rng: np.random.Generator
) -> bytes:
    """One to six changes to a member of the corpus; half of the time in place.

    Formats whose parts are found by their offsets notice at once that these have moved.
    """
    content = bytearray(corpus[rng.integers(len(corpus))])
    in_place = rng.random() < 0.5
    for _ in range(int(rng.integers(1, 4 if in_place else 7))):
        kind = int(rng.integers(8))
        at = int(rng.integers(len(content) + 1))
        end = min(len(content), at + int(rng.integers(1, 17)))
        if in_place:
            kind %= 3
        if kind == 2 and in_place:
            word = words[int(rng.integers(len(words)))][: len(content) - at]
            content[at : at + len(word)] = word
        elif kind == 0 and content:
            content[at % len(content)] ^= 1 << int(rng.integers(8))
        elif kind == 1 and content:
            content[at % len(content)] = _NUMBERS[int(rng.integers(len(_NUMBERS)))]
        elif kind == 2:
            del content[at:end]
        elif kind == 3:
            content[at:at] = content[at:end]
        elif kind == 4:
            content[at:at] = words[int(rng.integers(len(words)))]
        elif kind == 5:
            content[at:end] = words[int(rng.integers(len(words)))]
        elif kind == 6:
            other = corpus[rng.integers(len(corpus))]
            start = int(rng.integers(len(other) + 1))
            content[at:] = other[start : start + 4096]
        else:
            del content[at:]
    return bytes(content[:65536])

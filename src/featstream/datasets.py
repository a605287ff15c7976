"""Data to try things on: generated streams, and passages from novels.

The data sets of the SAOLA paper are in `featstream.paper.datasets`; their names work
here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from featstream.errors import ParameterError, check_choice, check_count, check_number
from featstream.protocols import IntArray
from featstream.sources import ArraySource

if TYPE_CHECKING:
    from featstream.paper.datasets import (
        Benchmark,
        available_datasets,
        dataset_names,
        files_of_dataset,
        load_dataset,
    )

__all__ = [
    "Benchmark",
    "Stream",
    "Texts",
    "available_datasets",
    "dataset_names",
    "files_of_dataset",
    "load_dataset",
    "load_novels",
    "make_stream",
]

LEVELS = 3
"""Values of a discrete feature: 0, 1, 2."""


NOVELS = ("Pride and Prejudice", "Emma", "Sense and Sensibility")


@dataclass(frozen=True, slots=True, repr=False)
class Texts:
    """Texts, and the class of each.

    Attributes
    ----------
    texts : list of str
        One text per sample.
    target : ndarray of str of shape (n_samples,)
        The class of each text.
    names : tuple of str
        The classes.
    """

    texts: list[str]
    target: NDArray[Any]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Texts({len(self.texts):,} texts of {len(self.names)} classes)"


def load_novels() -> Texts:
    """Load 1,200 passages from three novels by Jane Austen; the novel is the class.

    A passage is a line of consecutive sentences, of 100 words or some more. The
    passages of a novel are its beginning, in order.

    Returns
    -------
    Texts
        400 passages per novel, one novel after the other.

    Notes
    -----
    The texts are in the public domain. They come with the package.

    Examples
    --------
    >>> from featstream.datasets import load_novels
    >>> novels = load_novels()
    >>> novels
    Texts(1,200 texts of 3 classes)
    >>> novels.texts[0][:54]
    'It is a truth universally acknowledged, that a single '
    """
    folder, texts = files("featstream") / "novels", {}
    for name in NOVELS:
        file = folder / f"{name.lower().replace(' ', '_')}.txt"
        texts[name] = file.read_text(encoding="utf-8").splitlines()
    target = np.repeat(NOVELS, [len(passages) for passages in texts.values()])
    return Texts(list(chain(*texts.values())), target, NOVELS)


@dataclass(frozen=True, slots=True)
class Stream:
    """A generated stream and what a selector should make of it.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), column-major
        The features in order of arrival.
    y : ndarray of shape (n_samples,)
        Two classes, 0 and 1.
    names : list of str
        What each feature is, such as ``"informative_2"`` or ``"redundant_7"``.
    informative, redundant, irrelevant : ndarray of int
        Positions of the features of each sort, increasing.

    Examples
    --------
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(100, 50, n_informative=3, n_redundant=4)
    >>> sorted(stream.names[i] for i in stream.redundant)
    ['redundant_0', 'redundant_1', 'redundant_2', 'redundant_3']
    >>> stream.source()
    ArraySource(100 samples × 50 features, int8)
    """

    X: NDArray[Any]
    y: IntArray
    names: list[str]
    informative: IntArray
    redundant: IntArray
    irrelevant: IntArray

    @property
    def blanket(self) -> IntArray:
        """What an ideal selector keeps: the informative features.

        The class is a function of the informative features and of noise that
        belongs to no feature. Given them, it is independent of all others, and
        given all the others it still depends on each of them: in the
        distribution that was drawn from, they are its only Markov blanket.
        """
        return self.informative

    def source(self) -> ArraySource:
        """The features with their names."""
        return ArraySource(self.X, self.names)


def make_stream(
    n_samples: int = 500,
    n_features: int = 2000,
    *,
    n_informative: int = 5,
    n_redundant: int = 20,
    kind: Literal["discrete", "continuous"] = "discrete",
    noise: float = 0.0,
    seed: int = 0,
) -> Stream:
    """Generate a stream of informative, redundant and irrelevant features.

    Informative features are independent and equally strong: the class is 1 where
    their sum is above its median. A redundant feature is a noisy copy of one of
    them. Its noise is balanced against the class, so that in the sample as well as
    in the limit it is less relevant than the original, and overlaps with it by more
    than its relevance. Irrelevant features are independent of all else. The order
    of arrival is random.

    Parameters
    ----------
    n_samples : int, default=500
        Values in a column.
    n_features : int, default=2000
        Features in all; those neither informative nor redundant are irrelevant.
    n_informative : int, default=5
        Features that determine the class.
    n_redundant : int, default=20
        Noisy copies of informative features, dealt out in turn.
    kind : {"discrete", "continuous"}, default="discrete"
        Levels 0, 1, 2 as int8, or standard normal values as float32.
    noise : float in [0, 1), default=0.0
        Share of the samples whose class is drawn at random.
    seed : int, default=0
        The same seed gives the same stream.

    Returns
    -------
    Stream
        The data, and which features are which.

    Notes
    -----
    SAOLA with symmetrical uncertainty and ``threshold=0.02``, or with Fisher's Z
    and ``alpha=0.001``, keeps the blanket of the default stream and besides it the
    few irrelevant features that pass the threshold by chance (about 1 in 7,000,
    and 1 in 1,000). With ``threshold=0`` every irrelevant feature passes it: a
    sampled dependence is never quite 0. The relevance of an informative feature
    falls as 1 / n_informative (symmetrical uncertainty) or its root (correlation);
    many of them, or noise in the class, need more samples and a lower threshold.

    Examples
    --------
    >>> from featstream.datasets import make_stream
    >>> stream = make_stream(n_informative=2)
    >>> stream.X.shape
    (500, 2000)
    >>> sorted(stream.names[i] for i in stream.blanket)
    ['informative_0', 'informative_1']
    """
    n_irrelevant = n_features - n_informative - n_redundant
    check_choice(kind, "kind", ("discrete", "continuous"), "make_stream")
    check_count(n_samples, "n_samples", "make_stream", least=10)
    check_count(n_informative, "n_informative", "make_stream")
    check_count(n_redundant, "n_redundant", "make_stream", least=0)
    check_number(noise, "noise", "make_stream", high=1, closed="left")
    if n_irrelevant < 0:
        raise ParameterError(
            "`n_features` of make_stream must be at least n_informative + n_redundant "
            f"= {n_informative + n_redundant}. Got {n_features}."
        )
    rng = np.random.default_rng(seed)
    copy = _copy_levels if kind == "discrete" else _copy_normal

    def draw(count: int) -> NDArray[Any]:
        if kind == "discrete":
            return rng.integers(0, LEVELS, (count, n_samples), dtype=np.int8)
        return rng.standard_normal((count, n_samples), dtype=np.float32)

    informative = draw(n_informative)
    total = informative.sum(axis=0)
    jitter = rng.uniform(-0.1, 0.1, n_samples)  # breaks the ties that levels have
    y = (total + jitter > np.median(total)).astype(np.int64)
    drawn = rng.random(n_samples) < noise
    y[drawn] = rng.integers(0, 2, int(drawn.sum()))
    redundant = [
        copy(rng, informative[i % n_informative], y) for i in range(n_redundant)
    ]
    irrelevant = draw(n_irrelevant)

    rows = np.concatenate([informative, *(row[None] for row in redundant), irrelevant])
    sorts = {
        "informative": n_informative,
        "redundant": n_redundant,
        "irrelevant": n_irrelevant,
    }
    labels = [f"{sort}_{i}" for sort, count in sorts.items() for i in range(count)]
    order = rng.permutation(n_features)
    sort_of = np.repeat(np.arange(3), list(sorts.values()))[order]
    return Stream(
        rows[order].T,
        y,
        [labels[i] for i in order],
        *(np.flatnonzero(sort_of == sort) for sort in range(3)),
    )


def _copy_levels(
    rng: np.random.Generator, original: NDArray[Any], y: IntArray
) -> NDArray[Any]:
    """Copy, with every second to fourth value replaced by levels dealt in turn.

    The replaced samples are spread evenly over each pair of level and class, and
    so are the levels that they get: the noise tells nothing about the class.
    """
    step = int(rng.integers(2, 5))
    order = np.lexsort((rng.random(y.size), original, y))
    replaced = order[int(rng.integers(step)) :: step]
    copied: NDArray[Any] = original.copy()
    copied[replaced] = (np.arange(replaced.size) + rng.integers(LEVELS)) % LEVELS
    return copied


def _copy_normal(
    rng: np.random.Generator, original: NDArray[Any], y: IntArray
) -> NDArray[Any]:
    """Copy with noise that has correlation 0 with the original and with the class.

    Then the copy's correlation with the class is the original's times their own.
    """
    basis, _ = np.linalg.qr(np.column_stack([np.ones(y.size), original, y]))
    noise = rng.standard_normal(y.size)
    noise -= basis @ (basis.T @ noise)
    correlation = rng.uniform(0.6, 0.9)
    scale = original.std() / noise.std() * np.sqrt(1 / correlation**2 - 1)
    copied: NDArray[Any] = correlation * (original + scale * noise)
    return copied.astype(np.float32)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("featstream.paper.datasets"), name)

"""What a selector needs in order to be saved in a run, and gone on with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import Any, Self

from numpy.typing import NDArray

from featstream.errors import FeatstreamError, RunError, printable
from featstream.parallel import single_blas
from featstream.runs.folder import Saved
from featstream.runs.session import Link, save_once

__all__ = ["Savable"]

_UNFIT = (
    *(FeatstreamError, LookupError, MemoryError),
    *(OverflowError, TypeError, ValueError),
)


class Savable(ABC):
    """A selector that a run folder can hold.

    A subclass says what it is with `_facts`, gives what it has learned with
    `_arrays`, and takes both over with `_take_over`.
    """

    _run: Link | None = None  # the run that it is in

    @property
    @abstractmethod
    def n_seen_(self) -> int:
        """How much it has seen."""

    @abstractmethod
    def _facts(self) -> dict[str, Any]:
        """What a run says of the state besides its arrays, for JSON."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The state: arrays of numbers or booleans with one or two axes, by name."""

    @abstractmethod
    def _take_over(self, saved: Saved) -> None:
        """Take over a state; the arrays may come from anyone."""

    def save(self, path: str | PathLike[str] | None = None) -> Self:
        """Save the state in a run folder, for `featstream.resume`.

        Parameters
        ----------
        path : str or path, optional
            The folder; by default that of the run the selector is in. `consume` with
            a checkpoint saves by itself; after single updates it is up to you.
        """
        save_once(self, path)
        return self

    def _restore_from(self, saved: Saved) -> None:
        """Take over a state; `RunError` for one that cannot be right."""
        try:
            with single_blas:  # as everywhere: their number changes the last bit
                self._take_over(saved)
        except RunError:
            raise
        except (
            FeatstreamError,
            ValueError,
            LookupError,
            TypeError,
            OverflowError,
        ) as error:
            raise RunError(
                f"The run cannot be restored: {printable(error)}."
            ) from error

"""Options that have no flag of their own: ``--set measure__n_bins=2``.

They are named as scikit-learn's ``set_params`` names them: a parameter of the selector,
or of its measure or test behind two underscores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from featstream.errors import ParameterError, printable, unknown_name


def change_settings(selector: Any, settings: Iterable[str], flag: str = "--set") -> Any:
    """Set parameters of a selector, each written ``NAME=VALUE``.

    >>> from featstream import FCBF
    >>> chosen = ["measure=su", "measure__n_bins=2", "measure__binning=uniform"]
    >>> change_settings(FCBF(), chosen).measure
    SymmetricalUncertainty(binning='uniform', n_bins=2)
    """
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ParameterError(
                f"{flag} takes NAME=VALUE. Got {printable(setting)}. Write "
                f"{flag} measure__n_bins=2, say."
            )
        part, is_nested, _ = name.partition("__")
        if is_nested:
            _make_part(selector, part, name)
        known = selector.get_params()
        if name not in known:
            raise unknown_name(f"parameter of {type(selector).__name__}", name, known)
        selector.set_params(**{name: read_value(text)})
    return selector


def _make_part(selector: Any, part: str, name: str) -> None:
    """Replace the name of a measure or test by the object, which has parameters."""
    from featstream.measures.independence import resolve_test
    from featstream.measures.inputs import resolve_measure

    given = selector.get_params(deep=False).get(part)
    if not isinstance(given, str):
        return
    if given == "auto":
        raise ParameterError(
            f"{printable(name)} is an option of a {part}, and the data decide which "
            f"{part} is used. Name the {part} first."
        )
    if part == "measure":
        made = resolve_measure(given)
    else:
        made = resolve_test(given, selector.alpha, type(selector).__name__)
    selector.set_params(**{part: made})


def read_value(text: str) -> Any:
    """A number, true, false, none, or a word.

    >>> [read_value(text) for text in ("2", "0.5", "true", "none", "occurring")]
    [2, 0.5, True, None, 'occurring']
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

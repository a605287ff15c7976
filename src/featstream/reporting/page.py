"""A page that stands alone: one HTML file, no network, nothing but its own script.

The Content-Security-Policy names the one script and the one style sheet by their
checksums, so that nothing else can run, whatever names the features have.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import featstream
from featstream.markup import Html, joined, tag

GENERATOR = f"featstream {featstream.__version__}"
_HERE = Path(__file__).parent


@cache
def _asset(name: str) -> tuple[str, str]:
    """The text of a script or a style sheet, and its checksum for the policy."""
    content = (_HERE / name).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return content, f"'sha256-{digest}'"


def policy(*, is_live: bool = False) -> str:
    """What the page may do: run its own script, and nothing else."""
    rules = {
        "default-src": "'none'",
        "script-src": _asset("page.js")[1],
        "style-src": _asset("page.css")[1],
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    if is_live:
        rules["connect-src"] = "'self'"
    else:
        rules |= {"require-trusted-types-for": "'script'", "trusted-types": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def page(
    title: str,
    lead: object,
    sections: Iterable[tuple[str, str, Sequence[Html]]],
    *,
    data: dict[str, Any] | None = None,
    status: Html | None = None,
) -> str:
    """The whole page. A section has an id, a heading and parts; without parts, none.

    ``data`` is what the search looks through, as `pack_fates` returns it; ``status``
    says how far a run is, and makes the page a live one.
    """
    links, main = [], []
    for name, heading, parts in sections:
        if parts:
            links.append(tag("li", tag("a", heading, href=f"#{name}")))
            label = f"{name}-heading"
            content = tag("h2", heading, id=label), tag("div", *parts, class_="parts")
            main.append(tag("section", *content, id=name, aria_labelledby=label))
    script, style = Html(_asset("page.js")[0]), Html(_asset("page.css")[0])
    is_live, about = status is not None, tag("p", lead, class_="lead")
    body = [
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("header", tag("div", tag("h1", title), about, status or "")),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *main, id="main"),
        tag("footer", f"Made by {GENERATOR}."),
        "" if data is None else _json("fates", data),
        tag("script", script),
    ]
    meta = (
        '<meta charset="utf-8">'
        f'<meta name="generator" content="{GENERATOR}">'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{policy(is_live=is_live)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
    )
    head = tag("head", Html(meta), tag("title", title), tag("style", style))
    whole = tag("html", head, tag("body", *body, data_live=is_live), lang="en")
    return f"<!doctype html>\n{whole}\n"


def _json(name: str, content: dict[str, Any]) -> Html:
    """JSON inside the page, in which no markup can begin or end."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return tag("script", Html(text), type="application/json", id=name)


def cards(*entries: tuple[str, ...]) -> Html:
    """Numbers at a glance: title, number, remark, and the fate that gives a colour."""
    shown = []
    for title, number, remark, *fate in entries:
        swatch = [tag("span", class_=f"swatch c-{name}") for name in fate]
        small = [tag("small", remark)] if remark else []
        shown.append(tag("div", tag("dt", *swatch, title), tag("dd", number, *small)))
    return tag("dl", *shown, class_="cards", id="cards")


def facts(entries: Iterable[tuple[str, object]]) -> Html:
    """Names and values in two columns."""
    pairs = (joined([tag("dt", name), tag("dd", value)]) for name, value in entries)
    return tag("dl", *pairs, class_="facts")


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    label: str | None = None,
    name: str | None = None,
    minor: Sequence[str] = (),
) -> Html:
    """A table whose first column names the rows; numbers are set to the right.

    A cell is text, markup, a number, or a pair of a number to sort by and the text to
    show. With a label, the table can be sorted, and is in a box that the keyboard can
    scroll. Columns in ``minor`` are hidden on narrow screens.
    """
    body = list(rows)
    first = body[0] if body else heads
    is_number = [isinstance(cell, int | float | tuple) for cell in first]
    classes = [
        " ".join(["number"] * is_number[j] + ["minor"] * (head in minor)) or None
        for j, head in enumerate(heads)
    ]

    def cell(j: int, value: object) -> Html:
        if is_number[j]:
            number, shown = value if isinstance(value, tuple) else (value, f"{value:,}")
            return tag("td", shown, class_=classes[j], data_value=number)
        if j == 0:
            return tag("th", tag("bdi", value), scope="row", class_=classes[j])
        return tag("td", value, class_=classes[j] or "names")

    titles = []
    for head, class_ in zip(heads, classes, strict=True):
        shown = tag("button", head, type="button") if label else head
        titles.append(tag("th", shown, scope="col", class_=class_))
    lines = [tag("tr", *(cell(j, v) for j, v in enumerate(row))) for row in body]
    head = tag("thead", tag("tr", *titles))
    found = tag("table", head, tag("tbody", *lines), id=name)
    if label is None:
        return found
    box = {"class_": "scroll", "tabindex": "0", "role": "region", "aria_label": label}
    return tag("div", found, **box)


def score(number: float, form: str = ".4g") -> tuple[float, str]:
    """A cell of a table: the number to sort by, and the text to show."""
    return float(number), f"{number:{form}}"

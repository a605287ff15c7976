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
    sections: Sequence[tuple[str, str, Html]],
    *,
    data: dict[str, Any] | None = None,
    status: Html | None = None,
) -> str:
    """The whole page, of sections with an id, a heading and content.

    ``data`` is what the search looks through, as `pack_fates` gives it; ``status`` is
    how far a run is: the page is then a live one.
    """
    links = [tag("li", tag("a", head, href=f"#{name}")) for name, head, _ in sections]
    script, style = _asset("page.js")[0], _asset("page.css")[0]
    heading, is_live = [tag("h1", title), tag("p", lead, class_="lead")], False
    if status is not None:
        heading, is_live = [*heading, status], True
    main = [_section(*section) for section in sections]
    body = [
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("header", tag("div", *heading)),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag("main", *main, id="main"),
        tag("footer", f"Made by {GENERATOR}."),
        *([] if data is None else [_data("fates", data)]),
        tag("script", Html(script)),
    ]
    meta = (
        '<meta charset="utf-8">'
        f'<meta name="generator" content="{GENERATOR}">'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{policy(is_live=is_live)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
    )
    head = joined([Html(meta), tag("title", title), tag("style", Html(style))])
    content = tag("body", *body, data_live="" if is_live else None)
    return f"<!doctype html>\n{tag('html', tag('head', head), content, lang='en')}\n"


def _section(name: str, heading: str, content: Html) -> Html:
    label = f"{name}-heading"
    return tag(
        "section", tag("h2", heading, id=label), content, id=name, aria_labelledby=label
    )


def figures(*parts: Html) -> Html:
    """Figures below each other."""
    return tag("div", *parts, class_="figures")


def _data(name: str, content: dict[str, Any]) -> Html:
    """JSON inside the page, in which no markup can begin or end."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return tag("script", Html(text), type="application/json", id=name)


def cards(*entries: tuple[str, ...]) -> Html:
    """Numbers at a glance: title, number, remark, and the fate that gives a colour."""
    return tag("dl", *(_card(*entry) for entry in entries), class_="cards", id="cards")


def _card(title: str, number: str, remark: str, fate: str | None = None) -> Html:
    swatch = [tag("span", class_=f"swatch c-{fate}")] if fate else []
    small = [tag("small", remark)] if remark else []
    return tag("div", tag("dt", *swatch, title), tag("dd", number, *small))


def facts(entries: Iterable[tuple[str, object]]) -> Html:
    """Names and values in two columns."""
    return tag(
        "dl",
        *(joined([tag("dt", name), tag("dd", value)]) for name, value in entries),
        class_="facts",
    )


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    name: str | None = None,
    minor: Sequence[int] = (),
    can_sort: bool = False,
) -> Html:
    """A table whose first column names the rows; numbers are set to the right.

    A cell is text, markup, a number, or a pair of a number to sort by and the text to
    show. Columns in ``minor`` are hidden on narrow screens.
    """
    body = [list(row) for row in rows]
    kinds = [
        (isinstance(cell, int | float | tuple), j in minor)
        for j, cell in enumerate(body[0] if body else heads)
    ]
    classes = [
        " ".join(["number"] * is_number + ["minor"] * is_minor) or None
        for is_number, is_minor in kinds
    ]

    def cell(j: int, value: object) -> Html:
        if kinds[j][0]:
            number, shown = value if isinstance(value, tuple) else (value, f"{value:,}")
            return tag("td", shown, class_=classes[j], data_value=number)
        if j == 0:
            return tag("th", tag("bdi", value), scope="row", class_=classes[j])
        return tag("td", value, class_=classes[j] or "names")

    titles = []
    for head, class_ in zip(heads, classes, strict=True):
        shown = tag("button", head, type="button") if can_sort else head
        titles.append(tag("th", shown, scope="col", class_=class_))
    lines = [tag("tr", *(cell(j, v) for j, v in enumerate(row))) for row in body]
    head = tag("thead", tag("tr", *titles))
    return tag("table", head, tag("tbody", *lines), id=name)


def score(number: float, form: str = ".4g") -> tuple[float, str]:
    """A cell of a table, by the number and as it is shown."""
    return float(number), f"{number:{form}}"


def scrolled(content: Html, label: str) -> Html:
    """Something wide or long, in a box of its own that the keyboard can scroll."""
    return tag(
        "div", content, class_="scroll", tabindex="0", role="region", aria_label=label
    )

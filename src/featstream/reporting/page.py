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
    body = [
        tag("a", "Skip to the content", href="#main", class_="skip"),
        tag("header", tag("div", *heading)),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        tag(
            "main",
            *(_section(name, head, content) for name, head, content in sections),
            id="main",
        ),
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


def cards(entries: Iterable[tuple[str, str, str, str | None]], name: str) -> Html:
    """Figures at a glance: title, number, remark, and the fate that gives a colour."""
    return tag(
        "dl",
        *(
            tag(
                "div",
                tag(
                    "dt",
                    *([tag("span", class_=f"swatch c-{fate}")] if fate else []),
                    title,
                ),
                tag("dd", number, *([tag("small", remark)] if remark else [])),
            )
            for title, number, remark, fate in entries
        ),
        class_="cards",
        id=name,
    )


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
    is_number = [
        bool(body) and isinstance(body[0][j], int | float | tuple)
        for j in range(len(heads))
    ]

    def kind(j: int) -> str | None:
        words = ["number"] * is_number[j] + ["minor"] * (j in minor)
        return " ".join(words) or None

    def cell(j: int, value: object) -> Html:
        number, shown = value if isinstance(value, tuple) else (value, value)
        if is_number[j]:
            if not isinstance(value, tuple):
                shown = f"{number:,}"
            return tag("td", shown, class_=kind(j), data_value=number)
        if j == 0:
            return tag("th", tag("bdi", shown), scope="row", class_=kind(j))
        return tag("td", shown, class_=kind(j) or "names")

    titles = [
        tag(
            "th",
            tag("button", head, type="button") if can_sort else head,
            scope="col",
            class_=kind(j),
        )
        for j, head in enumerate(heads)
    ]
    return tag(
        "table",
        tag("thead", tag("tr", *titles)),
        tag(
            "tbody",
            *(tag("tr", *(cell(j, v) for j, v in enumerate(row))) for row in body),
        ),
        id=name,
    )


def scrolled(content: Html, label: str) -> Html:
    """Something wide or long, in a box of its own that the keyboard can scroll."""
    return tag(
        "div", content, class_="scroll", tabindex="0", role="region", aria_label=label
    )


def as_table(summary: str, content: Html) -> Html:
    """The numbers behind a figure, for those who cannot see it."""
    return tag("details", tag("summary", summary), content)

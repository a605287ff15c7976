"""HTML and SVG as text: whatever is not markup already is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_LONGEST = 300


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def visible(text: object, limit: int = _LONGEST) -> str:
    r"""Show a name as it is, except that nothing in it is invisible or endless.

    Control characters, marks of direction and the like are written as escapes.

    >>> visible("gene\u202e17")
    'gene\\u202e17'
    >>> visible("x" * 400, limit=10)
    'xxxxxxxxx…'
    """
    found = str(text)[: limit + 1]
    if not found.isprintable():
        found = "".join(c if c.isprintable() else _escaped(c) for c in found)
    return found if len(found) <= limit else found[: limit - 1] + "…"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def escaped(content: object) -> Html:
    """Markup for any text; markup stays as it is.

    >>> escaped("a < b")
    'a &lt; b'
    """
    if isinstance(content, Html):
        return content
    return Html(html.escape(str(content), quote=True))


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element. Attributes that are None are left out; ``_`` stands for ``-``.

    >>> tag("a", "x < y", href="#top", class_="big", data_tip=None)
    '<a href="#top" class="big">x &lt; y</a>'
    >>> tag("td", hidden=True)
    '<td hidden></td>'
    """
    words = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(attribute)
        elif value is not None and value is not False:
            words.append(f'{attribute}="{escaped(value)}"')
    return Html(f"<{' '.join(words)}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Markup of several parts, one after the other."""
    return Html("".join(map(escaped, parts)))


def small_table(
    title: object, heads: Sequence[str], rows: Iterable[Sequence[object]]
) -> Html:
    """A heading and a plain table, as notebooks show them.

    >>> small_table("One", ["name"], [["a<b"]])
    '<div><p>One</p><table>...<td>a&lt;b</td></tr></tbody></table></div>'
    """
    head = tag("tr", *(tag("th", word) for word in heads))
    body = (tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag(
        "div",
        tag("p", title),
        tag("table", tag("thead", head), tag("tbody", *body)),
    )

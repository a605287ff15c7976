"""HTML, SVG, Markdown and CSV as text: whatever is not markup is escaped."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


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
    table = tag("table", tag("thead", head), tag("tbody", *body))
    return tag("div", tag("p", title), table)


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""A table in Markdown, of which all columns but the first are numbers.

    >>> print(markdown_table(["name", "n"], [["a|b", "2"]]))
    | name | n |
    | --- | ---: |
    | a\|b | 2 |
    """
    first, *others = (
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
        for row in (head, *rows)
    )
    return "\n".join([first, "| --- |" + " ---: |" * (len(head) - 1), *others])


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV with a heading; without rows, nothing."""
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def short(value: float) -> str:
    """A number in few characters.

    >>> short(1_500_000), short(20_000), short(0.25), short(1200)
    ('1.5M', '20k', '0.25', '1,200')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 1e4):
            return f"{value / size:.3g}{suffix}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

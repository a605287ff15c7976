"""What figures in a page are made of: axes, lines, marks, legends, captions.

Marks carry their detail in ``data-tip``, which the page shows on hover or by the arrow
keys. Colours come from the page's style sheet by class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from featstream.markup import Html, joined, tag

WIDE, NARROW = 960, 350


@dataclass(slots=True)
class Axes:
    """A rectangle with scales.

    ``left`` to ``right`` and ``top`` to ``bottom`` are pixels; ``x`` and ``y`` are the
    ranges that they show.
    """

    left: float
    right: float
    top: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]
    x_log: bool = False
    y_log: bool = False
    parts: list[Html] = field(default_factory=list)

    def at_x(self, value: float) -> float:
        """Pixels from the left."""
        share = _share(value, self.x, is_log=self.x_log)
        return round(self.left + share * (self.right - self.left), 1)

    def at_y(self, value: float) -> float:
        """Pixels from the top."""
        share = _share(value, self.y, is_log=self.y_log)
        return round(self.bottom - share * (self.bottom - self.top), 1)

    def add(self, *parts: Html) -> None:
        """Draw something."""
        self.parts += parts

    def draw_grid(
        self, x_label: str = "", y_label: str = "", *, n_x: int = 5, n_y: int = 4
    ) -> None:
        """Ticks, light lines and labels."""
        for value in ticks(*self.y, n_y, is_log=self.y_log):
            y = self.at_y(value)
            self.add(line(self.left, y, self.right, y, "grid"))
            self.add(text(self.left - 6, y + 4, short(value), "tick end"))
        self.add(line(self.left, self.bottom, self.right, self.bottom, "axis"))
        for value in ticks(*self.x, n_x, is_log=self.x_log):
            x = self.at_x(value)
            self.add(line(x, self.bottom, x, self.bottom + 4, "axis"))
            kind = "tick end" if x > self.right - 12 else "tick middle"
            edge = self.right + 4 if kind == "tick end" else x
            self.add(text(edge, self.bottom + 17, short(value), kind))
        if x_label:
            self.label(x_label, self.bottom + 34)
        if y_label:
            self.add(text(2, self.top - 10, y_label, "label"))

    def label(self, words: str, y: float) -> None:
        """Words below the middle of the horizontal axis."""
        self.add(text((self.left + self.right) / 2, y, words, "label middle"))


def _share(value: float, limits: tuple[float, float], *, is_log: bool) -> float:
    low, high = limits
    if is_log:
        value, low, high = (float(np.log10(max(v, 1e-300))) for v in (value, low, high))
    return (value - low) / (high - low) if high > low else 0.5


def ticks(low: float, high: float, n: int, *, is_log: bool = False) -> list[float]:
    """Round numbers in a range, about ``n`` of them.

    >>> ticks(0, 97, 5)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    >>> ticks(0.002, 3000, 5, is_log=True)
    [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    >>> ticks(2, 55, 5, is_log=True)
    [2.0, 5.0, 10.0, 20.0, 50.0]
    """
    if n == 0 or not high > low:
        return [low] * (n > 0)
    if is_log:
        first, last = int(np.floor(np.log10(low))), int(np.floor(np.log10(high)))
        for digits in ((1, 2, 5), (1, 3), (1,)):
            every = [float(f"{m}e{k}") for k in range(first, last + 1) for m in digits]
            found = [value for value in every if low <= value <= high]
            if 2 <= len(found) <= n + 2:
                return found
        if len(found) > 1:
            return found[:: (len(found) - 1) // n + 1]
    raw = (high - low) / n
    size = float(10.0 ** np.floor(np.log10(raw)))
    step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(k * step, 12) for k in range(first, last + 1)]


def short(value: float) -> str:
    """A number in few characters.

    >>> short(1_500_000), short(20_000), short(0.25), short(1200)
    ('1.5M', '20k', '0.25', '1,200')
    """
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= max(size, 1e4):
            return f"{value / size:.3g}{suffix}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def text(x: float, y: float, content: object, class_: str = "") -> Html:
    """Text at a place."""
    return tag("text", content, x=round(x, 1), y=round(y, 1), class_=class_ or None)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line."""
    place = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", **{k: round(v, 1) for k, v in place.items()}, class_=class_)


def rect(
    x: float, y: float, width: float, height: float, class_: str, tip: str | None = None
) -> Html:
    """A rectangle, never too small to be seen."""
    size = {"x": x, "y": y, "width": max(width, 0.1), "height": max(height, 0.1)}
    place = {k: round(v, 1) for k, v in size.items()}
    return tag("rect", **place, class_=class_, data_tip=tip)


_SHAPES = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z",
    "M-3.6,-3.6h7.2v7.2h-7.2z",
    "M0,-5L5,0L0,5L-5,0z",
    "M0,-4.8L4.6,3.6H-4.6z",
    "M0,4.8L4.6,-3.6H-4.6z",
    "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
    "M0,-5.4L1.4,-1.6L5.2,-1.6L2.1,0.8L3.2,4.6L0,2.3L-3.2,4.6L-2.1,0.8L-5.2,-1.6"
    "L-1.4,-1.6z",
)
"""A circle, a square, a diamond, two triangles, a cross and a star."""


def mark(shape: int, x: float, y: float, class_: str, tip: str | None = None) -> Html:
    """A small shape at a place."""
    return tag(
        "path",
        d=_SHAPES[shape % len(_SHAPES)],
        transform=f"translate({round(x, 1)},{round(y, 1)})",
        class_=class_,
        data_tip=tip,
    )


def legend(entries: Sequence[tuple[Html, str]], width: int) -> tuple[Html, int]:
    """Samples and words in rows above a figure, and the pixels that they take."""
    parts, x, y = [], 8.0, 12
    for sample, words in entries:
        size = 30 + 6.5 * len(words)
        if x + size > width and x > 8:
            x, y = 8.0, y + 18
        parts.append(tag("g", sample, transform=f"translate({x},{y})"))
        parts.append(text(x + 12, y + 4, words, "tick"))
        x += size
    return joined(parts), y + 12


def figure(
    name: str, title: str, says: str, draw: Callable[[int], tuple[Html, float]]
) -> Html:
    """A figure with a title and a sentence on what it shows, wide and narrow."""
    pictures = []
    for width, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        content, height = draw(width)
        pictures.append(
            tag(
                "svg",
                tag("title", f"{title}. {says}"),
                content,
                viewBox=f"0 0 {width} {round(height)}",
                class_=kind,
                role="img",
            )
        )
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", says)),
        tag(
            "div",
            *pictures,
            class_="picture",
            tabindex="0",
            role="group",
            aria_label=f"{title}: use the arrow keys to go through the marks",
        ),
        id=f"figure-{name}",
    )

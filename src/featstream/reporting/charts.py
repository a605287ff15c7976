"""Figures as SVG inside a page, drawn from computed tables.

Every figure is drawn twice, for wide and for narrow screens. Marks carry their detail
in ``data-tip``, which the page shows on hover or by the arrow keys. Colours come from
the page's style sheet by class; shape, dash or position always says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil, floor, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featstream.errors import visible
from featstream.markup import Html, joined, short, tag
from featstream.protocols import Fate, FloatArray
from featstream.reporting.history import (
    AccuracyCurve,
    Distribution,
    History,
    Removals,
    SizeCurve,
    Timeline,
)

FATES = (Fate.KEPT, Fate.DISPLACED, Fate.REDUNDANT, Fate.IRRELEVANT)
"""In the order in which they are shown."""

Drawing = tuple[list[Html], float]
"""The parts of a figure, and its height in pixels."""
Draw = Callable[[int, bool], Drawing]
"""Called with the width in pixels, and whether that is the wide one."""
Legend = Sequence[tuple[Html, str]]
"""Marks and what they mean."""
Point = tuple[float, float, int, str]
"""Two coordinates, the number of a method, and a detail."""


class Scale(NamedTuple):
    """The range of values that an axis shows."""

    low: float
    high: float
    is_log: bool = False

    def share(self, value: Any) -> float:
        """Where a value lies, from 0 at the low end to 1 at the high end."""
        found, low, high = map(float, (value, self.low, self.high))
        if self.is_log:
            found, low, high = (log10(max(v, 1e-300)) for v in (found, low, high))
        return (found - low) / (high - low) if high > low else 0.5

    def ticks(self, n: int) -> list[float]:
        """Round numbers in the range, about ``n`` of them.

        >>> Scale(0, 97).ticks(5)
        [0.0, 20.0, 40.0, 60.0, 80.0]
        >>> Scale(0.002, 3000, is_log=True).ticks(5)
        [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
        >>> Scale(2, 55, is_log=True).ticks(5)
        [2.0, 5.0, 10.0, 20.0, 50.0]
        """
        low, high, is_log = self
        if not high > low:
            return [low]
        if is_log:
            first, last = floor(log10(low)), floor(log10(high))
            for digits in ((1, 2, 5), (1, 3), (1,)):
                powers = range(first, last + 1)
                every = [float(f"{m}e{k}") for k in powers for m in digits]
                found = [value for value in every if low <= value <= high]
                if 2 <= len(found) <= n + 2:
                    return found
            if len(found) > 1:
                return found[:: (len(found) - 1) // n + 1]
        raw = (high - low) / n
        size = 10.0 ** floor(log10(raw))
        step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        return [round(k * step, 12) for k in range(first, last + 1)]


_UNIT = Scale(0, 1)


@dataclass(slots=True)
class Axes:
    """A rectangle with two scales, and what is drawn in it. Lengths are pixels."""

    left: float
    right: float
    top: float
    bottom: float
    x: Scale
    y: Scale = _UNIT
    parts: list[Html] = field(default_factory=list)

    def at_x(self, value: Any) -> float:
        """Pixels from the left."""
        return round(self.left + self.x.share(value) * (self.right - self.left), 1)

    def at_y(self, value: Any) -> float:
        """Pixels from the top."""
        return round(self.bottom - self.y.share(value) * (self.bottom - self.top), 1)

    def add(self, *parts: Html) -> None:
        """Draw something."""
        self.parts += parts

    def add_span(
        self, ends: Any, top: float, height: float, class_: str, tip: str | None = None
    ) -> None:
        """Draw a rectangle between two values of x."""
        left, right = map(self.at_x, ends)
        self.add(rect(left, top, right - left, height, class_, tip))

    def draw_grid(
        self, x_label: str = "", y_label: str = "", *, has_ticks: bool = True
    ) -> None:
        """Light lines and numbers at the left, ticks and numbers below, and labels."""
        for value in self.y.ticks(4) if y_label else ():
            y = self.at_y(value)
            self.add(line(self.left, y, self.right, y, "grid"))
            self.add(text(self.left - 6, y + 4, short(value), "tick end"))
        self.add(line(self.left, self.bottom, self.right, self.bottom, "axis"))
        n = 5 if self.right - self.left > 400 else 4
        for value in self.x.ticks(n) if has_ticks else ():
            x = self.at_x(value)
            self.add(line(x, self.bottom, x, self.bottom + 4, "axis"))
            is_last = x > self.right - 12
            edge, kind = (self.right + 4, "end") if is_last else (x, "middle")
            self.add(text(edge, self.bottom + 17, short(value), f"tick {kind}"))
        if x_label:
            self.label(x_label, self.bottom + 34)
        if y_label:
            self.add(text(2, self.top - 10, y_label, "label"))

    def label(self, words: str, y: float) -> None:
        """Words below the middle of the horizontal axis."""
        self.add(text((self.left + self.right) / 2, y, words, "label middle"))


def text(x: float, y: float, content: object, class_: str) -> Html:
    """Text at a place."""
    return tag("text", content, x=round(x, 1), y=round(y, 1), class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line."""
    x1, y1, x2, y2 = (round(v, 1) for v in (x1, y1, x2, y2))
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rect(
    x: float, y: float, width: float, height: float, class_: str, tip: str | None = None
) -> Html:
    """A rectangle, never too small to be seen."""
    x, y = round(x, 1), round(y, 1)
    size = {"width": round(max(width, 0.1), 1), "height": round(max(height, 0.1), 1)}
    return tag("rect", x=x, y=y, **size, class_=class_, data_tip=tip)


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
    place = f"translate({round(x, 1)},{round(y, 1)})"
    return tag("path", d=_SHAPES[shape], transform=place, class_=class_, data_tip=tip)


def _series(j: int) -> str:
    """The class of everything that belongs to a method."""
    return f"series{j % len(_SHAPES)}"


def _method_mark(
    j: int, x: float, y: float, tip: str | None = None, look: str = ""
) -> Html:
    return mark(j % len(_SHAPES), x, y, _series(j) + look, tip)


def legend_of(methods: Sequence[str]) -> Legend:
    """The marks of some methods."""
    return [(_method_mark(j, 0, 0), visible(m, 40)) for j, m in enumerate(methods)]


def figure(
    name: str, title: str, caption: str, draw: Draw, legend: Legend = ()
) -> Html:
    """A figure with a title and a sentence on what it shows, wide and narrow."""
    pictures = []
    for width, kind in ((960, "wide"), (350, "narrow")):
        parts, height = draw(width, kind == "wide")
        box = {"viewBox": f"0 0 {width} {round(height)}", "class_": kind, "role": "img"}
        pictures.append(tag("svg", tag("title", f"{title}. {caption}"), *parts, **box))
    label = f"{title}: use the arrow keys to go through the marks"
    reached = {"tabindex": "0", "role": "group", "aria_label": label}
    sample = {"viewBox": "-8 -8 16 16", "aria_hidden": "true"}
    entries = [tag("li", tag("svg", shape, **sample), said) for shape, said in legend]
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), tag("p", caption)),
        tag("ul", *entries, class_="legend") if entries else "",
        tag("div", *pictures, class_="picture", **reached),
        id=f"figure-{name}",
    )


def _scale_of(values: Any) -> Scale:
    """A scale that shows some scores, logarithmic if their sizes differ much."""
    found = np.asarray(values, float)
    good = found[np.isfinite(found)]
    if not good.size:
        return _UNIT
    low, high = float(good.min()), float(good.max())
    if low > 0 and high > 20 * low:
        return Scale(low / 1.2, high * 1.2, is_log=True)
    reach = (high - low) or abs(high) or 1.0
    bottom = min(0.0, low) if low < reach else low - 0.1 * reach
    return Scale(bottom, high + 0.06 * reach)


def merged(
    counts: NDArray[np.int64], edges: NDArray[np.int64], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same in at most this number of bins."""
    n = counts.shape[-1]
    if n <= most:
        return counts, edges
    begins = np.unique(np.arange(most) * n // most)
    return np.add.reduceat(counts, begins, axis=-1), np.append(edges[begins], edges[-1])


def _numbers(counts: NDArray[np.int64], fates: Iterable[Fate] = FATES) -> str:
    return ", ".join(f"{counts[fate]:,} {fate}" for fate in fates)


def timeline_figure(data: Timeline, history: History) -> Html:
    """How long features were kept, above the fates along the stream."""
    is_kept = data.by < 0
    life = joined([line(0, 0, 8, 0, "life kept"), mark(0, 0, 0, "kept")])
    legend = [
        (life, f"kept ({is_kept.sum():,} shown)"),
        (line(-7, 0, 7, 0, "life displaced"), "displaced later"),
    ]
    x, y = Scale(0, data.edges[-1]), _scale_of(data.relevance)

    def draw(width: int, is_wide: bool) -> Drawing:
        axes = Axes(80, width - 10, 24, 246, x, y)
        axes.draw_grid(y_label=f"relevance ({history.result.measure})")
        shown = np.flatnonzero(~is_kept)[: None if is_wide else 80]
        for i in (*shown.tolist(), *np.flatnonzero(is_kept).tolist()):
            axes.add(_life(axes, data, history, i))
        axes.add(*_names_of_lives(axes, data, history, 14 if is_wide else 5))
        strip = axes.bottom + 46
        counts, edges = merged(data.counts, data.edges, 999 if is_wide else 40)
        for row, fate in enumerate(FATES):
            top, own = strip + 16 * row, counts[fate]
            axes.add(text(74, top + 11, fate, "tick end"))
            for b in np.flatnonzero(own).tolist():
                level = 1 + int(4 * np.sqrt(own[b] / own.max()) * 0.999)
                axes.add_span(edges[b : b + 2], top, 13, f"{fate} level{level}")
        for b, (begin, end) in enumerate(pairwise(edges)):
            tip = f"arrivals {begin:,} to {end - 1:,}: {_numbers(counts[:, b])}"
            axes.add_span((begin, end), strip, 62, "hit", tip)
        axes.label("features seen", strip + 82)
        return axes.parts, strip + 92

    left = ""
    if data.n_left_out:
        left = f" {data.n_left_out:,} more were kept for a time and are not drawn."
    return figure(
        "timeline",
        "Selection timeline",
        "A line begins where a feature was kept and ends where a better one displaced "
        f"it. The strips show where features of each fate arrived.{left}",
        draw,
        legend,
    )


def _life(axes: Axes, data: Timeline, history: History, i: int) -> Html:
    arrival, relevance, by = data.arrival[i], data.relevance[i], data.by[i]
    x, y, end = axes.at_x(arrival), axes.at_y(relevance), axes.at_x(data.end[i])
    name = history.name(data.feature[i], 80)
    tip = f"{name}: relevance {relevance:.4g}, kept at arrival {arrival:,}"
    marks, kind = [mark(0, x, y, "kept")], "kept"
    if by >= 0:
        tip += f"; displaced by {history.name(by, 80)} at arrival {by:,}"
        marks, kind = [], "displaced"
    life = line(x, y, max(end, x + 0.5), y, f"life {kind}")
    return tag("g", life, line(x, y, max(end, x + 3), y, "hit"), *marks, data_tip=tip)


def _names_of_lives(
    axes: Axes, data: Timeline, history: History, most: int
) -> list[Html]:
    """Names of the most relevant kept features, where there is room for them.

    A name is left of the mark, or above the line if the axis is too near.
    """
    kept = np.flatnonzero(data.by < 0)
    found: list[Html] = []
    taken: list[tuple[float, float, float]] = []
    for i in kept[np.argsort(-data.relevance[kept], kind="stable")]:
        x, y = axes.at_x(data.arrival[i]), axes.at_y(data.relevance[i])
        name = history.name(data.feature[i], 16)
        size = 6.6 * len(name)
        has_room = x - 10 - size > axes.left
        begin, base = (x - 10 - size, y + 4) if has_room else (x, y - 7)
        is_free = begin + size < axes.right and not any(
            abs(base - 4 - other) < 12 and begin < right and left < begin + size
            for left, right, other in taken
        )
        if is_free:
            found.append(text(begin, base, name, "tick halo"))
            taken.append((begin, begin + size, base - 4))
            if len(found) == most:
                break
        taken.append((x - 4, axes.right, y))
    return found


def size_figure(data: SizeCurve) -> Html:
    """Size of the kept set, above the displacements."""
    x, y = Scale(0, data.edges[-1]), Scale(0, data.sizes.max(initial=1) * 1.08)

    def draw(width: int, is_wide: bool) -> Drawing:
        axes = Axes(54, width - 10, 30, 200, x, y)
        axes.draw_grid(y_label="kept features")
        curve = f"M{axes.left},{axes.bottom}"
        for arrival, size in zip(data.arrivals, data.sizes, strict=True):
            curve += f"H{axes.at_x(arrival)}V{axes.at_y(size)}"
        area = f"{curve}V{axes.bottom}H{axes.left}"
        axes.add(tag("path", d=area, class_="area kept"))
        axes.add(tag("path", d=curve, class_="curve kept"))
        displaced, edges = merged(data.displaced, data.edges, 999 if is_wide else 40)
        most = max(1, displaced.max())
        bars = Axes(54, width - 10, 244, 284, x, Scale(0, most))
        bars.draw_grid(has_ticks=False)
        bars.add(text(2, 236, "displaced per step", "label"))
        bars.add(text(48, 252, short(most), "tick end"))
        sizes = np.append(data.sizes, 0)  # the last one: before the first arrival
        sizes = sizes[np.searchsorted(data.arrivals, edges[1:]) - 1]
        for ends, count, size in zip(pairwise(edges), displaced, sizes, strict=True):
            if count:
                top = bars.at_y(count)
                bars.add_span(ends, top, 284 - top, "displaced bar")
            tip = f"after {ends[1]:,} features: {size:,} kept; {count:,} displaced"
            bars.add_span(ends, 30, 254, "hit", tip)
        bars.label("features seen", 304)
        return axes.parts + bars.parts, 312

    return figure(
        "size",
        "Size of the kept set",
        "How many features were kept at each moment, and how many left because a "
        "better one came.",
        draw,
    )


def removals_figure(data: Removals, history: History) -> Html:
    """One row per kept feature: its own score, and those that it removed."""
    trace, families = history.trace, data.families
    shown = [a for family in families for a in (family.arrival, *family.members)]
    x = _scale_of([trace.relevance(arrival) for arrival in shown])
    legend = [
        (mark(0, 0, 0, "kept"), "kept"),
        (mark(2, 0, 0, "displaced hollow"), "displaced by it"),
        (line(0, -5, 0, 5, "redundant cross"), "redundant beside it"),
    ]

    def draw(width: int, is_wide: bool) -> Drawing:
        left, right = (150, width - 104) if is_wide else (88, width - 44)
        axes = Axes(left, right, 16, 16 + 24 * len(families), x)
        axes.draw_grid(f"relevance ({history.result.measure})")
        for row, family in enumerate(families):
            y = 28 + 24 * row
            name = history.name(family.arrival, 20 if is_wide else 11)
            axes.add(line(left, y, right, y, "grid"))
            axes.add(text(left - 8, y + 4, name, "tick end"))
            relevance = trace.relevance(family.arrival)
            centre = axes.at_x(relevance)
            for member in family.members[: None if is_wide else 16]:
                fate, score = trace.fate(member), trace.relevance(member)
                name, by = history.name(member, 80), trace.witness(member)
                tip = f"{name}, relevance {score:.4g}: {fate} by {history.name(by, 80)}"
                place = axes.at_x(score)
                if fate is Fate.DISPLACED:
                    reach = (centre - place) / 2
                    arc = f"M{place},{y}q{round(reach, 1)},-12 {round(2 * reach, 1)},0"
                    axes.add(tag("path", d=arc, class_="edge displaced"))
                    axes.add(mark(2, place, y, "displaced hollow", tip))
                else:
                    tick = line(place, y - 5, place, y + 5, "redundant cross")
                    hit = rect(place - 2, y - 8, 4, 16, "hit")
                    axes.add(tag("g", tick, hit, data_tip=tip))
            tip = (
                f"{history.name(family.arrival, 80)}: relevance {relevance:.4g}; "
                f"displaced {family.n_displaced:,}, made {family.n_redundant:,} "
                "redundant, itself or through those that it displaced"
            )
            axes.add(mark(0, centre, y, "kept", tip))
            counts = f"{short(family.n_displaced)} + {short(family.n_redundant)}"
            if not is_wide:
                counts = short(family.n_displaced + family.n_redundant)
            axes.add(text(width - 4, y + 4, counts, "tick end"))
        heads = "displaced + redundant" if is_wide else "removed"
        axes.add(text(width - 4, 12, heads, "tick end"))
        return axes.parts, axes.bottom + 42

    return figure(
        "removals",
        "Who removed whom",
        "One row per kept feature, those that removed most first. A diamond is a "
        "feature that it displaced, a tick one that was redundant beside it.",
        draw,
        legend,
    )


def distribution_figure(data: Distribution, measure: str) -> Html:
    """Outlines of four histograms on a logarithmic axis, and the threshold."""
    present = [fate for fate in FATES if data.counts[fate].any()]
    legend = [(line(-8, 0, 8, 0, f"curve {fate}"), str(fate)) for fate in present]
    x = Scale(data.edges[0], data.edges[-1])
    y = Scale(0.7, max(1, data.counts.max()) * 1.5, is_log=True)

    def draw(width: int, is_wide: bool) -> Drawing:
        axes = Axes(54, width - 10, 24, 204, x, y)
        axes.draw_grid(f"relevance ({measure})", "features")
        for fate in present:
            outline, was_empty = "", True
            for count, (begin, end) in zip(
                data.counts[fate], pairwise(data.edges), strict=True
            ):
                if count and was_empty:
                    outline += f"M{axes.at_x(begin)},{axes.bottom}"
                if count:
                    outline += f"V{axes.at_y(count)}H{axes.at_x(end)}"
                elif not was_empty:
                    outline += f"V{axes.bottom}"
                was_empty = not count
            axes.add(tag("path", d=outline, class_=f"curve {fate}"))
        if data.threshold is not None:
            place = axes.at_x(np.clip(data.threshold, x.low, x.high))
            axes.add(line(place, axes.top - 6, place, axes.bottom, "threshold"))
            words = f"{data.said} {data.threshold:.4g}"
            axes.add(text(place + 5, axes.top - 2, words, "tick"))
        for b in np.flatnonzero(data.counts.sum(axis=0)):
            begin, end = data.edges[b : b + 2]
            said = _numbers(data.counts[:, b], present)
            tip = f"relevance {begin:.4g} to {end:.4g}: {said}"
            axes.add_span((begin, end), axes.top, 180, "hit", tip)
        return axes.parts, axes.bottom + 42

    return figure(
        "distribution",
        "Relevance of all features",
        "How many features of each fate have which score. The vertical axis is "
        "logarithmic.",
        draw,
        legend,
    )


def redundancy_figure(overlap: FloatArray, names: Sequence[str], measure: str) -> Html:
    """A triangle of squares, darker where two kept features overlap more."""
    largest = float(np.tril(overlap, -1).max()) or 1.0

    def draw(width: int, is_wide: bool) -> Drawing:
        n = min(len(names), 40 if is_wide else 20)
        left = 150 if is_wide else 96
        size = min(15.0 if is_wide else 14.0, (width - left - 12) / n)
        parts = []
        for i in range(n):
            y = 30 + size * i
            label = visible(names[i], 20 if is_wide else 12)
            parts.append(text(left - 6, y + size / 2 + 4, label, "tick end"))
            parts.append(rect(left + size * i, y, size - 1, size - 1, "diagonal"))
            for j, value in enumerate(overlap[i, :i]):
                level = min(8, int(9 * value / largest))
                tip = f"{names[i]} and {names[j]}: overlap {value:.4g}"
                place = left + size * j, y, size - 1, size - 1
                parts.append(rect(*place, f"heat{level}", tip))
        key = left + size * n - 150 if n > 12 else left + size * n + 20
        parts += [rect(key + 12 * k, 12, 12, 10, f"heat{k}") for k in range(9)]
        parts.append(text(key - 4, 21, "0", "tick end"))
        parts.append(text(key + 113, 21, f"{largest:.3g}", "tick"))
        return parts, 40 + size * n

    return figure(
        "redundancy",
        "Overlap of the kept features",
        f"Overlap by {measure} of each pair of the most relevant features, in order of "
        "relevance. Darker squares overlap more.",
        draw,
    )


def accuracy_figure(data: AccuracyCurve) -> Html:
    """Accuracy with the first 1, 2, … features, and that of the largest class."""
    low, high = data.accuracy - data.spreads, data.accuracy + data.spreads
    bottom, top = min(data.baseline, low.min()), max(data.baseline, high.max())
    margin = 0.1 * max(top - bottom, 0.02)
    y = Scale(max(0.0, bottom - margin), min(1.0, top + margin))
    x = Scale(0.9, data.sizes[-1] * 1.1, is_log=True)
    legend = [
        (mark(0, 0, 0, "kept"), "accuracy ± one deviation"),
        (line(-8, 0, 8, 0, "threshold"), "the largest class"),
    ]

    def draw(width: int, is_wide: bool) -> Drawing:
        axes = Axes(54, width - 10, 24, 214, x, y)
        axes.draw_grid("most relevant kept features", "accuracy", has_ticks=False)
        for size in data.sizes[:: 1 if is_wide else 2]:
            axes.add(text(axes.at_x(size), axes.bottom + 17, size, "tick middle"))
        base = axes.at_y(data.baseline)
        axes.add(line(axes.left, base, axes.right, base, "threshold"))
        xs, ys = map(axes.at_x, data.sizes), map(axes.at_y, data.accuracy)
        places = list(zip(xs, ys, strict=True))
        curve = "L".join(f"{x_i},{y_i}" for x_i, y_i in places)
        axes.add(tag("path", d=f"M{curve}", class_="curve kept"))
        for i, (x_i, y_i) in enumerate(places):
            ends = axes.at_y(low[i]), axes.at_y(high[i])
            axes.add(line(x_i, ends[0], x_i, ends[1], "spread kept"))
            found = f"{data.accuracy[i]:.3f} ± {data.spreads[i]:.3f}"
            tip = f"{data.sizes[i]} features: accuracy {found}"
            axes.add(mark(0, x_i, y_i, "kept", tip))
        return axes.parts, axes.bottom + 42

    return figure(
        "accuracy",
        "Accuracy with the first features",
        f"{data.classifier[0].upper()}{data.classifier[1:]}. The test rows took part "
        "in the selection, so that new data will show less: read where the curve "
        "levels off, not how high it is.",
        draw,
        legend,
    )


def dots_figure(
    name: str,
    title: str,
    caption: str,
    intervals: FloatArray,
    rows: Sequence[str],
    methods: Sequence[str],
    label: str,
) -> Html:
    """One row per data set, one mark per method, with an interval.

    ``intervals`` has shape (3, n_rows, n_methods): values, lowest and highest.
    """
    x, step = _scale_of(intervals[1:]), 12 + 13 * len(methods)

    def draw(width: int, is_wide: bool) -> Drawing:
        left = 130 if is_wide else 84
        axes = Axes(left, width - 14, 4, 4 + step * len(rows), x)
        axes.draw_grid(label)
        for i, row in enumerate(rows):
            begin = 4 + step * i
            if i:
                axes.add(line(4, begin, width - 4, begin, "grid"))
            shown = visible(row, 19 if is_wide else 11)
            axes.add(text(left - 10, begin + step / 2 + 4, shown, "tick end"))
            for j, method in enumerate(methods):
                y = begin + 12 + 13 * j
                value, low, high = intervals[:, i, j]
                tip = f"{visible(method, 40)} on {visible(row, 40)}: "
                if not np.isfinite(value):
                    dash = text(left + 2, y + 4, "–", f"tick {_series(j)}")
                    axes.add(tag("g", dash, data_tip=f"{tip}no value"))
                    continue
                tip += f"{value:.4g}"
                if high > low:
                    ends = axes.at_x(low), axes.at_x(high)
                    axes.add(line(ends[0], y, ends[1], y, f"spread {_series(j)}"))
                    tip += f" ({low:.4g} to {high:.4g})"
                axes.add(_method_mark(j, axes.at_x(value), y, tip))
        return axes.parts, axes.bottom + 42

    return figure(name, title, caption, draw, legend_of(methods))


def scatter(points: Sequence[Point], x_label: str) -> Draw:
    """Points of (x, accuracy, method, detail)."""
    x, y = (_scale_of([point[k] for point in points]) for k in (0, 1))

    def draw(width: int, is_wide: bool) -> Drawing:
        axes = Axes(54, width - 14, 24, 224, x, y)
        axes.draw_grid(x_label, "accuracy")
        for x_i, y_i, method, tip in points:
            place = axes.at_x(x_i), axes.at_y(y_i)
            axes.add(_method_mark(method, *place, tip, " see-through"))
        return axes.parts, axes.bottom + 42

    return draw


def indistinguishable(
    ranks: FloatArray, critical_difference: float
) -> list[tuple[float, float]]:
    """First and last of the longest runs of sorted ranks that do not differ."""
    near = [ranks - first < critical_difference for first in ranks]
    ends = [int(np.flatnonzero(is_near)[-1]) for is_near in near]
    return [
        (float(ranks[start]), float(ranks[end]))
        for start, (before, end) in enumerate(pairwise([-1, *ends]))
        if end > max(start, before)
    ]


def rank_diagram(
    ranks: FloatArray, methods: Sequence[str], critical_difference: float
) -> Draw:
    """Demšar's diagram: average ranks on a line, equals joined by bars."""
    k, order = len(methods), np.argsort(ranks, kind="stable")
    bars = indistinguishable(ranks[order], critical_difference)
    scale, level = Scale(1, max(k, 1 + critical_difference)), 70.0

    def draw(width: int, is_wide: bool) -> Drawing:
        margin = 200 if is_wide else 20
        axes = Axes(margin, width - margin, 0, 1, scale)
        axes.add(line(axes.at_x(1), level, axes.at_x(k), level, "ink"))
        for rank in range(1, k + 1):
            x = axes.at_x(rank)
            axes.add(line(x, level - 6, x, level, "ink"))
            axes.add(text(x, level - 11, rank, "tick middle"))
        end = axes.at_x(1 + critical_difference)
        axes.add(line(axes.at_x(1), 20, end, 20, "ink bar"))
        words = f"critical difference {critical_difference:.2f}"
        axes.add(text(axes.at_x(1), 13, words, "tick"))
        for i, (first, last) in enumerate(bars):
            y = level + 9 + 8 * i
            axes.add(line(axes.at_x(first) - 3, y, axes.at_x(last) + 3, y, "ink bar"))
        y = level + 18 + 8 * len(bars)
        n_rows = (k + 1) // 2 if is_wide else k
        for place, j in enumerate(order):
            x, is_first = axes.at_x(ranks[j]), place < n_rows
            depth = y + 20 * (place if is_first else k - 1 - place)
            is_left, stop = x > width / 2, x
            if is_wide:
                is_left, stop = is_first, axes.left - 6 if is_first else axes.right + 6
            lead = f"M{x},{level}V{depth}H{stop}"
            axes.add(tag("path", d=lead, class_="ink thin"))
            label = f"{visible(methods[j], 24)}  {ranks[j]:.2f}"
            kind, gap = ("tick end", -5) if is_left else ("tick", 5)
            axes.add(text(stop + gap, depth + 4, label, kind))
            tip = f"{visible(methods[j], 60)}: average rank {ranks[j]:.2f}"
            axes.add(_method_mark(j, x, level, tip))
        return axes.parts, y + 20 * n_rows + 4

    return draw

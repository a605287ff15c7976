"""Figures as SVG inside a page, drawn from computed tables.

Every figure is drawn twice, for wide and for narrow screens. Colours come from
the page's style sheet by class; shape, dash or position always says the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from featstream.markup import Html, joined, tag, visible
from featstream.protocols import Fate, FloatArray
from featstream.reporting.history import (
    AccuracyCurve,
    Distribution,
    History,
    Redundancy,
    Removals,
    SizeCurve,
    Timeline,
)
from featstream.reporting.svg import (
    Axes,
    figure,
    legend,
    line,
    mark,
    rect,
    short,
    text,
)

_FATES = (Fate.KEPT, Fate.DISPLACED, Fate.REDUNDANT, Fate.IRRELEVANT)
_N_SERIES = 7


def _scale_of(values: NDArray[np.floating]) -> tuple[tuple[float, float], bool]:
    """Range of some scores, and whether a logarithmic axis shows them better."""
    good = values[np.isfinite(values)]
    if not good.size:
        return (0.0, 1.0), False
    low, high = float(good.min()), float(good.max())
    if low > 0 and high > 20 * low:
        return (low / 1.2, high * 1.2), True
    reach = (high - low) or abs(high) or 1.0
    return (
        min(0.0, low) if low < reach else low - 0.1 * reach,
        high + 0.06 * reach,
    ), False


def timeline_figure(data: Timeline, history: History) -> Html:
    """Lives of the features once kept, above the fates along the stream."""
    measure, n = history.result.measure, int(data.edges[-1])
    is_kept = data.by < 0

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        y, y_log = _scale_of(data.relevance)
        axes = Axes(80, width - 10, 46, 270, (0, n), y, y_log=y_log)
        life = line(0, 0, 9, 0, "life kept")
        entries = [
            (joined([life, mark(0, 0, 0, "kept")]), f"kept ({is_kept.sum():,} shown)"),
            (line(-6, 0, 8, 0, "life displaced"), " displaced later"),
        ]
        axes.add(legend(entries, width)[0])
        axes.draw_grid(y_label=f"relevance ({measure})", n_x=5 if is_wide else 3)
        shown = np.flatnonzero(~is_kept)[: None if is_wide else 80]
        for i in (*shown, *np.flatnonzero(is_kept)):
            axes.add(_life(axes, data, history, int(i)))
        axes.add(*_names_of_lives(axes, data, history, 14 if is_wide else 5))
        strip = 316.0
        counts, edges = merged(data.counts, data.edges, None if is_wide else 40)
        for row, fate in enumerate(_FATES):
            top = strip + 16 * row
            axes.add(text(74, top + 11, fate, "tick end"))
            own = counts[fate]
            for b in np.flatnonzero(own).tolist():
                x = axes.at_x(float(edges[b]))
                level = 1 + int(4 * np.sqrt(own[b] / own.max()) * 0.999)
                size = axes.at_x(float(edges[b + 1])) - x
                axes.add(rect(x, top, size, 13, f"{fate} level{level}"))
        for b in range(edges.size - 1):
            x = axes.at_x(float(edges[b]))
            said = ", ".join(f"{counts[f][b]:,} {f}" for f in _FATES)
            tip = f"arrivals {edges[b]:,} to {edges[b + 1] - 1:,}: {said}"
            size = axes.at_x(float(edges[b + 1])) - x
            axes.add(rect(x, strip, size, 62, "hit", tip))
        axes.label("features seen", strip + 82)
        return joined(axes.parts), strip + 92

    left = ""
    if data.n_left_out:
        left = f" {data.n_left_out:,} more were kept for a time and are not drawn."
    return figure(
        "timeline",
        "Selection timeline",
        "A line begins where a feature was kept and ends where a better one displaced "
        f"it. The strips show where features of each fate arrived.{left}",
        draw,
    )


def merged(
    counts: NDArray[np.int64], edges: NDArray[np.int64], most: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same in fewer bins."""
    n = counts.shape[-1]
    if most is None or n <= most:
        return counts, edges
    begins = np.unique(np.arange(most) * n // most)
    return np.add.reduceat(counts, begins, axis=-1), np.append(edges[begins], edges[-1])


def _life(axes: Axes, data: Timeline, history: History, i: int) -> Html:
    is_kept = data.by[i] < 0
    arrival, relevance = int(data.arrival[i]), float(data.relevance[i])
    x, y = axes.at_x(arrival), axes.at_y(relevance)
    end = axes.at_x(float(data.end[i]))
    name = _named(history, int(data.feature[i]))
    tip = f"{name}: relevance {relevance:.4g}, kept at arrival {arrival:,}"
    if not is_kept:
        by = int(data.by[i])
        tip += f"; displaced by {_named(history, by)} at arrival {by:,}"
    kind = "kept" if is_kept else "displaced"
    return tag(
        "g",
        line(x, y, max(end, x + 0.5), y, f"life {kind}"),
        line(x, y, max(end, x + 3), y, "hit"),
        *([mark(0, x, y, "kept")] if is_kept else []),
        data_tip=tip,
    )


def _names_of_lives(
    axes: Axes, data: Timeline, history: History, most: int
) -> list[Html]:
    """Names of the most relevant kept features, where there is room for them.

    A name is left of the mark, or above the line if the axis is too near.
    """
    kept = np.flatnonzero(data.by < 0)
    found: list[Html] = []
    taken: list[tuple[float, float, float]] = []
    for i in kept[np.argsort(-data.relevance[kept], kind="stable")].tolist():
        x, y = axes.at_x(float(data.arrival[i])), axes.at_y(float(data.relevance[i]))
        name = _named(history, int(data.feature[i]), 16)
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


def _named(history: History, arrival: int, limit: int = 80) -> str:
    return visible(history.name(arrival), limit)


def size_figure(data: SizeCurve) -> Html:
    """Size of the kept set, above the displacements."""
    n = int(data.edges[-1])
    largest = int(data.sizes.max(initial=1))

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        axes = Axes(54, width - 10, 30, 200, (0, n), (0, largest * 1.08))
        axes.draw_grid(y_label="kept features", n_x=5 if is_wide else 3)
        points = [(axes.left, axes.at_y(0))]
        for arrival, size in zip(data.arrivals, data.sizes, strict=True):
            x, y = axes.at_x(float(arrival)), axes.at_y(float(size))
            points += [(x, points[-1][1]), (x, y)]
        path = "M" + "L".join(f"{x},{y}" for x, y in points)
        axes.add(
            tag("path", d=f"{path}V{axes.bottom}H{axes.left}z", class_="area kept")
        )
        axes.add(tag("path", d=path, class_="curve kept"))
        displaced, edges = merged(
            data.displaced[None], data.edges, None if is_wide else 40
        )
        most = max(1, int(displaced.max()))
        bars = Axes(54, width - 10, 244, 284, (0, n), (0, most))
        bars.add(text(2, 236, "displaced per step", "label"))
        bars.add(text(48, 252, short(most), "tick end"))
        bars.add(line(54, 284, width - 10, 284, "axis"))
        places = np.searchsorted(data.arrivals, edges[1:], "left") - 1
        for b in range(edges.size - 1):
            x, end = bars.at_x(float(edges[b])), bars.at_x(float(edges[b + 1]))
            count = int(displaced[0, b])
            if count:
                top = bars.at_y(count)
                bars.add(rect(x, top, end - x - 0.5, 284 - top, "displaced bar"))
            size = int(data.sizes[places[b]]) if places[b] >= 0 else 0
            tip = f"after {edges[b + 1]:,} features: {size:,} kept; {count:,} displaced"
            bars.add(rect(x, 30, end - x, 254, "hit", tip))
        bars.label("features seen", 304)
        return joined(axes.parts + bars.parts), 312

    return figure(
        "size",
        "Size of the kept set",
        "How many features were kept at each moment, and how many left because a "
        "better one came.",
        draw,
    )


def removals_figure(data: Removals, history: History) -> Html:
    """One row per kept feature: its own score, and those that it removed."""
    families = data.families
    scores = np.array([m.relevance for f in families for m in f.members])
    own = np.array([f.relevance for f in families])
    x, x_log = _scale_of(np.concatenate([scores, own]))

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        left, right = (150, width - 104) if is_wide else (88, width - 44)
        entries = [
            (mark(0, 0, 0, "kept"), "kept"),
            (mark(2, 0, 0, "displaced hollow"), "displaced by it"),
            (line(0, -5, 0, 5, "redundant cross"), "redundant beside it"),
        ]
        shown, height = legend(entries, width)
        top = height + 16
        bottom = top + 24 * len(families)
        axes = Axes(left, right, top, bottom, x, (0, 1), x_log=x_log)
        axes.add(shown)
        axes.draw_grid(f"relevance ({history.result.measure})", n_y=0)
        for row, family in enumerate(families):
            y = top + 24 * row + 12
            name = visible(history.name(family.arrival), 22 if is_wide else 12)
            axes.add(line(left, y, right, y, "grid"))
            axes.add(text(left - 8, y + 4, name, "tick end"))
            centre = axes.at_x(family.relevance)
            for member in family.members[: None if is_wide else 16]:
                place = axes.at_x(member.relevance)
                how = "displaced" if member.fate is Fate.DISPLACED else "redundant"
                tip = (
                    f"{_named(history, member.arrival)}, relevance "
                    f"{member.relevance:.4g}: {how} by {_named(history, member.by)}"
                )
                if how == "displaced":
                    reach = (centre - place) / 2
                    arc = f"M{place},{y}q{round(reach, 1)},-12 {round(2 * reach, 1)},0"
                    axes.add(tag("path", d=arc, class_="edge displaced"))
                    axes.add(mark(2, place, y, "displaced hollow", tip))
                else:
                    tick = line(place, y - 5, place, y + 5, "redundant cross")
                    hit = rect(place - 2, y - 8, 4, 16, "hit")
                    axes.add(tag("g", tick, hit, data_tip=tip))
            tip = (
                f"{_named(history, family.arrival)}: relevance {family.relevance:.4g}; "
                f"displaced {family.n_displaced:,}, made {family.n_redundant:,} "
                "redundant, itself or through those that it displaced"
            )
            axes.add(mark(0, centre, y, "kept", tip))
            counts = f"{short(family.n_displaced)} + {short(family.n_redundant)}"
            if not is_wide:
                counts = short(family.n_displaced + family.n_redundant)
            axes.add(text(width - 4, y + 4, counts, "tick end"))
        heads = "displaced + redundant" if is_wide else "removed"
        axes.add(text(width - 4, top - 4, heads, "tick end"))
        return joined(axes.parts), bottom + 42

    return figure(
        "removals",
        "Who removed whom",
        "One row per kept feature, those that removed most first. A diamond is a "
        "feature that it displaced, a tick one that was redundant beside it.",
        draw,
    )


def distribution_figure(data: Distribution, measure: str) -> Html:
    """Outlines of four histograms on a logarithmic axis, and the threshold."""
    total = data.counts.sum(axis=0)
    largest = max(1, int(data.counts.max()))
    present = [fate for fate in _FATES if data.counts[fate].any()]

    def draw(width: int) -> tuple[Html, float]:
        entries = [(line(-6, 0, 8, 0, f"curve {f}"), f" {f}") for f in present]
        shown, height = legend(entries, width)
        top = height + 24
        x = (float(data.edges[0]), float(data.edges[-1]))
        limits = (0.7, largest * 1.5)
        axes = Axes(54, width - 10, top, top + 180, x, limits, y_log=True)
        axes.add(shown)
        axes.draw_grid(f"relevance ({measure})", "features")
        for fate in present:
            path, was_empty = [], True
            for b, count in enumerate(data.counts[fate]):
                x_b, end = (axes.at_x(float(e)) for e in data.edges[b : b + 2])
                if count:
                    begin = f"M{x_b},{axes.bottom}" if was_empty else ""
                    path.append(f"{begin}V{axes.at_y(float(count))}H{end}")
                elif not was_empty:
                    path.append(f"V{axes.bottom}")
                was_empty = not count
            axes.add(tag("path", d="".join(path), class_=f"curve {fate}"))
        if data.threshold is not None:
            place = axes.at_x(min(max(data.threshold, x[0]), x[1]))
            axes.add(line(place, axes.top - 6, place, axes.bottom, "threshold"))
            words = f"{data.said} {data.threshold:.4g}"
            axes.add(text(place + 5, axes.top - 2, words, "tick"))
        for b in np.flatnonzero(total).tolist():
            left = axes.at_x(float(data.edges[b]))
            right = axes.at_x(float(data.edges[b + 1]))
            said = ", ".join(f"{data.counts[f][b]:,} {f}" for f in present)
            tip = f"relevance {data.edges[b]:.4g} to {data.edges[b + 1]:.4g}: {said}"
            axes.add(rect(left, axes.top, right - left, 180, "hit", tip))
        return joined(axes.parts), axes.bottom + 42

    return figure(
        "distribution",
        "Relevance of all features",
        "How many features of each fate have which score. The vertical axis is "
        "logarithmic.",
        draw,
    )


def redundancy_figure(data: Redundancy, history: History) -> Html:
    """A triangle of squares, darker where two kept features overlap more."""
    names = [history.result.names[i] for i in data.order]
    rows, columns = np.tril_indices(len(names), -1)
    largest = float(data.overlap[rows, columns].max(initial=0.0)) or 1.0

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        n = min(len(names), 40 if is_wide else 20)
        left = 150 if is_wide else 96
        size = min(15.0 if is_wide else 14.0, (width - left - 12) / n)
        parts = []
        for i in range(n):
            y = 30 + size * i
            label = visible(names[i], 22 if is_wide else 13)
            parts.append(text(left - 6, y + size / 2 + 4, label, "tick end"))
            parts.append(rect(left + size * i, y, size - 1, size - 1, "diagonal"))
            for j in range(i):
                value = float(data.overlap[i, j])
                level = min(8, int(9 * value / largest))
                tip = (
                    f"{visible(names[i], 80)} and {visible(names[j], 80)}: "
                    f"overlap {value:.4g}"
                )
                place = left + size * j, y, size - 1, size - 1
                parts.append(rect(*place, f"heat{level}", tip))
        key = left + size * n - 150 if n > 12 else left + size * n + 20
        parts += [rect(key + 12 * k, 12, 12, 10, f"heat{k}") for k in range(9)]
        parts.append(text(key - 4, 21, "0", "tick end"))
        parts.append(text(key + 113, 21, f"{largest:.3g}", "tick"))
        return joined(parts), 40 + size * n

    return figure(
        "redundancy",
        "Overlap of the kept features",
        f"Overlap by {history.result.measure} of each pair of the most relevant "
        "features, in order of relevance. Darker squares overlap more.",
        draw,
    )


def accuracy_figure(data: AccuracyCurve) -> Html:
    """Accuracy with the first 1, 2, … features, and that of the largest class."""
    low = float(min(data.baseline, (data.accuracy - data.spreads).min()))
    high = float(max(data.baseline, (data.accuracy + data.spreads).max()))
    reach = max(high - low, 0.02)
    limits = (max(0.0, low - 0.1 * reach), min(1.0, high + 0.1 * reach))

    def draw(width: int) -> tuple[Html, float]:
        x = (0.9, float(data.sizes[-1]) * 1.1)
        axes = Axes(54, width - 10, 46, 236, x, limits, x_log=True)
        entries = [
            (mark(0, 0, 0, "kept"), "accuracy ± one deviation"),
            (line(-6, 0, 8, 0, "threshold"), " the largest class"),
        ]
        axes.add(legend(entries, width)[0])
        axes.draw_grid(y_label="accuracy", n_x=0)
        for size in data.sizes[:: 1 if width > 500 else 2]:
            place = axes.at_x(float(size))
            axes.add(text(place, axes.bottom + 17, f"{size}", "tick middle"))
        axes.label("most relevant kept features", axes.bottom + 34)
        base = axes.at_y(data.baseline)
        axes.add(line(axes.left, base, axes.right, base, "threshold"))
        places = [
            (axes.at_x(float(s)), axes.at_y(float(a)))
            for s, a in zip(data.sizes, data.accuracy, strict=True)
        ]
        path = "M" + "L".join(f"{x},{y}" for x, y in places)
        axes.add(tag("path", d=path, class_="curve kept"))
        for i, (x_i, y_i) in enumerate(places):
            accuracy, spread = float(data.accuracy[i]), float(data.spreads[i])
            ends = axes.at_y(accuracy - spread), axes.at_y(accuracy + spread)
            axes.add(line(x_i, ends[0], x_i, ends[1], "spread kept"))
            tip = f"{data.sizes[i]} features: accuracy {accuracy:.3f} ± {spread:.3f}"
            axes.add(mark(0, x_i, y_i, "kept", tip))
        return joined(axes.parts), axes.bottom + 42

    return figure(
        "accuracy",
        "Accuracy with the first features",
        f"{data.classifier[0].upper()}{data.classifier[1:]}. The test rows took part "
        "in the selection, so that new data will show less: read where the curve "
        "levels off, not how high it is.",
        draw,
    )


def series(i: int) -> str:
    """Class of the marks of the i-th method."""
    return f"series{i % _N_SERIES}"


def _method_legend(methods: Sequence[str], width: int) -> tuple[Html, int]:
    shown = [visible(name, 40) for name in methods]
    return legend([(mark(i, 0, 0, series(i)), n) for i, n in enumerate(shown)], width)


def dots_figure(
    name: str,
    title: str,
    says: str,
    values: FloatArray,
    rows: Sequence[str],
    methods: Sequence[str],
    low: FloatArray,
    high: FloatArray,
    label: str,
) -> Html:
    """One row per data set, one mark per method, with the reach of each."""
    ends = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    limits = _tight(ends, is_log=False)

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        left = 130 if is_wide else 84
        drawn, height = _method_legend(methods, width)
        top = height + 10
        step = 12 + 13 * len(methods)
        bottom = top + step * len(rows)
        axes = Axes(left, width - 14, top, bottom, limits, (0, 1))
        axes.add(drawn)
        axes.draw_grid(label, n_y=0, n_x=5 if is_wide else 3)
        for i, row in enumerate(rows):
            begin = top + step * i
            if i:
                axes.add(line(4, begin, width - 4, begin, "grid"))
            shown = visible(row, 19 if is_wide else 11)
            axes.add(text(left - 10, begin + step / 2 + 4, shown, "tick end"))
            for j, method in enumerate(methods):
                y = begin + 12 + 13 * j
                value = float(values[i, j])
                if not np.isfinite(value):
                    words = f"{visible(method, 40)} on {visible(row, 40)}: no value"
                    dash = text(left + 2, y + 4, "–", f"tick {series(j)}")
                    axes.add(tag("g", dash, data_tip=words))
                    continue
                reach = axes.at_x(float(low[i, j])), axes.at_x(float(high[i, j]))
                if reach[1] > reach[0]:
                    axes.add(line(reach[0], y, reach[1], y, f"spread {series(j)}"))
                tip = f"{visible(method, 40)} on {visible(row, 40)}: {value:.4g}"
                if high[i, j] > low[i, j]:
                    tip += f" ({low[i, j]:.4g} to {high[i, j]:.4g})"
                axes.add(mark(j, axes.at_x(value), y, series(j), tip))
        return joined(axes.parts), bottom + 42

    return figure(name, title, says, draw)


def _tight(values: FloatArray, *, is_log: bool) -> tuple[float, float]:
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    if is_log:
        return low / 1.3, high * 1.3
    reach = (high - low) or max(abs(high), 1e-3) * 0.1
    return low - 0.06 * reach, high + 0.06 * reach


def scatter_figure(
    name: str,
    title: str,
    says: str,
    points: Sequence[tuple[float, float, int, str]],
    methods: Sequence[str],
    x_label: str,
) -> Html:
    """Points of (x, accuracy, method, detail); x is logarithmic if all are above 0."""
    found = np.array([(x, y) for x, y, _, _ in points], float).reshape(-1, 2)
    x_log = bool(len(points)) and float(found[:, 0].min()) > 0
    x, y = _tight(found[:, 0], is_log=x_log), _tight(found[:, 1], is_log=False)

    def draw(width: int) -> tuple[Html, float]:
        drawn, height = _method_legend(methods, width)
        top = height + 26
        axes = Axes(54, width - 14, top, top + 200, x, y, x_log=x_log)
        axes.add(drawn)
        axes.draw_grid(x_label, "accuracy", n_x=5 if width > 500 else 3)
        for x_i, y_i, method, tip in points:
            place = axes.at_x(x_i), axes.at_y(y_i)
            axes.add(mark(method, *place, f"{series(method)} see-through", tip))
        return joined(axes.parts), axes.bottom + 42

    return figure(name, title, says, draw)


def indistinguishable(
    ranks: FloatArray, critical_difference: float
) -> list[tuple[float, float]]:
    """First and last of the longest runs of sorted ranks that do not differ."""
    result: list[tuple[float, float]] = []
    last_end = -1
    for start in range(ranks.size):
        near = ranks - ranks[start] < critical_difference
        end = int(np.flatnonzero(near)[-1])
        if end > start and end > last_end:
            result.append((float(ranks[start]), float(ranks[end])))
            last_end = end
    return result


def ranks_figure(
    name: str,
    title: str,
    says: str,
    ranks: FloatArray,
    methods: Sequence[str],
    critical_difference: float,
) -> Html:
    """Demšar's diagram: average ranks on a line, equals joined by bars."""
    k, order = len(methods), np.argsort(ranks, kind="stable")
    bars = indistinguishable(ranks[order], critical_difference)

    def draw(width: int) -> tuple[Html, float]:
        is_wide = width > 500
        left, right = (150, width - 150) if is_wide else (20, width - 20)
        high = max(float(k), 1 + critical_difference)
        axes = Axes(left, right, 0, 1, (1, high), (0, 1))
        level = 70.0
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
        for place, j in enumerate(order):
            x, depth = axes.at_x(float(ranks[j])), y + 20 * place
            label = f"{visible(methods[j], 24)}  {ranks[j]:.2f}"
            is_left = place < (k + 1) // 2
            if is_wide:
                depth = y + 20 * (place if is_left else k - 1 - place)
                stop = left - 6 if is_left else right + 6
                path = f"M{x},{level}V{depth}H{stop}"
                axes.add(tag("path", d=path, class_="ink thin"))
                kind = "tick end" if is_left else "tick"
                axes.add(text(stop + (-5 if is_left else 5), depth + 4, label, kind))
            else:
                axes.add(tag("path", d=f"M{x},{level}V{depth}", class_="ink thin"))
                near_end = x > width / 2
                kind = "tick end" if near_end else "tick"
                axes.add(text(x + (-6 if near_end else 6), depth + 2, label, kind))
            tip = f"{visible(methods[j], 60)}: average rank {ranks[j]:.2f}"
            axes.add(mark(int(j), x, level, series(int(j)), tip))
        n_rows = (k + 1) // 2 if is_wide else k
        return joined(axes.parts), y + 20 * n_rows + 4

    return figure(name, title, says, draw)

"""The report of a selection: one HTML file that says what was found, and why."""

from __future__ import annotations

import os
import shlex
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from featstream.errors import ParameterError, printable, some_of, visible
from featstream.markup import Html, joined, short, tag
from featstream.protocols import Fate
from featstream.reporting import charts
from featstream.reporting.alerts import Alert, find_alerts
from featstream.reporting.charts import FATES, merged
from featstream.reporting.fates import pack_fates
from featstream.reporting.history import (
    INFORMATION,
    History,
    accuracy_curve,
    displaced_by,
    distribution,
    p_values,
    redundancy,
    removals,
    size_curve,
    timeline,
)
from featstream.reporting.page import cards, facts, page, score, table
from featstream.runs.folder import SHARED, replace_file

if TYPE_CHECKING:
    from featstream.progress import Progress
    from featstream.selectors.result import SelectionResult

MOST_ROWS = 1_000
"""Rows of a table in the page."""
_FEW_LINES = 12
_FEW_ROWS, _FEW_LIVES = 100, 60
"""Rows, and features of each fate in the timeline, of a page that is often redrawn."""


def write_page(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page in one step; only an earlier page of ours is replaced."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ParameterError(
            f"There is no folder {printable(target.parent)} for the report."
        )
    if target.exists() and not target.is_file():
        raise ParameterError(
            f"{printable(target)} is a folder, and a report is a file. "
            "Name a file such as report.html."
        )
    if target.exists():
        with open(target, "rb") as file:
            begin = file.read(400)
        if begin and b'name="generator" content="featstream' not in begin:
            raise ParameterError(
                f"{printable(target)} exists and is not a report that featstream has "
                "written. Choose another name."
            )
    content = text.encode("utf-8", "backslashreplace")
    replace_file(target, lambda file: file.write(content), mode=SHARED)
    return target


def selection_page(result: SelectionResult) -> str:
    """The report of a selection as HTML.

    Examples
    --------
    >>> from featstream import SAOLA
    >>> X = [[0, 0, 0], [0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1]]
    >>> result = SAOLA(measure="su").fit(X, [0, 0, 1, 1, 1, 0]).result_
    >>> text = selection_page(result)
    >>> text.count("<script"), "Who removed whom" in text
    (2, True)
    """
    history = History(result)
    packed = pack_fates(history)
    sections = [
        ("overview", "Overview", _overview(history)),
        ("course", "How it went", _course(history)),
        ("scores", "Scores", _scores(history)),
        ("kept", "Kept features", [_kept(history)]),
        ("groups", "Groups", _groups(getattr(result, "groups", None))),
        ("search", "Why was it dropped?", [_search(history, packed)]),
        ("provenance", "Provenance", [_provenance(history)]),
    ]
    return page(_title(result), _lead(history), sections, data=packed)


def live_page(result: SelectionResult) -> str:
    """The page of a run that has just begun."""
    history = History(result)
    pieces = live_pieces(history, None)
    sections = [
        ("overview", "Overview", [pieces["cards"]]),
        ("course", "How it goes", [pieces["figure-timeline"], pieces["figure-size"]]),
        ("kept", "Kept features", [pieces["kept-list"]]),
    ]
    return page(_title(result), _lead(history), sections, status=pieces["status"])


def live_pieces(history: History, progress: Progress | None) -> dict[str, Html]:
    """What changes while a run is under way, by the id of its element."""
    pieces = {
        "status": status(progress),
        "cards": _cards(history),
        "kept-list": _kept(history, is_live=True),
    }
    for name in ("figure-timeline", "figure-size"):
        pieces[name] = tag("figure", "Nothing has been drawn yet.", id=name)
    if history.has_course and bool((history.fates != 0).any()):
        data = timeline(history, (_FEW_LIVES, _FEW_LIVES))
        pieces["figure-timeline"] = charts.timeline_figure(data, history)
        pieces["figure-size"] = charts.size_figure(size_curve(history))
    return pieces


def status(progress: Progress | None) -> Html:
    """A line on how far a run is, which takes no time to draw."""
    look = {"class_": "status", "id": "status", "role": "status"}
    if progress is None:
        return tag("p", "Waiting for the first features.", **look)
    words, bar = f"{progress.n_seen:,} features", []
    if progress.n_features:
        share = progress.n_seen / progress.n_features
        words = f"{progress.n_seen:,} of {progress.n_features:,} features ({share:.0%})"
        bar = [tag("progress", value=progress.n_seen, max=progress.n_features)]
    if progress.seconds:
        words += f", {short(progress.n_seen / progress.seconds)} per second"
    return tag("p", f"{words}, {progress.n_kept:,} kept", *bar, **look)


def _title(result: SelectionResult) -> str:
    return f"{len(result):,} of {result.n_features:,} features"


def _lead(history: History) -> Html:
    result = history.result
    sources = [] if history.run is None else history.run.sources
    paths = [(source.get("data") or {}).get("path") for source in sources]
    files = ", ".join(os.path.basename(str(p).rstrip("/")) for p in paths if p)
    how = f"Selected by {result.selector} with the measure {result.measure}"
    where = [" from ", tag("bdi", visible(files))] if files else []
    return joined([how, *where, f", {result.n_samples:,} samples."])


def _overview(history: History) -> list[Html]:
    parts, alerts = [_cards(history)], find_alerts(history)
    gap = _gap(history)
    if gap:
        parts.append(tag("p", gap))
    if alerts:
        parts.append(tag("h3", "What to know before using it", class_="unseen"))
        parts.append(tag("ul", *map(_alert, alerts), class_="alerts"))
    return parts


def _alert(alert: Alert) -> Html:
    return tag(
        "li",
        tag("strong", alert.title),
        tag("code", alert.code, class_="code"),
        tag("p", visible(alert.text, 600)),
        tag("p", visible(alert.advice, 600), class_="advice"),
        class_="serious" if alert.is_serious else None,
    )


def _cards(history: History) -> Html:
    result, level = history.result, history.trace.level
    counts = history.trace.counts()
    n = max(1, result.n_features)

    def fate(name: str, remark: str, is_known: bool) -> tuple[str, str, str, str]:
        count, share = f"{counts[name]:,}", f"{counts[name] / n:.1%} {remark}"
        shown = (count, share) if is_known else ("–", "not recorded")
        return name.capitalize(), *shown, name

    rate, memory = "–", ("–", "not recorded")
    if result.seconds > 0:
        rate = f"{short(result.n_features / result.seconds)}/s"
    if result.peak_memory is not None:
        memory = f"{result.peak_memory / 2**20:,.0f} MB", "of the whole process"
    left = "others came first" if result.is_ranked else "kept for a time"
    target = "of a quantity" if history.is_numeric else ""
    if history.classes is not None:
        target = f"in {len(history.classes):,} classes"
    return cards(
        ("Arrived", f"{result.n_features:,}", "features seen"),
        ("Kept", f"{len(result):,}", f"{len(result) / n:.2%} of them", "kept"),
        fate("irrelevant", "below the threshold", level == "full"),
        fate("redundant", "covered by a kept one", level == "full"),
        fate("displaced", left, level is not None),
        ("Samples", f"{result.n_samples:,}", target),
        ("Rate", rate, f"{result.seconds:.3g} s in all"),
        ("Peak memory", *memory),
    )


def _gap(history: History) -> str:
    """What the selection may have lost, in a sentence; "" if nobody knows."""
    result = history.result
    if history.columns is None or result.measure not in INFORMATION or not len(result):
        return ""
    gap = result.gap_bound()
    text = (
        f"All other features together can add at most {gap.bits:.2g} bits about the "
        f"class to what is kept, which leaves these of {gap.entropy:.2g} open"
    )
    if 2 * gap.n_patterns > result.n_samples:
        text += (
            f"; but with {gap.n_patterns:,} different rows among {result.n_samples:,} "
            "samples this bound says little"
        )
    return f"{text} (gap_bound())."


def _with_table(
    figure: Html, numbers: Html, summary: str = "The same in numbers"
) -> Html:
    """A figure with the numbers behind it, for those who cannot see it."""
    details = tag("details", tag("summary", summary), numbers)
    return Html(f"{figure.removesuffix('</figure>')}{details}</figure>")


def _course(history: History) -> list[Html]:
    """How features came and went, if they were decided about one after the other."""
    if not history.has_course:
        return []
    data = timeline(history)
    counts, edges = merged(data.counts, data.edges, _FEW_LINES)
    rows = [
        [f"{begin:,} to {end - 1:,}", *(int(counts[fate][b]) for fate in FATES)]
        for b, (begin, end) in enumerate(pairwise(edges))
    ]
    numbers = table(["arrivals", *map(str, FATES)], rows)
    lives = charts.timeline_figure(data, history)
    return [
        _with_table(lives, numbers, "Fates in numbers"),
        charts.size_figure(size_curve(history)),
        *_removals(history),
    ]


def _removals(history: History) -> list[Html]:
    """Which features removed which others, if any did."""
    removed = removals(history)
    if not removed.families:
        return []
    rows = [
        [history.name(arrival), score(history.trace.relevance(arrival)), *counts]
        for arrival, *counts, _ in removed.families
    ]
    heads = ["feature", "relevance", "displaced", "made redundant"]
    drawn = charts.removals_figure(removed, history)
    return [_with_table(drawn, table(heads, rows))]


def _scores(history: History) -> list[Html]:
    found = []
    if history.is_traced and not history.has_course:
        found += _removals(history)
    if history.is_traced and len(history.trace):
        data = distribution(history)
        found.append(charts.distribution_figure(data, history.result.measure))
    pairs, curve = redundancy(history), accuracy_curve(history)
    if pairs is not None:
        names = [visible(history.result.names[i], 80) for i in pairs[0]]
        first, second = np.tril_indices(len(names), -1)
        values = pairs[1][first, second]
        rows = [
            [names[first[k]], tag("bdi", names[second[k]]), score(values[k])]
            for k in np.argsort(-values, kind="stable")[:_FEW_LINES]
        ]
        drawn = charts.redundancy_figure(pairs[1], names, history.result.measure)
        numbers = table(["feature", "and", "overlap"], rows)
        found.append(_with_table(drawn, numbers, "The largest overlaps"))
    if curve is not None:
        shown = zip(curve.sizes, curve.accuracy, curve.spreads, strict=True)
        rows = [[f"{n}", score(a, ".3f"), score(s, ".3f")] for n, a, s in shown]
        numbers = table(["features", "accuracy", "deviation"], rows)
        found.append(_with_table(charts.accuracy_figure(curve), numbers))
    return found


def _kept(history: History, *, is_live: bool = False) -> Html:
    """The table of kept features, the most relevant first."""
    result = history.result
    if not len(result):
        return tag("div", tag("p", "No feature is kept."), id="kept-list")
    most = _FEW_ROWS if is_live else MOST_ROWS
    order, notes = history.best[:most], []
    if len(result) > most:
        notes.append(
            f"The {most:,} most relevant of {len(result):,} are listed; "
            "to_csv() and selected.csv have all."
        )
    columns: dict[str, list[object]] = {
        "Feature": [visible(result.names[i]) for i in order],
        "Relevance": [score(found) for found in result.scores[order]],
        "Position": result.indices[order].tolist(),
    }
    chance = None if is_live else p_values(history)  # a live page must cost little
    if chance is not None:
        expected = (chance[order] * result.n_features).tolist()
        columns["By chance"] = [(number, _expected(number)) for number in expected]
        notes.append(
            "By chance: how many of as many unrelated features would be expected to "
            "score as high. From 1 on, marked with an exclamation mark, chance "
            "explains the score."
        )
    if history.is_traced and len(history.trace) and not is_live:
        removed, own = removals(history), displaced_by(history)
        n_removed = (removed.n_displaced + removed.n_redundant)[order]
        columns["Removed"] = n_removed.tolist()
        columns["Displaced"] = [
            some_of([history.name(a, 40) for a in own.get(arrival, [])], 3) or "–"
            for arrival in history.kept[order].tolist()
        ]
        notes.append(
            "Removed: features that it displaced or made redundant, itself or through "
            "those that it displaced. Displaced: those that it displaced itself."
        )
    tools = _field("filter", "Search", tag("output", id="filter-count", for_="filter"))
    listed = table(
        list(columns),
        zip(*columns.values(), strict=True),
        label="Kept features",
        name="kept-table",
        minor=("Position", "Displaced"),
    )
    below = tag("ul", *(tag("li", note) for note in notes), class_="notes")
    return tag("div", tools, listed, below if notes else "", id="kept-list")


def _field(name: str, label: str, *others: Html) -> Html:
    """A field to type in, with its label before it and others behind it."""
    field = Html(f'<input type="search" id="{name}" autocomplete="off">')
    return tag("div", tag("label", label, for_=name), field, *others, class_="tools")


def _expected(number: float) -> object:
    """A number of which the size alone matters, marked from 1 on.

    >>> _expected(0.000312), _expected(143.2)
    ('0.00031', '<span class="weak">140 !</span>')
    """
    rounded = float(f"{number:.2g}")
    text = f"{number:.1e}" if 0 < rounded < 1e-4 else short(rounded)
    return tag("span", f"{text} !", class_="weak") if number >= 1 else text


def _groups(groups: Any) -> list[Html]:
    if groups is None:
        return []
    order = np.argsort(-groups.n_kept, kind="stable")[:MOST_ROWS].tolist()
    rows = [
        [
            visible(groups.labels[i]),
            int(groups.n_features[i]),
            int(groups.n_kept[i]),
            str(Fate(groups.fates[i])),
        ]
        for i in order
    ]
    counts = groups.counts()
    said = (
        f"{counts['kept']:,} of {len(groups):,} groups have a kept feature; "
        f"{counts['irrelevant']:,} are irrelevant, {counts['redundant']:,} redundant, "
        f"{counts['displaced']:,} were displaced."
    )
    if len(groups) > MOST_ROWS:
        said += f" The {MOST_ROWS:,} with most kept features are listed."
    heads = ["Group", "Features", "Kept", "Fate"]
    return [tag("p", said), table(heads, rows, label="Groups", name="group-table")]


def _search(history: History, packed: dict[str, Any]) -> Html:
    """The form that says why a feature was kept or not."""
    folder = "RUN" if history.run is None else str(history.run.folder.path)
    command = shlex.join(["featstream", "explain", folder, "NAME"])
    button = tag("button", "Explain", type="submit")
    field = _field("why-name", "Name or position of a feature", button)
    form = tag("form", field, id="why", role="search")
    answer = tag("output", id="answer", for_="why-name", aria_live="polite")
    words = _searched(packed), " ", tag("code", visible(command))
    return tag("div", form, answer, tag("p", *words, class_="notes"), class_="panel")


def _searched(packed: dict[str, Any]) -> str:
    """What the search can find."""
    n, digits, named = packed["n"], packed.get("digits"), packed.get("named")
    if not n:
        return "This selection was made without a trace: nothing is recorded."
    which = {
        "all": f"All {n:,} features",
        "once kept": f"The {n:,} features that were ever kept",
        "first kept": f"The first {n:,} features that were kept",
    }
    said = f"{which[packed['scope']]} can be found here"
    if named in ("relevant", "once kept"):
        said += f", by name those that were {named}, by position the others"
    if digits == 2:
        said += "; scores are rounded to two digits"
    if packed["relevantOnly"]:
        said += f"; scores of {'irrelevant' if digits else 'all'} features are left out"
    return f"{said}. At the command line:"


def _provenance(history: History) -> Html:
    result, run = history.result, history.run
    reason = result.measure_reason
    because = f", because {reason}" if reason else ""
    target = "a quantity" if history.is_numeric else "not recorded"
    if history.classes is not None:
        sizes = [f"{visible(k, 40)} ({n:,})" for k, n in history.classes.items()]
        target = f"{len(sizes):,} classes: {some_of(sizes, _FEW_LINES)}"
    entries: list[tuple[str, object]] = [
        ("Selector", result.selector),
        ("Measure", result.measure + because),
        ("Parameters", ", ".join(f"{k}={v}" for k, v in result.parameters.items())),
        ("Target", target),
    ]
    for source in [] if run is None else run.sources:
        data = source.get("data") or {}
        path = data.get("path") or source.get("kind") or "data in memory"
        said = f"{path}, from feature {source['begin']:,} on"
        entries.append(("Data", visible(said, 600)))
        if source.get("fingerprint"):
            entries.append(("Fingerprint", tag("code", visible(source["fingerprint"]))))
    if run is not None:
        entries.append(("Run", visible(run.folder.path, 600)))
    entries.append(("Report made", datetime.now(UTC).isoformat(timespec="seconds")))
    again = "" if run is None else shlex.join(run.command or [])
    if not again:
        made = "selector" if history.origin is None else repr(history.origin)
        again = f"{' '.join(made.split())}.fit(X, y)"
    command = tag("pre", tag("code", visible(again, 4_000)))
    words = tag("p", "To reproduce it:")
    return tag("div", facts(entries), words, command, class_="panel")

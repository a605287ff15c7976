"""The command that shows what featstream does: ``featstream demo``."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from featstream.cli.main import JSON, adder, answer

_SHOWN = 15
_DROPPED = ("mr darcy", "miss woodhouse", "colonel brandon", "of the")
"""Features that a reader may miss among the selected ones."""

_say = partial(print, flush=True)


def _demo(arguments: argparse.Namespace) -> int:
    """Find the words that tell three novels of Jane Austen apart.

    The features are all words and pairs of words in 1,200 passages.
    """
    if not arguments.json:
        _say("Loading scikit-learn and 1,200 passages from three novels.")
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    from featstream.datasets import load_novels
    from featstream.parallel import compile_clock
    from featstream.selectors import SelectFromStream
    from featstream.sources import SparseSource

    novels = load_novels()
    is_held_out = np.arange(len(novels.texts)) % 4 == 3
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    read = [novels.texts[i] for i in np.flatnonzero(~is_held_out)]
    X, y = vectorizer.fit_transform(read), novels.target[~is_held_out]
    words = vectorizer.get_feature_names_out()
    if not arguments.json:
        _say(
            f"Each of {len(words):,} words and pairs of words is a feature of "
            f"{len(read)} passages.\n"
            f"Which of them tell {', '.join(novels.names[:-1])} and "
            f"{novels.names[-1]} apart?"
        )
        compile_clock.on_first = partial(
            _say,
            "Compiling kernels: this takes about five seconds, the first time only.",
        )
    selector = SelectFromStream().fit(SparseSource(X, words.tolist()), y)
    result = selector.result_
    tested = [novels.texts[i] for i in np.flatnonzero(is_held_out)]
    test = vectorizer.transform(tested), novels.target[is_held_out]
    shares = _accuracies(selector.selected_, (X, y), test)
    report = None
    if arguments.report is not None:
        report = result.report(arguments.report).resolve()
    if arguments.json:
        facts = {"accuracy_of_selected": shares[0], "accuracy_of_all": shares[1]}
        path = {"report": None if report is None else str(report)}
        return answer(arguments, result.to_dict() | facts | path)
    counts = result.trace.counts()
    _say(
        f"\n{len(result):,} are kept; {counts['irrelevant']:,} are irrelevant, "
        f"{counts['redundant'] + counts['displaced']:,} redundant "
        f"({result.seconds:.1f} s). The most relevant:\n"
    )
    _print_table(result, X, y, novels.names)
    _say("\nWhy others were dropped:")
    known = set(words.tolist())
    for word in _DROPPED:
        if word in known:
            _say(f"  {selector.explain(word)}")
    _say(
        f"\n{len(tested)} other passages, assigned to a novel by naive Bayes: "
        f"{shares[0]:.0%} right with the {len(result):,} features kept, "
        f"{shares[1]:.0%} with all {len(words):,}."
    )
    if report is not None:
        _say(f"\nThe report, to open in a browser: {report.as_uri()}")
    return 0


add_demo = adder(_demo, JSON, "--report FILE  write a page with figures")


def _accuracies(kept: Any, train: Any, test: Any) -> tuple[float, float]:
    """Accuracy on other passages: with the selected features, and with all."""
    from sklearn.naive_bayes import BernoulliNB

    (X, y), (X_test, y_test) = train, test
    few = BernoulliNB().fit(X[:, kept], y).score(X_test[:, kept], y_test)
    return float(few), float(BernoulliNB().fit(X, y).score(X_test, y_test))


def _print_table(result: Any, X: Any, y: Any, names: tuple[str, ...]) -> None:
    """The most relevant features, and in how many passages of each novel they are."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", no_wrap=True)
    table.add_column("relevance", justify="right")
    for name in names:
        table.add_column(f"in % of\n{name}", justify="right")
    occurs = X.tocsc() > 0
    for word, index, score in result.ranked()[:_SHOWN]:
        column = occurs[:, [index]].toarray().ravel()
        shares = [column[y == name].mean() for name in names]
        cells = [f"{100 * share:.0f}" if share else "-" for share in shares]
        table.add_row(word, f"{score:.3f}", *cells)
    Console(highlight=False, width=None if sys.stdout.isatty() else 80).print(table)

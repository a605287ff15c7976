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


def _demo(arguments: argparse.Namespace) -> int:
    """Find the words that tell three novels of Jane Austen apart.

    The features are all words and pairs of words in 1,200 passages.
    """

    def say(text: str) -> None:
        if not arguments.json:
            print(text, flush=True)

    say("Loading scikit-learn and 1,200 passages from three novels.")
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import BernoulliNB

    from featstream.datasets import load_novels
    from featstream.jit import compilation
    from featstream.selectors import SelectFromStream
    from featstream.sources import SparseSource

    novels = load_novels()
    texts = np.array(novels.texts)
    is_held_out = np.arange(texts.size) % 4 == 3
    read, tested = texts[~is_held_out], texts[is_held_out]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    X, y = vectorizer.fit_transform(read), novels.target[~is_held_out]
    X_test, y_test = vectorizer.transform(tested), novels.target[is_held_out]
    words = vectorizer.get_feature_names_out()
    say(
        f"Each of {len(words):,} words and pairs of words is a feature of "
        f"{len(read)} passages.\nWhich of them tell {', '.join(novels.names[:-1])} and "
        f"{novels.names[-1]} apart?"
    )
    once = "Compiling kernels: this takes about five seconds, the first time only."
    compilation.announce = partial(say, once)
    selector = SelectFromStream().fit(SparseSource(X, words.tolist()), y)
    result, kept = selector.result_, selector.selected_
    few = BernoulliNB().fit(X[:, kept], y).score(X_test[:, kept], y_test)
    whole = BernoulliNB().fit(X, y).score(X_test, y_test)
    report = arguments.report and result.report(arguments.report).resolve()
    if arguments.json:
        shares = {"accuracy_of_selected": float(few), "accuracy_of_all": float(whole)}
        path = {"report": report and str(report)}
        return answer(arguments, result.to_dict() | shares | path)
    counts = result.trace.counts()
    say(
        f"\n{len(result):,} are kept; {counts['irrelevant']:,} are irrelevant, "
        f"{counts['redundant'] + counts['displaced']:,} redundant "
        f"({result.seconds:.1f} s). The most relevant:\n"
    )
    _print_table(result, X, y, novels.names)
    say("\nWhy others were dropped:")
    for word in _DROPPED:
        say(f"  {selector.explain(word)}")
    say(
        f"\n{len(tested)} other passages, assigned to a novel by naive Bayes: "
        f"{few:.0%} right with the {len(result):,} features kept, {whole:.0%} with all "
        f"{len(words):,}."
    )
    if report:
        say(f"\nThe report, to open in a browser: {report.as_uri()}")
    return 0


add_demo = adder(_demo, JSON, "--report FILE  write a page with figures")


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

"""The command that compares selectors: ``featstream compare``."""

from __future__ import annotations

import argparse
import os
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from featstream.cli.main import (
    GROUPS,
    JSON,
    QUIET,
    READING,
    SCHEDULER,
    add_flags,
    answer,
    chosen_options,
    engine_of,
    groups_from_flags,
    refuse_input,
)
from featstream.cli.settings import change_settings
from featstream.errors import ParameterError, printable
from featstream.selectors.registry import SELECTORS

if TYPE_CHECKING:
    from featstream.evaluation import Experiment, ExperimentResult

_SELECTORS = "saola,saola-max,fast-osfs,alpha-investing"
_CLASSIFIERS = "knn,j48,svm"
_PROTOCOLS: dict[str, tuple[str, dict[str, str]]] = {
    "given": ("GivenSplit", {}),
    "splits": ("RandomSplits", {"--runs": "n_runs", "--test-size": "test_size"}),
    "cv": ("CrossValidation", {"--folds": "n_folds", "--runs": "n_repeats"}),
    "subsamples": ("Subsamples", {"--runs": "n"}),
    "orders": ("FeatureOrders", {"--runs": "n"}),
    "groups": ("RandomGroups", {"--runs": "n_runs", "--n-groups": "n_groups"}),
}
"""Class and parameters of each protocol, by the flags that set them."""
_FLAGS = f"""
data FILE...  files as for select; an .npz may hold a test part, X_test and y_test
--selectors NAMES  separated by commas (default: {_SELECTORS})
--classifiers NAMES  separated by commas (default: {_CLASSIFIERS})
--scale  give classifiers features of mean 0 and deviation 1 on training rows
-o, --output OUT  folder for the results; finished cells are saved there and reused
--test FILE  a file with test rows, for a single data file
--protocol {{{",".join(_PROTOCOLS)}}}  the given test part, random splits,
    cross-validation, subsamples of 4/5 that show how stable selections are, random
    orders or random groups of the features (default: given where there is a test part,
    otherwise splits)
--runs N  random splits or groups (default: 10), subsamples or orders (30), repetitions
    of cross-validation (1)
--folds K  of cross-validation (default: 10)
--test-size SIZE  share or number of the rows to test on (default: 1/3)
--n-groups N  random groups (default: 100)
--seed N  default: 0
--time-limit S  seconds for a selection, and for each classifier (default: 300)
--memory-limit SIZE  memory of each process (default: 2GB)
--jobs N  processes at a time (default: 1, which measures time best)
"""


def add_compare(compare: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    compare.description = (
        "Select features of data files with several selectors, and evaluate the "
        "selections by classifiers on test rows that no selector has seen."
    )
    compare.epilog = (
        "The same command continues where it was interrupted. Selectors: "
        f"{', '.join(SELECTORS)}. Classifiers: knn, j48, svm, decision-tree."
    )
    cluster = SCHEDULER.format("compute cells on a Dask cluster")
    types = {"test-size": _share, "output": Path}
    add_flags(compare, _FLAGS, cluster, JSON, QUIET, READING, GROUPS, **types)
    compare.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="SELECTOR.NAME=VALUE",
        help="a parameter of one of the selectors, or of its measure or test, as in "
        "--set fcbf.measure=su --set fcbf.measure__n_bins=2",
    )
    compare.set_defaults(
        run=_compare,
        keeps_cells=True,
        selectors=_SELECTORS,
        classifiers=_CLASSIFIERS,
        seed=0,
        time_limit=300.0,
        memory_limit="2GB",
    )


def _share(text: str) -> float | int:
    """A share such as 0.25 or 1/3, or a number of rows.

    >>> _share("1/4"), _share("60")
    (0.25, 60)
    """
    try:
        share = Fraction(text)
    except (ValueError, ZeroDivisionError):
        message = f"{text!r} is neither a share such as 0.25 nor a number of rows"
        raise argparse.ArgumentTypeError(message) from None
    return int(share) if text.isdecimal() else float(share)


def _compare(arguments: argparse.Namespace) -> int:
    from featstream.reporting import comparison_text, write_comparison

    output = arguments.output
    if output is not None:
        refuse_input(output, [*arguments.data, arguments.test, arguments.groups])
    experiment = _experiment(arguments)
    if output is not None and not arguments.quiet:
        _tell_of_other_settings(experiment, output)
    with engine_of(arguments) as engine:
        result = experiment.run(
            output, n_jobs=arguments.jobs, progress=not arguments.quiet, **engine
        )
    written = [] if output is None else write_comparison(result, output)
    width = os.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = [comparison_text(result, width)]
    if written:
        lines.append("\nwritten: " + ", ".join(map(str, written)))
    code = answer(arguments, _as_json(result), *lines)
    if len(result.failures()) == result.n_cells:
        print("featstream: error: nothing could be selected", file=sys.stderr)
        return 1
    return code


def _experiment(arguments: argparse.Namespace) -> Experiment:
    from featstream.evaluation import Experiment, RandomGroups, as_classifier, open_task

    n_files = len(arguments.data)
    for flag, value, hint in (
        ("--test", arguments.test, "Put test parts into .npz files, as X_test."),
        ("--groups", arguments.groups, "Use --group-size or --group-by."),
    ):
        if value is not None and n_files > 1:
            raise ParameterError(
                f"{flag} belongs to a single data file. Got {n_files}. {hint}"
            )
    protocol, groups = _protocol(arguments), groups_from_flags(arguments)
    if groups is not None and isinstance(protocol, RandomGroups):
        raise ParameterError(
            "--protocol groups draws groups at random, and --groups, --group-size and "
            "--group-by give others. Leave one out."
        )
    options = chosen_options(arguments)
    datasets = {
        name: partial(
            open_task, path, arguments.target, arguments.test, groups, **options
        )
        for name, path in _names(_once(arguments.data, "FILE")).items()
    }
    names = _once(_listed(arguments.classifiers), "--classifiers")
    classifiers = {name: as_classifier(name) for name in names}
    if arguments.scale:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        for name, classifier in classifiers.items():
            classifiers[name] = make_pipeline(StandardScaler(), classifier)
    return Experiment(
        _selectors(arguments),
        datasets,
        classifiers,
        protocol,
        seed=arguments.seed,
        time_limit=arguments.time_limit,
        memory_limit=arguments.memory_limit,
    )


def _selectors(arguments: argparse.Namespace) -> dict[str, Any]:
    """The selectors that are named, with the parameters that are set."""
    from featstream.evaluation import as_selector

    names = _once(_listed(arguments.selectors), "--selectors")
    selectors = {name: as_selector(name) for name in names}
    for setting in arguments.settings:
        name, dot, rest = setting.partition(".")
        if not dot or name not in selectors:
            raise ParameterError(
                f"--set takes SELECTOR.NAME=VALUE, with one of --selectors. Got "
                f"{printable(setting)}. Write --set {names[0]}.{setting}, say."
            )
        change_settings(selectors[name], [rest], flag=f"--set {name}.")
    return selectors


def _protocol(arguments: argparse.Namespace) -> Any:
    """The protocol that the flags describe; None if the data decide."""
    from featstream import evaluation

    given = {
        "--folds": arguments.folds,
        "--n-groups": arguments.n_groups,
        "--test-size": arguments.test_size,
        "--runs": arguments.runs,
    }
    given = {flag: value for flag, value in given.items() if value is not None}
    meant = {"--folds": "cv", "--n-groups": "groups"}
    name = arguments.protocol
    if name is None:
        name = next((meant.get(flag, "splits") for flag in given), None)
    if name is None:
        return None
    protocol, parameters = _PROTOCOLS[name]
    for flag in given:
        if flag not in parameters:
            raise ParameterError(f"{flag} has no meaning with --protocol {name}.")
    options = {parameters[flag]: value for flag, value in given.items()}
    return getattr(evaluation, protocol)(**options)


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _once(given: list[str], where: str) -> list[str]:
    """Refuse what is named twice, which would be compared once."""
    for name in given:
        if (n := given.count(name)) > 1:
            shown = printable(name)
            raise ParameterError(f"{where} has {shown} {n} times. Name it once.")
    return given


def _names(paths: list[str]) -> dict[str, str]:
    """Files by name, and by their paths where two have the same name."""
    short = [Path(path).name.partition(".")[0] or path for path in paths]
    return {
        path if short.count(name) > 1 else name: path
        for name, path in zip(short, paths, strict=True)
    }


def _tell_of_other_settings(experiment: Experiment, folder: Path) -> None:
    """Say so if the folder was last used for another comparison."""
    from featstream.evaluation.experiment import CellStore

    about = CellStore(folder).load()
    if about is None:
        return
    now, before = experiment.settings(), about["settings"]
    changed = [name for name in now if now[name] != before.get(name)]
    if changed:
        print(
            f"featstream: {folder} holds a comparison with other settings "
            f"({', '.join(changed)}). What fits is taken over; results.csv, tables.md "
            "and the figures are written anew.",
            file=sys.stderr,
        )


def _as_json(result: ExperimentResult) -> dict[str, Any]:
    comparisons = {}
    for classifier in result.classifiers:
        found = result.statistics("accuracy", classifier)
        comparisons[classifier] = {
            "average_ranks": dict(found.ranks),
            "friedman_p_value": found.friedman and found.friedman.p_value,
            "critical_difference": found.nemenyi and found.nemenyi.critical_difference,
            "win_tie_lose": {
                f"{ours} against {rival}": list(counts)
                for (ours, rival), counts in found.win_tie_lose.items()
            },
            "left_out": dict(found.left_out),
            "conclusion": found.conclusion,
        }
    return {"results": result.rows(), "statistics": comparisons, **result.about}

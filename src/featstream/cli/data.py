"""The commands that work on data files: ``convert | info``."""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from featstream.cli.main import (
    DATA,
    JSON,
    QUIET,
    READING,
    adder,
    answer,
    chosen_options,
    refuse_input,
)
from featstream.cli.select import about_target, target_line
from featstream.errors import ParameterError, as_bytes, printable, visible
from featstream.progress import shown

_FLAGS = """
data IN  a file as for select
store OUT.cols  folder to make
--memory SIZE  memory to stay below, such as 500MB or 2GB (default)
--jobs N  threads
"""


def _convert(arguments: argparse.Namespace) -> int:
    """Turn a data file into a column store.

    A store is read without being held in memory. The file may be of any size.
    """
    from featstream.sources import convert, is_svmlight, open_dataset

    path = Path(arguments.store)
    if path.suffix.lower() != ".cols":
        raise ParameterError(
            f"A column store is a folder whose name ends in .cols. Got "
            f"{printable(path)}. Use {path.stem}.cols."
        )
    refuse_input(path, [arguments.data, arguments.target])
    began = time.perf_counter()
    options: dict[str, Any] = {"memory": as_bytes(arguments.memory, "memory")}
    given = chosen_options(arguments)
    with nullcontext() if arguments.quiet else shown(_describe) as display:
        if display is not None:
            options["progress"] = lambda *state: display(state)
        data, options["n_jobs"] = arguments.data, arguments.jobs
        if not is_svmlight(data) or arguments.target is not None or given:
            dataset = open_dataset(data, arguments.target, **given)
            data, options["y"] = dataset.source, dataset.y
        store = convert(data, path, **options)
    seconds = time.perf_counter() - began
    facts = {
        "store": str(path),
        "n_samples": store.n_samples,
        "n_features": store.n_features,
        "n_entries": store.n_entries,
        "dtype": str(store.dtype),
        "fingerprint": store.fingerprint,
        "seconds": round(seconds, 3),
    }
    return answer(arguments, facts, f"{path}: {store!r}, {seconds:.1f} s")


add_convert = adder(_convert, _FLAGS, JSON, QUIET, READING, memory="2GB")


def _describe(state: tuple[str, int, int], seconds: float) -> list[str]:
    """One line about the stage, and the part of it that is done."""
    stage, done, total = state
    return [f"{stage}  {done / max(1, total):.0%}"]


def _info(arguments: argparse.Namespace) -> int:
    """Describe a data file, and say which measure suits it; or describe a run."""
    if Path(arguments.data, "run.json").exists():
        from featstream.cli.runs import describe_run

        return describe_run(arguments)
    from featstream.measures.inputs import propose_measure
    from featstream.protocols import SparseColumns
    from featstream.sources import open_dataset, open_features

    options = chosen_options(arguments)
    if arguments.target is None:
        dataset = open_features(arguments.data, **options)
    else:
        dataset = open_dataset(arguments.data, arguments.target, **options)
    source = dataset.source
    facts: dict[str, Any] = {
        "file": str(arguments.data),
        "n_samples": source.n_samples,
        "n_features": source.n_features,
        "storage": None,
        "dtype": None,
        "first_features": [],
        "target": None,
        "measure": None,
        "measure_reason": "there are no features",
    }
    first = next(iter(source.blocks()), None)
    if first is not None and first.n_columns:
        columns = first.columns
        values = columns.values if isinstance(columns, SparseColumns) else columns
        choice = propose_measure([first], 256)
        facts |= {
            "storage": "sparse" if first.is_sparse else "dense",
            "dtype": str(values.dtype),
            "first_features": [first.name(i) for i in range(min(5, first.n_columns))],
            "measure": choice.name,
            "measure_reason": choice.reason,
        }
    if dataset.y is not None:
        facts["target"] = about_target(dataset.y, dataset.target_name)
    n_features = "?" if source.n_features is None else f"{source.n_features:,}"
    line = f"{facts['file']}: {facts['n_samples']:,} samples × {n_features} features"
    lines = [line]
    if facts["storage"] is not None:
        shown = ", ".join(visible(name) for name in facts["first_features"])
        has_more = source.n_features is None or source.n_features > 5
        lines = [f"{line}, {facts['storage']} {facts['dtype']}"]
        lines.append(f"features: {shown}{', ...' if has_more else ''}")
    if facts["target"] is None:
        lines.append(
            "target: none is called y, target, class or label; name it with --target"
        )
    else:
        lines.append(target_line(facts["target"]))
    if facts["measure"] is not None:
        lines.append(f"measure: {facts['measure']}, because {facts['measure_reason']}")
    return answer(arguments, facts, *lines)


add_info = adder(_info, DATA, JSON, READING)

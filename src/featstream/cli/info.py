"""The command that looks at data or at a run: ``featstream info``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from featstream.cli.main import DATA, JSON, READING, add_flags, chosen_options
from featstream.cli.select import about_target, plain, target_line


def add_info(info: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    info.description = (
        "Describe a data file, and say which measure suits it; or describe a run."
    )
    add_flags(info, DATA, JSON, READING)
    info.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> int:
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
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return 0
    n_features = "?" if source.n_features is None else f"{source.n_features:,}"
    line = f"{facts['file']}: {facts['n_samples']:,} samples × {n_features} features"
    if facts["storage"] is None:
        print(line)
    else:
        print(f"{line}, {facts['storage']} {facts['dtype']}")
        shown = ", ".join(plain(name) for name in facts["first_features"])
        has_more = source.n_features is None or source.n_features > 5
        print(f"features: {shown}{', ...' if has_more else ''}")
    if facts["target"] is None:
        print("target: none is called y, target, class or label; name it with --target")
    else:
        print(target_line(facts["target"]))
    if facts["measure"] is not None:
        print(f"measure: {facts['measure']}, because {facts['measure_reason']}")
    return 0

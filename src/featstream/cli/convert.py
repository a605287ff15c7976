"""The command that makes a column store: ``featstream convert``."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from featstream.cli.main import (
    JSON,
    QUIET,
    READING,
    SCHEDULER,
    add_flags,
    chosen_options,
    engine_of,
    refuse_input,
)
from featstream.errors import ParameterError, as_bytes, printable
from featstream.progress import shown

_FLAGS = """
data IN  a file as for select
store OUT.cols  folder to make
--memory SIZE  memory to stay below, such as 500MB or 2GB (default); on a cluster, that
    of a task
--jobs N  threads
"""


def add_convert(convert: argparse.ArgumentParser) -> None:
    """Add the flags of the command."""
    convert.description = (
        "Turn a data file into a column store, which is read without being held in "
        "memory. The file may be of any size."
    )
    cluster = SCHEDULER.format("convert a svmlight file on a Dask cluster")
    add_flags(convert, _FLAGS, cluster, JSON, QUIET, READING, memory=_size, store=Path)
    convert.set_defaults(run=_convert, memory=2 << 30)


def _size(text: str) -> int:
    """Number of bytes, or an error of the flag."""
    try:
        return as_bytes(text, "--memory")
    except ParameterError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _convert(arguments: argparse.Namespace) -> int:
    from featstream.sources import convert, is_svmlight, open_dataset

    if arguments.store.suffix.lower() != ".cols":
        raise ParameterError(
            f"A column store is a folder whose name ends in .cols. Got "
            f"{printable(arguments.store)}. Use {arguments.store.stem}.cols."
        )
    refuse_input(arguments.store, [arguments.data, arguments.target])
    began = time.perf_counter()
    options: dict[str, Any] = {"memory": arguments.memory, "n_jobs": arguments.jobs}
    given = chosen_options(arguments)
    with nullcontext() if arguments.quiet else shown(_describe) as display:
        if display is not None:
            options["progress"] = lambda *state: display(state)
        is_plain = arguments.target is None and not given
        if arguments.scheduler is not None:
            if not is_svmlight(arguments.data) or not is_plain or arguments.jobs:
                raise ParameterError(
                    "--scheduler is for svmlight files, which are parsed by the "
                    "workers, without --jobs and the flags of other formats."
                )
            store = _convert_on_cluster(arguments, options.get("progress"))
        elif is_svmlight(arguments.data) and is_plain:
            store = convert(arguments.data, arguments.store, **options)
        else:
            dataset = open_dataset(arguments.data, arguments.target, **given)
            store = convert(dataset.source, arguments.store, y=dataset.y, **options)
    seconds = time.perf_counter() - began
    facts = {
        "store": str(arguments.store),
        "n_samples": store.n_samples,
        "n_features": store.n_features,
        "n_entries": store.n_entries,
        "dtype": str(store.dtype),
        "fingerprint": store.fingerprint,
        "seconds": round(seconds, 3),
    }
    if arguments.json:
        print(json.dumps(facts, indent=2))
    else:
        print(f"{arguments.store}: {store!r}, {seconds:.1f} s")
    return 0


def _convert_on_cluster(arguments: argparse.Namespace, progress: Any) -> Any:
    from featstream.engines import as_engine, convert_svmlight

    with engine_of(arguments) as given:
        engine = as_engine(given["engine"])
        assert engine is not None
        return convert_svmlight(
            arguments.data,
            arguments.store,
            engine,
            memory=arguments.memory,
            progress=progress,
        )


def _describe(state: tuple[str, int, int], seconds: float) -> list[str]:
    """One line about the stage, and the part of it that is done."""
    stage, done, total = state
    return [f"{stage}  {done / max(1, total):.0%}"]

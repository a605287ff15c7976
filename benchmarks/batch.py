"""Batch selectors and their peers from PyPI: CPU seconds, and the same selections.

``python -m benchmarks.batch [--limit SECONDS] [--own]`` runs each method in a process
of its own, after a warm-up on a slice, in the environments of `benchmarks.peers`.
With ``--own`` no peer is installed or run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.peers import python_for
from benchmarks.timing import binary, continuous, sparse_binary

SCRIPT = """
import json, time, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
path = {path!r}
X = np.load(path) if path.endswith(".npy") else sp.load_npz(path)
y = np.load(path + ".y.npy")
{setup}
whole, X = X, X[:, :{warm_up}]
{call}
X = whole
began = time.process_time()
found = {call}
seconds = time.process_time() - began
sums = []
for _ in range(5):
    began = time.process_time()
    X.sum()
    sums.append(time.process_time() - began)
print(json.dumps([seconds, min(sums), [int(str(j).lstrip("x")) for j in found]]))
"""


class Method(NamedTuple):
    """What is timed on a data set; ``peer`` names the environment, none for ours."""

    data: str
    setup: str
    call: str
    peer: str = ""


F = "FisherZ(alpha=0.999999)"
METHODS = {
    "FCBF": Method(
        "800 x 2k binary",
        "from featstream import FCBF",
        "FCBF(measure='su').fit(X, y).selected_",
    ),
    "fcbf": Method(
        "800 x 2k binary",
        "import pandas as pd; from fcbf import fcbf",
        "fcbf(pd.DataFrame(X).add_prefix('x'), pd.Series(y, name='y'), 0.0)[0]",
        "fcbf",
    ),
    "MRMR (50)": Method(
        "300 x 20k continuous",
        "from featstream import MRMR, FisherZ",
        f"MRMR(50, scheme='quotient', measure={F}).fit(X, y).selected_",
    ),
    "mrmr-selection (50)": Method(
        "300 x 20k continuous",
        "import pandas as pd; from mrmr import mrmr_classif",
        "mrmr_classif(pd.DataFrame(X), pd.Series(y), K=50, n_jobs=1, "
        "show_progress=False)",
        "mrmr-selection",
    ),
    **{
        f"{name} (50), {label}": Method(
            data,
            f"from featstream import {name}",
            f"{name}(50, measure='mi').fit(X, y).selected_",
        )
        for data, label in (("800 x 20k binary", "binary"), ("sparse", "sparse"))
        for name in ("MRMR", "JMI", "CMIM")
    },
    "FCBF, sparse": Method(
        "sparse",
        "from featstream import FCBF",
        "FCBF(measure='su').fit(X, y).selected_",
    ),
    "IAMB, sparse": Method(
        "sparse",
        "from featstream import IAMB",
        "IAMB(test='g2').fit(X, y).selected_",
    ),
}


def save(folder, name):
    """Write a data set; its path."""
    if name == "sparse":
        X, y = sparse_binary(10_000, 200_000)
    elif "continuous" in name:
        X, y = continuous(300, 20_000)
    else:
        X, y = binary(800, 2_000 if "2k" in name else 20_000)
    path = str(folder / f"{name}.{'npz' if sp.issparse(X) else 'npy'}")
    if sp.issparse(X):
        sp.save_npz(path, sp.csc_matrix(X), compressed=False)
    else:
        np.save(path, X)
    np.save(path + ".y.npy", y)
    return path


def run(method, path, limit):
    """Seconds, those of a pass, and the features; or why there are none."""
    python = python_for(method.peer) if method.peer else sys.executable
    script = SCRIPT.format(
        path=path,
        setup=method.setup,
        call=method.call,
        warm_up=200 if method.peer else 5000,
    )
    command = [python, "-c", script]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"exceeded {limit:g} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:70]}"
    return json.loads(done.stdout.splitlines()[-1])


def main():
    """Run all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--own", action="store_true", help="leave out the peers")
    arguments = parser.parse_args()
    paths, ours = {}, {}
    print("| method | data | CPU seconds | passes of np.sum | beside ours |")
    print("|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, method in METHODS.items():
            if method.peer and arguments.own:
                continue
            if method.data not in paths:
                paths[method.data] = save(Path(folder), method.data)
            found = run(method, paths[method.data], arguments.limit)
            row = f"| {name} | {method.data} |"
            if isinstance(found, str):
                print(f"{row} {found} | | |", flush=True)
                continue
            seconds, one_pass, selected = found
            beside = ""
            if not method.peer:
                ours[method.data] = ours.get(method.data, found)
            elif method.data in ours:
                own = ours[method.data]
                ratio, is_same = seconds / own[0], set(selected) == set(own[2])
                beside = f"{ratio:,.0f} times, {'same' if is_same else 'other'} set"
                if not is_same:
                    beside += f" ({len(set(selected) & set(own[2]))} shared)"
            passes = seconds / one_pass
            print(f"{row} {seconds:.3f} | {passes:,.1f} | {beside} |", flush=True)


if __name__ == "__main__":
    main()

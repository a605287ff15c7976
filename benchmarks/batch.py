"""Batch selectors and their peers: CPU seconds, and whether they select the same.

``python -m benchmarks.batch [--limit SECONDS] [--own] [NAME ...]`` runs each method in
a process of its own, after a warm-up on a slice, in the environments of
`benchmarks.peers`. A peer that needs more than the limit of CPU time is stopped, and
the ratio is then a lower bound. praznik takes part if R has it, and news20 if it is
in the shared folder. With ``--own`` no peer is run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.peers import python_for
from benchmarks.timing import (
    as_matrix,
    binary,
    continuous,
    shared_set,
    sparse_binary,
)

PYTHON = """
import json, resource, time, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
path = {path!r}
X = np.load(path) if path.endswith(".npy") else sp.load_npz(path)
y = np.load(path + ".y.npy")
{setup}
whole, X = X, X[:, :{warm_up}]
{call}
X = whole
used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
resource.setrlimit(resource.RLIMIT_CPU, (int(used) + {limit}, int(used) + {limit} + 5))
def mean_time(call):  # some systems count CPU time in steps of 10 ms
    began, rounds = time.process_time(), 0
    while True:
        found, rounds = call(), rounds + 1
        took = time.process_time() - began
        if took >= 0.5:
            return took / rounds, found
seconds, found = mean_time(lambda: {call})
one_pass, _ = mean_time(X.sum)
found = [int(str(j).lstrip("x")) for j in found]
print(json.dumps([seconds, one_pass, found]))
"""

R = """
n <- {n}
X <- matrix(readBin({path!r}, "integer", n * {p}, size = 1), n)
X <- as.data.frame(lapply(seq_len(ncol(X)), function(j) factor(X[, j])))
y <- factor(readBin("{path}.y", "integer", n, size = 1))
began <- proc.time()
found <- {call}
took <- sum((proc.time() - began)[1:2])
cat(sprintf("[%f, null, [%s]]\\n", took, paste(found$selection - 1, collapse = ",")))
"""


class Method(NamedTuple):
    """What is timed on a data set; ``peer`` names the environment, none for ours."""

    data: str
    setup: str
    call: str
    peer: str = ""
    is_ranked: bool = True


FCBF_PACKAGE = """
import sys, pandas as pd
from fcbf import fcbf
module = sys.modules["fcbf.fcbf"]
gain = module.information_gain
def information_gain(*values, **options):
    try:
        return gain(*values, **options)
    except RuntimeError:  # it takes 0 less rounding for an error
        return 0.0
module.information_gain = information_gain
"""

SKGLM = """
from skglm.datafits import LogisticGroup
from skglm.penalties import WeightedGroupL2
from skglm.solvers import GroupBCD
from skglm.utils.data import grp_converter
def solve(X, y):
    n, p = X.shape
    Z = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    places, starts = grp_converter([list(range(j, j + 10)) for j in range(0, p, 10)], p)
    prices = np.full(p // 10, 0.05 * np.sqrt(10))
    penalty = WeightedGroupL2(1.0, prices, starts, places)
    fit, signs = LogisticGroup(starts, places), np.where(y > 0, 1.0, -1.0)
    solver = GroupBCD(fit_intercept=True, tol=1e-6, max_iter=1000)
    return np.flatnonzero(solver.solve(Z, signs, fit, penalty)[0][:p])
"""

METHODS = {
    "FCBF": Method(
        "800 x 2k binary",
        "from featstream import FCBF",
        "FCBF(measure='su').fit(X, y).selected_",
    ),
    "fcbf": Method(
        "800 x 2k binary",
        FCBF_PACKAGE,
        "fcbf(pd.DataFrame(X).add_prefix('x'), pd.Series(y, name='y'), 0.0)[0]",
        "fcbf",
        is_ranked=False,
    ),
    "MRMR (50), F": Method(
        "300 x 20k continuous",
        "from featstream import MRMR",
        "MRMR(50, scheme='quotient', measure='fisher-z').fit(X, y).selected_",
    ),
    "mrmr-selection (50)": Method(
        "300 x 20k continuous",
        "import pandas as pd; from mrmr import mrmr_classif",
        "mrmr_classif(pd.DataFrame(X), pd.Series(y), K=50, n_jobs=1, "
        "show_progress=False)",
        "mrmr-selection",
    ),
    **{
        name: method
        for own in ("MRMR", "JMI", "CMIM")
        for name, method in {
            f"{own} (50), mi": Method(
                "800 x 20k binary",
                f"from featstream import {own}",
                f"{own}(50, measure='mi').fit(X, y).selected_",
            ),
            f"praznik {own} (50)": Method(
                "800 x 20k binary",
                "",
                f"praznik::{own}(X, y, k = 50, threads = 1)",
                "R",
            ),
        }.items()
    },
    "GroupLassoSelector": Method(
        "800 x 20k binary",
        "from featstream import GroupLassoSelector as GroupLasso",
        "GroupLasso().fit(X, y, groups=np.arange(X.shape[1]) // 10).selected_",
    ),
    "skglm, group lasso": Method(
        "800 x 20k binary", SKGLM, "solve(X, y)", "skglm", is_ranked=False
    ),
    **{
        f"{own} (50), sparse": Method(
            "10k x 200k sparse",
            f"from featstream import {own}",
            f"{own}(50, measure='mi').fit(X, y).selected_",
        )
        for own in ("MRMR", "JMI", "CMIM")
    },
    "FCBF, sparse": Method(
        "10k x 200k sparse",
        "from featstream import FCBF",
        "FCBF(measure='su').fit(X, y).selected_",
    ),
    "IAMB, sparse": Method(
        "10k x 200k sparse",
        "from featstream import IAMB",
        "IAMB(test='g2').fit(X, y).selected_",
    ),
    **{
        f"{own} (260)": Method(
            "news20",
            f"from featstream import {own}",
            f"{own}(260, plane_size=10).fit(X, y).selected_",
        )
        for own in ("FGM", "GDM")
    },
}
"""A peer follows the method of ours that it is compared with."""


def save(folder, name):
    """Write a data set; its path and shape. None if it is not there."""
    if name == "news20":
        found = shared_set("news20_bigram")
        if found is None:
            return None
        X, y = sp.hstack([as_matrix(block) for block in found[0].blocks()]), found[1]
    elif "sparse" in name:
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
        X.T.astype(np.int8).tofile(path + ".raw")
    np.save(path + ".y.npy", y)
    y.astype(np.int8).tofile(path + ".raw.y")
    return path, X.shape


def run(method, data, limit):
    """CPU seconds, those of a pass, and the features; or why there are none."""
    path, shape = data
    if method.peer == "R":
        n, p = shape
        script = R.format(path=path + ".raw", n=n, p=p, call=method.call)
        command = ["Rscript", "-e", script]
    else:
        script = PYTHON.format(
            path=path,
            setup=method.setup,
            call=method.call,
            warm_up=50 if method.peer else 5000,
            limit=limit,
        )
        python = python_for(method.peer) if method.peer else sys.executable
        command = [python, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0:
        return f"stopped after {limit} CPU s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1][:70]}"
    return json.loads(done.stdout.splitlines()[-1])


def compare(found, own, *, is_ranked):
    """How many times our time a peer took, and whether it selects the same."""
    seconds, _, selected = found
    text = f"{seconds / own[0]:,.0f} times"
    if is_ranked and selected == own[2]:
        return f"{text}, same features in the same order"
    if set(selected) == set(own[2]):
        return f"{text}, same set"
    return f"{text}, {len(set(selected) & set(own[2]))} of {len(own[2])} shared"


def row(name, method, found, limit, own):
    """The line of a method."""
    beside = ""
    if isinstance(found, str):
        if found.startswith("stopped") and own:
            beside = f"at least {limit / own[0]:,.0f} times"
        return f"| {name} | {method.data} | {found} | | {beside} |"
    seconds, one_pass, _ = found
    if method.peer and own:
        beside = compare(found, own, is_ranked=method.is_ranked)
    passes = f"{seconds / one_pass:,.0f}" if one_pass else ""
    return f"| {name} | {method.data} | {seconds:.3f} | {passes} | {beside} |"


def main():
    """Run all, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="methods to run (default: all)")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds of a peer")
    parser.add_argument("--own", action="store_true", help="leave out the peers")
    arguments = parser.parse_args()
    has_r = False
    if shutil.which("Rscript") and not arguments.own:
        look = ["Rscript", "-e", "library(praznik)"]
        has_r = subprocess.run(look, capture_output=True).returncode == 0
    paths, own = {}, None
    print("| method | data | CPU seconds | passes of np.sum | beside ours |")
    print("|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, method in METHODS.items():
            if arguments.names and name not in arguments.names:
                continue
            if method.peer and (arguments.own or (method.peer == "R" and not has_r)):
                continue
            if method.data not in paths:
                paths[method.data] = save(Path(folder), method.data)
            if paths[method.data] is None:
                continue
            found = run(method, paths[method.data], arguments.limit)
            print(row(name, method, found, arguments.limit, own), flush=True)
            if not method.peer:
                own = None if isinstance(found, str) else found


if __name__ == "__main__":
    main()

"""Ours, the peers and the physical limit, side by side in one run.

``python -m benchmarks.peers [--limit SECONDS] [--large]`` installs the peers into
environments of their own (``benchmarks/out``), runs each method on each shape in a
process of its own after a warm-up on a slice, and writes ``benchmarks/out/peers.md``
and ``peers.png``. A method that exceeds the limit, or cannot take the shape, says so.
praznik takes part if R has it, and the authors' own library (LOFS) if octave-cli is
installed and ``LOFS_HOME`` names its folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

OUT = Path(__file__).parent / "out"
PACKAGES = {
    "peers": [
        "numpy",
        "scipy",
        "scikit-learn",
        "pandas",
        "mrmr-selection",
        "fast-select",
        "skfeature-chappers",
    ],
    "fcbf": ["fcbf", "numpy<2", "pandas<2", "scipy"],  # it fails with later ones
    "skglm": ["skglm"],
}
"""What is installed into which environment."""

WARM_UP = 200
OWN_WARM_UP = 5000  # columns, so that every kernel has been compiled
LIMIT = "np.sum (memory)"


class Method(NamedTuple):
    """What to time: on which data, after which preparation, in which language.

    ``X`` and ``y`` are loaded. Dense methods are not given sparse shapes, nor discrete
    ones continuous shapes.
    """

    takes: str
    setup: str
    call: str
    language: str = "python"


METHODS = {
    LIMIT: Method("any", "", "X.sum()"),
    "SAOLA": Method(
        "any",
        "from featstream import SAOLA, SymmetricalUncertainty as SU\n"
        "threshold = 0.001 if '16M' in path else 0.0\n"
        "s = SAOLA(measure=SU(threshold=threshold) if discrete else 'fisher-z')",
        "s.fit(X, y)",
    ),
    "f_classif": Method(
        "any",
        "from sklearn.feature_selection import f_classif",
        "f_classif(X, y)",
    ),
    "chi2": Method(
        "discrete",
        "from sklearn.feature_selection import chi2",
        "chi2(X, y)",
    ),
    "mutual_info_classif": Method(
        "discrete",
        "from sklearn.feature_selection import mutual_info_classif as mi",
        "mi(X, y, discrete_features=True)",
    ),
    "fcbf": Method(
        "dense discrete",
        "import pandas as pd; from fcbf import fcbf",
        "fcbf(pd.DataFrame(X).add_prefix('x'), pd.Series(y, name='y'), 0.0)",
    ),
    "skfeature FCBF": Method(
        "dense discrete",
        "from skfeature.function.information_theoretical_based.FCBF import fcbf",
        "fcbf(X, y, delta=0.0)",
    ),
    "mrmr-selection (K=20)": Method(
        "dense",
        "import pandas as pd; from mrmr import mrmr_classif",
        "mrmr_classif(pd.DataFrame(X), pd.Series(y), K=20, n_jobs=1, "
        "show_progress=False)",
    ),
    "fast-select mRMR (20)": Method(
        "dense discrete",
        "from fast_select import mRMR",
        "mRMR(n_features_to_select=20).fit(X, y)",
    ),
    "praznik MRMR (20)": Method(
        "dense discrete",
        "X <- as.data.frame(matrix(as.integer(X), nrow(X)))",
        "invisible(praznik::MRMR(X, factor(y), k = 20, threads = 1))",
        "R",
    ),
    "LOFS SAOLA": Method(
        "dense",
        "addpath(genpath(getenv('LOFS_HOME')));",
        "if discrete, saola_mi([X y], 0); else, saola_z_test([X y], 0.01); end",
        "octave",
    ),
}

SCRIPTS = {
    "python": """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, scipy.sparse as sp
path, discrete = {path!r}, {discrete}
if path.endswith(".npy"):
    X = np.load(path)
else:
    X = sp.load_npz(path)
y = np.load(path + ".y.npy")
{setup}
whole, X = X, X[:, :{warm_up}]
{call}
X = whole
began = time.perf_counter()
{call}
print("seconds", time.perf_counter() - began)
""",
    "R": """
X <- matrix(readBin({path!r}, "numeric", {n} * {p}, size = 4), {n}, {p})
y <- readBin("{path}.y", "numeric", {n}, size = 4)
{setup}
whole <- X
X <- X[, 1:{warm_up}]
{call}
X <- whole
began <- Sys.time()
{call}
cat("seconds", as.numeric(Sys.time() - began, units = "secs"), "\\n")
""",
    "octave": """
f = fopen({path!r}); X = fread(f, [{n} {p}], "single"); fclose(f);
f = fopen("{path}.y"); y = fread(f, Inf, "single"); fclose(f);
discrete = {discrete:d};
{setup}
whole = X; X = X(:, 1:{warm_up});
{call}
X = whole;
began = tic;
{call}
printf("seconds %.6f\\n", toc(began));
""",
}


def available_methods():
    """All methods but those in other languages that are not installed."""
    has = {"python": True, "R": False, "octave": False}
    if shutil.which("Rscript"):
        look = ["Rscript", "-e", "library(praznik)"]
        has["R"] = subprocess.run(look, capture_output=True).returncode == 0
    has["octave"] = bool(shutil.which("octave-cli") and os.environ.get("LOFS_HOME"))
    absent = [name for name, m in METHODS.items() if not has[m.language]]
    if absent:
        print(f"(left out, not installed: {', '.join(absent)})")
    return [name for name in METHODS if name not in absent]


def shapes(folder, *, with_large):
    """Write the data sets; yields (name, path, kinds)."""
    from benchmarks.timing import (
        as_matrix,
        binary,
        continuous,
        hashed_log,
        shared_set,
        sparse_binary,
    )

    def save(name, X, y, kinds):
        path = str(folder / f"{name}.{'npz' if sp.issparse(X) else 'npy'}")
        if sp.issparse(X):
            sp.save_npz(path, sp.csc_matrix(X), compressed=False)
        else:
            np.save(path, X)
        np.save(path + ".y.npy", y)
        return name, path, kinds

    yield save("800 x 20k binary", *binary(800, 20_000), "dense discrete")
    yield save("300 x 20k continuous", *continuous(300, 20_000), "dense continuous")
    yield save("1k x 100k continuous", *continuous(), "dense continuous")
    yield save("10k x 200k sparse", *sparse_binary(10_000, 200_000), "sparse discrete")
    found = shared_set("news20_bigram")
    if found is not None:
        matrix = sp.hstack([as_matrix(block) for block in found[0].blocks()])
        yield save("news20 bigrams", matrix, found[1], "sparse discrete")
    if with_large:
        X, y = hashed_log(20_000, 16_000_000)
        yield save("20k x 16M sparse", X, y, "sparse discrete")


def run(method, path, kinds, limit):
    """Seconds, or why there are none."""
    takes, setup, call, language = METHODS[method]
    if takes != "any" and not set(takes.split()) <= set(kinds.split()):
        return "not for such data"
    facts = {"path": path, "discrete": "discrete" in kinds}
    if language != "python":
        facts |= as_raw(path)
    script = SCRIPTS[language].format(
        setup=setup,
        call=call,
        warm_up=OWN_WARM_UP if method == "SAOLA" else WARM_UP,
        **facts,
    )
    command = {
        "python": lambda: [python_for(method), "-c", script],
        "R": lambda: ["Rscript", "-e", script],
        "octave": lambda: ["octave-cli", "-q", "--eval", script],
    }[language]()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"exceeded {limit:g} s"
    for line in done.stdout.splitlines():
        if line.startswith("seconds "):
            return float(line.split()[1])
    reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
    return f"failed: {reason[:60]}"


def as_raw(path):
    """Write dense data as plain single-precision numbers, column by column."""
    X, y, raw = np.load(path), np.load(path + ".y.npy"), path + ".f4"
    X.T.astype(np.float32).tofile(raw)
    y.astype(np.float32).tofile(raw + ".y")
    return {"path": raw, "n": X.shape[0], "p": X.shape[1]}


def python_for(method):
    """The interpreter of a method's environment, made on first use."""
    if method == "SAOLA":
        return sys.executable
    name = method if method in PACKAGES else "peers"
    home = OUT / name
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        install = [python, "-m", "pip", "install", "-q", *PACKAGES[name]]
        subprocess.run(install, check=True)
    return str(python)


def write_table(results, names):
    lines = ["| method | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for method, cells in results.items():
        shown = []
        for name in names:
            cell, limit = cells[name], results[LIMIT][name]
            is_time = isinstance(cell, float)
            shown.append(f"{cell / limit:,.1f}" if is_time else cell)
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    text = "Time as a multiple of one `np.sum` over the same data:\n\n"
    (OUT / "peers.md").write_text(text + "\n".join(lines) + "\n")
    return "\n".join(lines)


def draw(results, names):
    """A row a shape, a mark a method, by how many passes over memory it takes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    height = 0.55 * len(names) + 1.4
    figure, ax = plt.subplots(figsize=(9, height), layout="constrained")
    colours = iter(
        [
            "#E69F00",
            "#56B4E9",
            "#009E73",
            "#CC79A7",
            "#8C7B00",
            "#999999",
            "#0072B2",
            "#000000",
        ]
    )
    markers = iter("sv^DPX<>")
    for method, cells in results.items():
        times = [(cells[name], results[LIMIT][name], i) for i, name in enumerate(names)]
        ended = [(t / limit, -i) for t, limit, i in times if isinstance(t, float)]
        stopped = [
            (float(t.split()[1]) / limit, -i)
            for t, limit, i in times
            if isinstance(t, str) and t.startswith("exceeded")
        ]
        if method == LIMIT or not (ended or stopped):
            continue
        style = {"marker": "o", "color": "#D55E00", "s": 90, "zorder": 3}
        if method != "SAOLA":
            style = {"marker": next(markers), "color": next(colours), "s": 45}
        colour, label = style.pop("color"), method
        for points, fill in ((ended, colour), (stopped, "none")):
            if points:
                x, y = np.array(points).T
                ax.scatter(x, y, label=label, facecolor=fill, edgecolor=colour, **style)
                label = None
    ax.axvline(1.0, color="0.4", linewidth=1)
    ax.set_xscale("log")
    ax.set_yticks([-i for i in range(len(names))], names)
    ax.set_xlabel("time, in passes over the data (np.sum); hollow: stopped by then")
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(left=False)
    ax.legend(
        fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5)
    )
    figure.savefig(OUT / "peers.png", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--large", action="store_true", help="also 20k x 16M")
    arguments = parser.parse_args()
    folder = OUT / "data"
    folder.mkdir(parents=True, exist_ok=True)
    methods = available_methods()
    results = {method: {} for method in methods}
    names = []
    for name, path, kinds in shapes(folder, with_large=arguments.large):
        names.append(name)
        for method in methods:
            cell = run(method, path, kinds, arguments.limit)
            results[method][name] = cell
            print(f"{name:<22} {method:<24} {cell}", flush=True)
    print(write_table(results, names))
    draw(results, names)


if __name__ == "__main__":
    main()

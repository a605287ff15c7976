"""How long the first use takes: CPU seconds of new processes, imports included.

``python -m benchmarks.first_use``. Every line is a new process. The cache of
compiled kernels is empty before the first line of a section, and then shared.
Python's own bytecode is there, as pip leaves it.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

from benchmarks.timing import SHARED, table

_START = """
import sys, numpy as np, scipy.sparse as sp
from featstream import SAOLA
folder, rng = sys.argv[1], np.random.default_rng(0)
y = rng.integers(0, 2, 500)
def fit(measure, X):
    SAOLA(measure=measure).fit(X, y)
"""
_WRITE = """
from featstream.sources import as_source, write_store
write_store(folder + "/x.cols", as_source(X))
if not sp.issparse(X):
    np.save(folder + "/x.npy", X)
"""
_VALUES = "X = np.asfortranarray(rng.normal(size=(500, 2000)) + 2 * y[:, None])\n"
_COUNTS = "X = np.asfortranarray(rng.integers(0, 3, (500, 2000)) + y[:, None])\n"
_RARE = "X = rng.random((500, 2000)) < 0.05 * (1 + y[:, None])\n"
_RARE += "X = sp.csc_array(X * rng.integers(1, 3, X.shape))\n"
_MADELON = str(SHARED / "data" / "madelon.npz")
_SELECT = f"""
from featstream import SAOLA
SAOLA(measure="fisher-z").fit({_MADELON!r})
"""
_COMMAND = f"""
import sys
from featstream.cli import main
sys.argv = ["featstream", "select", {_MADELON!r}]
main()
"""
_FORMS = [
    ("float32", "X.astype(np.float32)"),
    ("row-major", "np.ascontiguousarray(X)"),
    (".npy", "np.load(folder + '/x.npy', mmap_mode='r')"),
    (".cols", "folder + '/x.cols'"),
]
SECTIONS = {
    "fisher-z, dense": ("fisher-z", _VALUES, 8.0, _FORMS),
    "su, sparse": (
        "su",
        _RARE,
        12.0,
        [_FORMS[0], ("row-major", "sp.csr_array(X)"), _FORMS[3]],
    ),
    "su, dense": ("su", _COUNTS, None, _FORMS),
    "fisher-z, sparse": ("fisher-z", _RARE, None, [_FORMS[0], _FORMS[3]]),
}


def cpu_seconds(code: str, folder: str, cache: str = "cache") -> float:
    """CPU time of a new process that runs the code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "NUMBA_CACHE_DIR": os.path.join(folder, cache)}
    env["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "bytecode")
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code, folder]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(names: list[str]) -> None:
    """Print the table; the arguments choose sections."""
    for name, (measure, data, first, forms) in SECTIONS.items():
        if names and not any(wanted in name for wanted in names):
            continue
        with tempfile.TemporaryDirectory() as folder:
            cpu_seconds(_START + data + _WRITE, folder, "other cache")
            begin = f"{_START}{data}fit({measure!r}, "
            wanted = "" if first is None else f"at most {first:g}"
            rows = [("first", cpu_seconds(begin + "X)", folder), wanted)]
            again = cpu_seconds(begin + "X)", folder)
            rows.append(("warm", again, ""))
            for form, expression in forms:
                more = cpu_seconds(f"{begin}{expression})", folder) - again
                rows.append((f"then {form}: more", more, "at most 1.5"))
            if name == "fisher-z, dense" and (SHARED / "data").is_dir():
                for what, code in {"fit": _SELECT, "select": _COMMAND}.items():
                    cpu_seconds(code, folder)
                    began = time.perf_counter()
                    madelon = cpu_seconds(code, folder)
                    wall = time.perf_counter() - began
                    rows.append((f"warm, madelon, {what}", madelon, "at most 1.5"))
                    rows.append(("on the clock", wall, "at most 1.5"))
        table(rows, name)


if __name__ == "__main__":
    main(sys.argv[1:])

"""How kernels are compiled: by documented options of numba alone.

A kernel that Python calls is a `kernel`; one that only other kernels call is `inner`,
and is compiled into them. Kernels that create arrays say ``allocates=True``.

There is no ``fastmath``: selections depend on ties and NaN, and sums must not depend on
the machine that compiled them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
import typing
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial, update_wrapper
from pathlib import Path
from typing import Any

import numba
from numba.extending import overload, register_jitable

Function = Callable[..., Any]

_COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

_WITHOUT_COUNTING = {"_nrt": False}
"""Without this numba counts references to each array that is read from a tuple, which
takes up to fifty times as long as comparing two columns. It is the one option with an
underscore that is used here; the docstring of `numba.extending.register_jitable` has it
as its example ("disable runtime allocation")."""

_PATIENCE = 1.0
"""Seconds of the first call of a kernel after which its compilation is announced."""


class Kernel:
    """A compiled function that Python calls; other kernels can call it as well.

    The first call with arguments of some types compiles it for them, or loads it from
    the cache on disk; `compilation` measures that.
    """

    def __init__(self, function: Function, *, allocates: bool) -> None:
        update_wrapper(self, function)
        self.py_func = function
        options: Any = _COMMON if allocates else _COMMON | _WITHOUT_COUNTING
        self._compiled: Any = _cached(function, options)
        self._n_types = 0
        inside = overload(self, jit_options=options, strict=False)
        inside(lambda *kinds: function)

    @property
    def signatures(self) -> list[Any]:
        """The types of arguments for which the kernel is compiled."""
        return list(getattr(self._compiled, "signatures", ()))

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        compiled = self._compiled
        began = time.perf_counter()
        if self._n_types:
            result = compiled(*arguments)
        else:
            with compilation.announced():
                result = compiled(*arguments)
        n_types = len(getattr(compiled, "overloads", (None,)))
        if n_types != self._n_types:
            self._n_types = n_types
            compilation.add(began, time.perf_counter())
        return result


class Compilation:
    """The time that the first calls of kernels take, and how it is announced."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.announce: Callable[[], None] | None = None
        """Called once, when the first call of a kernel takes long."""
        self._lock = threading.Lock()
        self._end = 0.0

    def add(self, began: float, ended: float) -> None:
        """Count a first call; what overlaps with those of other threads counts once."""
        with self._lock:
            self.seconds += max(0.0, ended - max(began, self._end))
            self._end = max(self._end, ended)

    @contextmanager
    def announced(self) -> Iterator[None]:
        """Announce the block if it takes longer than `_PATIENCE`."""
        if self.announce is None:
            yield
            return
        timer = threading.Timer(_PATIENCE, self._announce)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _announce(self) -> None:
        with self._lock:
            announce = self.announce
            self.announce = None
        if announce is not None:
            announce()


compilation = Compilation()


@typing.overload
def kernel(function: Function) -> Kernel: ...
@typing.overload
def kernel(*, allocates: bool) -> Callable[[Function], Kernel]: ...
def kernel(function: Function | None = None, *, allocates: bool = False) -> Any:
    """Compile a function that Python calls; cached on disk, without the GIL.

    Unless it ``allocates``, it creates no arrays (views are fine).
    """
    if function is None:
        return partial(kernel, allocates=allocates)
    return Kernel(function, allocates=allocates)


@typing.overload
def inner(function: Function) -> Function: ...
@typing.overload
def inner(*, allocates: bool) -> Callable[[Function], Function]: ...
def inner(function: Function | None = None, *, allocates: bool = False) -> Any:
    """Compile a function that kernels call into these kernels.

    Python can call it as well, as the plain function that it is.
    """
    if function is None:
        return partial(inner, allocates=allocates)
    return register_jitable(**_inner_options(allocates=allocates))(function)


def _inner_options(*, allocates: bool) -> Any:
    if allocates:
        return dict(_COMMON)
    return {**_COMMON, **_WITHOUT_COUNTING, "forceinline": True}


_warned: list[str] = []


def _cached(function: Function, options: dict[str, Any]) -> Any:
    try:
        with _caching_in(_cache_folder()):
            return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        if not _warned:
            _warned.append(str(error))
            warnings.warn(
                "Compiled kernels cannot be cached: neither the folder of featstream "
                "nor your cache folder is writable, so that every process compiles "
                "again. Set NUMBA_CACHE_DIR to a folder that is writable.",
                RuntimeWarning,
                stacklevel=2,
            )
        return numba.njit(**options)(function)


_CONFIG: Any = numba.config
_PACKAGE = Path(__file__).parent
_CACHE = "featstream-"  # begins the name of a cache folder
_N_CACHES = 4
"""Cache folders that are kept: of these sources, and of others used last."""
_HOUR = 3600.0
_IMPORTED = re.compile(rb"^from featstream\.([\w.]+) import", re.MULTILINE)
_USES_KERNELS = re.compile(rb"featstream\.jit import [^\n]*\b(inner|kernel|by_type)")


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """Let numba cache what is decorated in here below a folder.

    ``numba.config.CACHE_DIR`` is the documented variable NUMBA_CACHE_DIR. It is read
    once per kernel, when that is decorated, and set back afterwards: the kernels of
    other libraries stay where they were.
    """
    before = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _CONFIG.CACHE_DIR = before


@cache
def _cache_folder() -> Path:
    """The folder of the kernels that these sources give.

    Numba compiles a kernel again when its own file has changed, but not when a kernel
    or a constant of another file has. So each state of the sources has a folder of its
    own, which nothing older can be in. It is below NUMBA_CACHE_DIR, if that is set,
    or where numba would cache as well: beside the sources or, if these cannot be
    written to, in the user's cache folder.
    """
    places = [_PACKAGE / "__pycache__", _user_cache() / "featstream"]
    if _CONFIG.CACHE_DIR:
        places = [Path(_CONFIG.CACHE_DIR)]
    checksum = source_checksum(_PACKAGE)
    for place in places:
        folder = place / f"{_CACHE}{checksum}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        _forget_old_caches(folder)
        return folder
    raise RuntimeError(f"cannot cache kernels: {places[-1]} is not writable")


def _user_cache() -> Path:
    """Where the programs of a user keep what they can make again."""
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(given) if given else Path(os.path.expanduser("~"), ".cache")


def source_checksum(package: Path) -> str:
    """Checksum of the files with kernels, and of those that these import from.

    The files are read, because size and time do not tell one state from another: git
    restores files within the same second. It takes some milliseconds. Modules that no
    kernel sees are left out, so that changing a command compiles nothing again.
    """
    texts = {path: path.read_bytes() for path in package.rglob("*.py")}
    if not texts:
        raise RuntimeError(f"cannot cache kernels: {package} holds no sources")
    has_kernels = [p for p, t in texts.items() if _USES_KERNELS.search(t)]
    relevant = {package / "jit.py", *has_kernels}
    for path in has_kernels:
        for module in _IMPORTED.findall(texts[path]):
            place = package.joinpath(*module.decode().split("."))
            relevant |= {place.with_suffix(".py"), place / "__init__.py"} & texts.keys()
    # Numba's own index does not know whether accesses are checked.
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for path in sorted(relevant):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode())
        digest.update(hashlib.sha256(texts[path]).digest())
    return digest.hexdigest()[:16]


def _forget_old_caches(own: Path) -> None:
    """Note that a cache is in use; remove all but those that were used last.

    Another process may remove a folder at the same time, or use it: numba makes it
    again, and compiles.
    """
    now = time.time()
    with suppress(OSError):
        if now - own.stat().st_mtime > _HOUR / 2:
            os.utime(own)
        used = {path: path.stat().st_mtime for path in own.parent.glob(f"{_CACHE}*")}
        for folder in sorted(used, key=used.__getitem__)[:-_N_CACHES]:
            if now - used[folder] > _HOUR:  # processes that run may be its users
                shutil.rmtree(folder, ignore_errors=True)


def plain(function: Any) -> Function:
    """A kernel as plain Python; what it calls is that anyway."""
    found: Function = getattr(function, "py_func", function)
    return found


def by_types(choose: Callable[..., Function], *, allocates: bool = False) -> Function:
    """One inner function for several: ``choose`` finds it by the arguments' types."""
    find_plain = cache(lambda *types: plain(choose(*types)))

    def run(*given: Any) -> Any:
        return find_plain(*map(type, given))(*given)

    @overload(run, jit_options=_inner_options(allocates=allocates), strict=False)
    def find(*kinds: Any) -> Any:
        # The type of a named tuple knows its class.
        types = (getattr(kind, "instance_class", None) for kind in kinds)
        return find_plain(*types)

    return run


def by_type(functions: dict[Any, Function]) -> Function:
    """The same for functions that allocate; the type of the first argument decides."""
    return by_types(lambda first, *_: functions[first], allocates=True)

"""How kernels are compiled: the only module that knows numba's private options.

Kernels that Python calls use `jit`, or `lean` if they create no arrays. Kernels
that only other kernels call use `inner_jit` or `inner`: they get no entry points for
Python and C, and are only optimised as part of the kernel that calls them. Named tuples
of arrays are passed `by_reference`. If numba has changed so that this fails
(`is_numba_known`), kernels are compiled as usual, which takes longer.

There is no ``fastmath``: selections depend on ties and NaN, and sums must not depend on
the machine that compiled them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, reduce
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cpu import CPUTargetOptions
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    overload,
    register_model,
    typeof_impl,
    unbox,
)

Kernel = Callable[..., Any]
AnyTuple = TypeVar("AnyTuple", bound=type)

_COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_warned: list[str] = []


def accepted(**wanted: Any) -> dict[str, Any]:
    """The options that this version of numba knows; the others only save time."""
    return {name: wanted[name] for name in wanted if hasattr(CPUTargetOptions, name)}


def _compiler_of_inner() -> dict[str, Any]:
    """The option by which inner kernels are only optimised with their callers."""
    try:
        from numba.core import codegen, compiler, typed_passes
        from numba.core.compiler_machinery import PassManager, register_pass

        class Deferred(codegen.JITCodeLibrary):
            """The code of a kernel, not optimised."""

            def _optimize_functions(self, module: Any) -> None:
                module.data_layout = self._codegen._data_layout

            def _optimize_final_module(self) -> None:
                pass

            def _finalize_final_module(self) -> None:
                self._finalize_dynamic_globals()
                self._finalized = True

        @register_pass(mutates_CFG=True, analysis_only=False)
        class LowerOnly(typed_passes.NativeLowering):
            _name = "lower_only"

            def run_pass(self, state: Any) -> bool:
                context, flags = state.targetctx, state.flags
                name = state.func_id.func_qualname
                state.library = Deferred(context.codegen(), name)
                state.flags = flags.copy()
                state.flags.no_compile = True
                super().run_pass(state)
                state.flags = flags
                # Numba looks code up by the function that Python would call.
                nobody: list[None] = []
                key, lowered = nobody.append, state["cr"]
                context.insert_user_function(key, lowered.fndesc, [state.library])
                reload = getattr(state.library, "_reload_init", ())
                state.reload_init.extend(reload)
                state["cr"] = lowered._replace(cfunc=key)
                return True

        class InnerCompiler(compiler.Compiler):
            def define_pipelines(self) -> list[Any]:
                if not is_numba_known():
                    return list(super().define_pipelines())
                build = compiler.DefaultPassBuilder.define_nopython_pipeline
                manager = PassManager("inner")
                for step, reason in build(self.state).passes:
                    is_last = step is typed_passes.NativeLowering
                    manager.add_pass(LowerOnly if is_last else step, reason)
                manager.finalize()
                return [manager]

    except (ImportError, AttributeError):
        return {}
    return {"pipeline_class": InnerCompiler}


_LEAN = _COMMON | accepted(_nrt=False)
_NO_ENTRY = accepted(no_cpython_wrapper=True, no_cfunc_wrapper=True)
_INNER_JIT = _COMMON | _NO_ENTRY | _compiler_of_inner()
INNER: Any = _LEAN | _INNER_JIT | accepted(forceinline=True)
"""Options of `inner`, for `numba.extending.overload`."""


def jit(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls; cached on disk, without the GIL."""
    return _cached(function, _COMMON)


def lean(function: Kernel) -> Kernel:
    """Compile a kernel that Python calls and that creates no arrays (views are fine).

    Otherwise numba counts references to each array that is read from a tuple, which
    takes fifty times as long as comparing two columns.
    """
    return _cached(function, _LEAN)


def inner_jit(function: Any, options: dict[str, Any] = _INNER_JIT) -> Kernel:
    """Compile a kernel that only kernels call; it is cached as part of them."""
    compiled: Kernel = numba.njit(**options)(function)
    return compiled


def inner(function: Kernel) -> Kernel:
    """Compile a kernel that creates no arrays into the kernels that call it."""
    return inner_jit(function, INNER)


def _cached(function: Kernel, options: dict[str, Any]) -> Kernel:
    try:
        with _caching_in(_cache_folder()):
            compiled: Kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        compiled = numba.njit(**options)(function)
        if not _warned:
            _warned.append(str(error))
            warnings.warn(
                "Compiled kernels cannot be cached: neither the folder of featstream "
                "nor your cache folder is writable, so that every process compiles "
                "again. Set NUMBA_CACHE_DIR to a folder that is writable.",
                RuntimeWarning,
                stacklevel=2,
            )
    return compiled


_CONFIG: Any = numba.config
_PACKAGE = Path(__file__).parent
_CACHE = "featstream-"  # begins the name of a cache folder
_N_CACHES = 4
"""Cache folders that are kept: of these sources, and of others used last."""
_HOUR = 3600.0
_IMPORTED = re.compile(rb"^from featstream\.([\w.]+) import", re.MULTILINE)


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
    has_kernels = [p for p, t in texts.items() if b"featstream.jit" in t]
    relevant = {package / "jit.py", *has_kernels}
    for path in has_kernels:
        for module in re.findall(
            rb"^from featstream\.([\w.]+) import", texts[path], re.M
        ):
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


class Record(types.Type):
    """The type of a named tuple that is passed as a pointer to its fields.

    An array takes five words and two per dimension, in numba's own layout.
    """

    def __init__(self, instance_class: Any, fields: tuple[Any, ...]) -> None:
        self.instance_class = instance_class
        self.fields = dict(zip(instance_class._fields, fields, strict=True))
        names = ", ".join(field.name for field in fields)
        owner = f"{instance_class.__module__}.{instance_class.__qualname__}"
        super().__init__(f"{owner}({names})")

    @property
    def mangling_args(self) -> tuple[str, tuple[int, ...]]:
        """A short name, as numba writes it at every call."""
        return self.instance_class.__name__, (crc32(self.name.encode()),)

    def n_words(self, context: Any, until: str | None = None) -> int:
        """Words of all fields, or of those before one."""
        total = 0
        for name, field in self.fields.items():
            if name == until:
                break
            if isinstance(field, Record):
                total += field.n_words(context)
            elif isinstance(field, types.Array):
                total += 5 + 2 * field.ndim
            else:
                kind = context.get_data_type(field)
                total += -(-context.get_abi_sizeof(kind) // 8)
        return total


register_model(Record)(models.OpaqueModel)
_WORD = ir.IntType(64)


def by_reference(tuple_class: AnyTuple) -> AnyTuple:
    """Pass these named tuples to kernels as one pointer.

    Passed as seven numbers each, forty arrays take most of the time to compile.
    """

    @typeof_impl.register(tuple_class)
    def find_type(given: Any, context: Any) -> Any:
        if not is_numba_known():
            return typeof_impl.dispatch(tuple)(given, context)
        fields = tuple(typeof_impl(field, context) for field in given)
        return Record(tuple_class, fields)

    return tuple_class


def _place(builder: Any, pointer: Any, n_words: int) -> Any:
    return builder.gep(pointer, [ir.Constant(_WORD, 8 * n_words)])


@unbox(Record)
def _unbox_record(record: Record, given: Any, c: Any) -> NativeValue:
    space = ir.ArrayType(_WORD, record.n_words(c.context))
    pointer = c.builder.bitcast(cgutils.alloca_once(c.builder, space), c.pyapi.voidptr)
    natives = list(_store_fields(record, given, pointer, c))
    errors = [native.is_error for native in natives]
    # `_load_field` declares that fields are never written. If LLVM saw that they are
    # written here, it would take them for undefined.
    same = ir.FunctionType(c.pyapi.voidptr, [c.pyapi.voidptr])
    constraint = "=r,0,~{memory}"
    pointer = c.builder.asm(same, "", constraint, [pointer], side_effect=True)

    def clean_up() -> None:
        for native in natives:
            if native.cleanup is not None:
                native.cleanup()

    is_error = reduce(c.builder.or_, errors, cgutils.false_bit)
    return NativeValue(pointer, is_error=is_error, cleanup=clean_up)


def _store_fields(record: Record, given: Any, pointer: Any, c: Any) -> Iterator[Any]:
    builder, pyapi = c.builder, c.pyapi
    kind = ir.FunctionType(ir.IntType(32), [pyapi.pyobj, pyapi.voidptr])
    adapt = cgutils.get_or_insert_function(builder.module, kind, "numba_adapt_ndarray")
    for k, (name, field) in enumerate(record.fields.items()):
        item = pyapi.tuple_getitem(given, k)
        place = _place(builder, pointer, record.n_words(c.context, name))
        if isinstance(field, Record):
            yield from _store_fields(field, item, place, c)
        elif isinstance(field, types.Array):
            builder.call(adapt, [item, place])
        else:
            native = c.unbox(field, item)
            place = builder.bitcast(place, c.context.get_data_type(field).as_pointer())
            c.context.pack_value(builder, field, native.value, place)
            yield native


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = Record

    def generic_resolve(self, record, name):
        return record.fields.get(name)


@lower_getattr_generic(Record)
def _load_field(
    context: Any, builder: Any, record: Record, pointer: Any, name: str
) -> Any:
    field = record.fields[name]
    place = _place(builder, pointer, record.n_words(context, name))
    if isinstance(field, Record):
        return place
    if not isinstance(field, types.Array):
        place = builder.bitcast(place, context.get_data_type(field).as_pointer())
        return context.unpack_value(builder, field, place)

    def load(kind: Any, n_words: int) -> Any:
        address = _place(builder, place, n_words)
        loaded = builder.load(builder.bitcast(address, kind.as_pointer()))
        # Nothing writes to a record: what was loaded need not be loaded again.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    array, n = context.make_array(field)(context, builder), field.ndim
    shape = [load(_WORD, 5 + k) for k in range(n)]
    strides = [load(_WORD, 5 + n + k) for k in range(n)]
    array.shape = cgutils.pack_array(builder, shape)
    array.strides = cgutils.pack_array(builder, strides)
    array.data, array.nitems = load(array.data.type, 4), reduce(builder.mul, shape)
    array.itemsize = load(_WORD, 3)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


@by_reference
class _Trial(NamedTuple):
    values: Any
    scale: float


@inner
def _scale_last(trial):
    return trial.values[-1, -1] * trial.scale


@lean
def _try(trial):
    return _scale_last(trial)


_ARRAY = "meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides"
_is_known: bool | None = None


def is_numba_known() -> bool:
    """Whether the private parts of numba are as expected; tried once per process."""
    global _is_known
    if _is_known is not None:
        return _is_known
    _is_known = True  # for the kernels of the trial
    given = np.arange(12.0).reshape(3, 4)[:, 1:3]
    try:
        from numba.core.datamodel.registry import default_manager

        model: Any = default_manager.lookup(numba.typeof(given))
        is_as_expected = model._fields == _ARRAY and _try(_Trial(given, 0.5)) == 5.0
        _is_known = bool(is_as_expected)
    except Exception:
        _is_known = False
    if not _is_known:
        warnings.warn(
            f"numba {numba.__version__} is not known to featstream: kernels take "
            "longer to compile.",
            RuntimeWarning,
            stacklevel=2,
        )
    return _is_known


@cache
def plain(kernel: Kernel) -> Kernel:
    """The kernel, and all kernels that it calls, as plain Python."""
    function = getattr(kernel, "py_func", kernel)
    known = function.__globals__
    called = {
        name: plain(known[name])
        for name in function.__code__.co_names
        if hasattr(known.get(name), "py_func")
    }
    own = function.__name__, function.__defaults__, function.__closure__
    return FunctionType(function.__code__, {**known, **called}, *own)


checks_types = False
"""Whether `call_known` checks the types at every call, as in tests."""

_entry_points: dict[Any, Any] = {}
_known_types: dict[Any, list[str]] = {}


def call_known(kernel: Kernel, key: Any, *arguments: Any) -> Any:
    """Call a kernel with arguments of the same types for the same key.

    Otherwise numba determines the types of tuples at every call, which takes longer
    than to decide about a feature. Arguments of other types would be misread.
    """
    entry = _entry_points.get((kernel, key))
    if entry is None or checks_types:
        if not hasattr(kernel, "overloads"):  # plain Python
            return kernel(*arguments)
        types = tuple(map(numba.typeof, arguments))
        # Read-only or not, an array is read in the same way.
        names = [found.name.replace("readonly ", "") for found in types]
        if names != _known_types.setdefault((kernel, key), names):
            raise AssertionError(f"{kernel} for {key} has other types now: {names}")
        if entry is None:
            entry = kernel.compile(types)  # type: ignore[attr-defined]
            _entry_points[kernel, key] = entry
    return entry(*arguments)


def by_types(choose: Callable[..., Kernel], options: Any = INNER) -> Kernel:
    """One function for several: ``choose`` finds it by the types of the arguments.

    It is compiled as by `inner`, or with other options.
    """

    @cache
    def as_python(*kinds: Any) -> Kernel:  # inner kernels have no entry point
        return plain(choose(*kinds))

    run = lambda *given: as_python(*map(type, given))(*given)  # noqa: E731

    @overload(run, jit_options=options, strict=False)
    def find(*kinds: Any) -> Any:
        kernel = choose(*(getattr(kind, "instance_class", None) for kind in kinds))
        return getattr(kernel, "py_func", kernel)

    return run


def by_type(kernels: dict[Any, Kernel]) -> Kernel:
    """The same, compiled as by `inner_jit`: the type of the first argument decides."""
    return by_types(lambda first, *_: kernels[first], _INNER_JIT)

"""A Dask cluster as an engine."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from featstream.engines.loop import Engine
from featstream.errors import EngineError, MissingExtraError, ParameterError, printable
from featstream.parallel import count_cores

if TYPE_CHECKING:
    from distributed import Client, Future

_POLL = 2.0
_DONE = ("memory", "released", "error")
_CONNECT = 10.0
_RETRIES = 3
_FOR_EVER = "365 days"
"""A worker that has died is started again by its supervisor. By default Dask ends the
supervisor if the worker is not there 15 seconds later: on a busy machine it may not be
ready, or have died once more. Then the cluster would lose one worker after the other.
"""
_REMEDY = (
    "With a checkpoint, what was decided is saved: featstream.resume continues it on "
    "another cluster, or on this machine."
)


class DaskEngine:
    """Runs functions on the workers of a Dask cluster.

    Arguments travel in the description of a task, never as scattered data: a worker
    that dies loses nothing that the scheduler cannot compute again.

    Parameters
    ----------
    client : distributed.Client
        The client of a cluster.
    patience : float, default=60.0
        Seconds to wait for a cluster without workers before giving up.

    Attributes
    ----------
    n_messages : int
        Number of tasks submitted so far.

    Examples
    --------
    >>> from featstream.engines import DaskEngine, local_cluster
    >>> with local_cluster(n_workers=1) as client:
    ...     engine = DaskEngine(client)
    ...     engine.result(engine.submit(max, 3, 4))
    4
    """

    def __init__(self, client: Client, *, patience: float = 60.0) -> None:
        self.client, self.patience = client, patience
        self.n_messages = 0

    @property
    def n_workers(self) -> int:
        """Number of threads of all workers; at least 1."""
        return max(1, sum(int(worker["nthreads"]) for worker in self._workers()))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Run a function on some worker."""
        self.n_messages += 1
        try:
            # What is sent is needed, whatever its size; it is not sent twice.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph")
                return self.client.submit(
                    function,
                    *arguments,
                    key=f"featstream-{function.__name__}-{uuid4().hex}",
                    pure=False,
                    retries=_RETRIES,
                )
        except Exception as error:
            raise self._lost(error) from error

    def result(self, future: Future) -> Any:
        """Wait for a function; `EngineError` if nobody is left to run it."""
        from distributed.scheduler import KilledWorker

        try:
            return self._wait_for(lambda: future)
        except KilledWorker as error:
            raise EngineError(
                "Workers of the Dask cluster died again and again on the same task. "
                "They may have too little memory: raise their limit, or start fewer "
                f"threads per worker. {_REMEDY} ({error})"
            ) from error

    def first_done(self, futures: Sequence[Future]) -> Future:
        """Wait until one of several functions has ended; returns its future."""

        # `distributed.wait` would use the current client, which may be another one.
        async def first() -> Future:
            waiting = {asyncio.ensure_future(f.exception()): f for f in futures}
            try:
                done, _ = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
            finally:
                for task in waiting:
                    task.cancel()
            return next(future for task, future in waiting.items() if task in done)

        found: Future = self._wait_for(first)
        return found

    def cancel(self, futures: Sequence[Future]) -> None:
        """Stop functions that nobody needs, if they ask `is_cancelled`."""
        with suppress(OSError):  # then the scheduler does so when it misses the client
            cancel = partial(self.client.cancel, list(futures))
            self.client.sync(cancel, callback_timeout=_CONNECT)

    def _wait_for(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        """Await something in the thread of the client, while workers can do it.

        A result may be lost with its worker when it has been computed, but not fetched:
        also what takes no time by itself may have to wait.
        """

        async def run() -> Any:
            return await begin()

        loop = self.client.loop.asyncio_loop
        waiting = asyncio.run_coroutine_threadsafe(run(), loop)
        seen = time.monotonic()
        try:
            while not concurrent.futures.wait([waiting], _POLL).done:
                if self._can_work():
                    seen = time.monotonic()
                elif time.monotonic() - seen > self.patience:
                    raise EngineError(
                        "The Dask cluster has had no workers for "
                        f"{self.patience:g} seconds, or only some that are paused "
                        f"because their memory is full. Start some. {_REMEDY}"
                    )
            return waiting.result()
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
            raise self._lost(error) from error
        finally:
            waiting.cancel()

    def _can_work(self) -> bool:
        """Whether the scheduler answers, and workers run functions, or would do so.

        What was sent to a worker that is now paused, because its memory is full, stays
        there: workers that have nothing to do are no help then.
        """
        if self.client.status not in ("running", "connecting"):
            raise self._lost(self.client.status)
        try:
            workers = self._workers()
        except EngineError:
            return False
        are_all_running = all(worker["status"] == "running" for worker in workers)
        return any(are_all_running or _is_busy(worker) for worker in workers)

    def _workers(self) -> list[dict[str, Any]]:
        """What the scheduler knows about each worker.

        It does not answer while it imports what functions need, which may take minutes.
        """
        try:
            found = self.client.sync(
                self.client.scheduler.identity,
                n_workers=-1,
                callback_timeout=10 * self.patience + _CONNECT,
            )
        except Exception as error:
            raise self._lost(error) from error
        return list(found["workers"].values())

    def _lost(self, why: object) -> EngineError:
        return EngineError(
            f"The connection to the Dask scheduler is lost ({printable(str(why))}). "
            + _REMEDY
        )


def _is_busy(worker: dict[str, Any]) -> bool:
    """Whether a worker, as the scheduler knows it, does or will do something."""
    counts = worker["metrics"].get("task_counts", {})
    if worker["status"] == "running":
        return any(n for state, n in counts.items() if state not in _DONE)
    return bool(counts.get("executing"))


def is_cancelled() -> bool:
    """Whether nobody waits any more for the function that runs in this thread.

    Its futures were cancelled, or the process that held them has ended.
    """
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # this is not a worker of Dask
        return False
    task = worker.state.tasks.get(worker.get_current_task())
    return task is None or task.state == "cancelled"


def as_engine(given: Any) -> Engine | None:
    """An engine from a name, a Dask client, or an engine; None for none.

    "dask" is the current client, as for Dask's own collections.
    """
    if given is None:
        return None
    if all(hasattr(given, name) for name in ("submit", "result", "n_workers")):
        return given  # type: ignore[no-any-return]
    if given == "dask":
        return DaskEngine(_current_client())
    if not isinstance(given, str):
        require_dask()
        from distributed import Client

        if isinstance(given, Client):
            return DaskEngine(given)
    raise ParameterError(
        "`engine` must be 'dask', a Dask client, or None. Got "
        f"{printable(given)} of type {type(given).__name__}."
    )


def _current_client() -> Client:
    require_dask()
    from distributed import get_client, get_worker, secede

    try:
        get_worker()
    except ValueError:
        pass
    else:  # a task that waits for others must not occupy a thread of its worker
        secede()
    try:
        return get_client()
    except ValueError:
        raise ParameterError(
            "engine='dask' needs a Dask client, and there is none. Create one first: "
            "client = distributed.Client(...), or 'with "
            "featstream.engines.local_cluster():'."
        ) from None


def require_dask() -> None:
    """Raise if Dask is not installed."""
    if find_spec("distributed") is None:
        raise MissingExtraError(
            "Dask is not installed. Install it: pip install 'featstream[dask]'"
        )


@contextmanager
def local_cluster(
    n_workers: int | None = None, memory_limit: str | float = "auto"
) -> Iterator[Client]:
    """A client of workers on this machine, which nobody else can use.

    They listen on the loopback interface only, speak TLS with a key that was made for
    this cluster and that both sides must have, serve nothing over HTTP, and end with
    the ``with`` block.

    Parameters
    ----------
    n_workers : int, optional
        Number of processes, of one thread each; by default one per core.
    memory_limit : str or float, default="auto"
        Memory of each; by default an equal share of the machine's.

    Yields
    ------
    distributed.Client
    """
    require_dask()
    # Without keys every user of the machine could send code to the scheduler.
    if find_spec("cryptography") is None:
        raise MissingExtraError(
            "A cluster on this machine needs cryptography, for keys: without them "
            "other users of the machine could run code as you. Install it: pip "
            "install 'featstream[dask]'"
        )
    import dask
    from distributed import Client, LocalCluster
    from distributed.security import Security

    security = Security.temporary()
    with (
        TemporaryDirectory(prefix="featstream-", ignore_cleanup_errors=True) as folder,
        dask.config.set(
            {
                "temporary_directory": folder,
                "distributed.scheduler.http.routes": [],
                "distributed.worker.http.routes": [],
                "distributed.deploy.lost-worker-timeout": _FOR_EVER,
            }
        ),
        LocalCluster(
            n_workers=n_workers or count_cores(),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            dashboard_address="127.0.0.1:0",
            memory_limit=memory_limit,
        ) as cluster,
        Client(cluster, security=security) as client,
    ):
        # It listens whatever the address is, with None on every interface.
        cluster.scheduler.http_server.stop()
        yield client


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """A client of the scheduler at an address; "local" starts a cluster here."""
    if scheduler == "local":
        with local_cluster() as client:
            yield client
        return
    require_dask()
    from distributed import Client

    try:
        client = Client(scheduler, set_as_default=False, timeout=_CONNECT)
    except TypeError as error:  # TLS without keys
        raise EngineError(
            f"The scheduler at {printable(scheduler)} speaks TLS, and Dask's "
            "configuration has no keys: set distributed.comm.tls.ca-file, client.key "
            f"and client.cert, as its owner gives them. ({error})"
        ) from error
    except (OSError, ValueError) as error:
        raise EngineError(
            f"There is no Dask scheduler at {printable(scheduler)}: {error}. Give its "
            "address as tcp://HOST:PORT, or 'local'."
        ) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError):  # of a busy scheduler, when all is done
            client.close()

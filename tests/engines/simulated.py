"""An engine without a cluster: it delays, repeats and loses what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cloudpickle


@dataclass(eq=False)
class Promise:
    function: Any
    arguments: tuple[Any, ...]
    is_done: bool = False
    value: Any = None
    held: Any = None  # by the workers, of which it is an argument


class SimulatedEngine:
    """Runs a function at a random time between its submission and its turn.

    Everything travels as a pickle, as it does over the wire; what many functions need
    is held by the workers, who share it. With the probability ``death`` a worker dies
    after it has run a function, and all that is held is gone: the function is run
    again by another.
    """

    def __init__(self, rng, n_workers=2, death=0.1):
        self.rng, self.n_workers, self.death = rng, n_workers, death
        self.results, self.most_waiting = [], 0
        self._waiting, self._n_open = [], 0

    def submit(self, function, *arguments):
        promise = Promise(function, arguments)
        self._waiting.append(promise)
        self._n_open += 1
        self.most_waiting = max(self.most_waiting, self._n_open)
        for other in self._waiting.copy():
            if self.rng.random() < 0.3:
                self._run(other)
        return promise

    def result(self, promise):
        self._run(promise)
        self._n_open -= 1
        self.results.append(self._sent(promise.value))
        return self.results[-1]

    def first_done(self, promises):
        promise = promises[self.rng.integers(len(promises))]
        self._run(promise)
        return promise

    def _run(self, promise):
        if promise.is_done:
            return
        n_times = 1 + (self.rng.random() < self.death)
        for _ in range(n_times):
            given = [
                self._hold(a) if isinstance(a, Promise) else self._sent(a)
                for a in promise.arguments
            ]
            promise.value = promise.function(*given)
            for argument in promise.arguments:
                if isinstance(argument, Promise) and n_times > 1:
                    argument.held = None
        promise.is_done = True
        self._waiting.remove(promise)

    def _hold(self, promise):
        self._run(promise)
        if promise.held is None:
            promise.held = self._sent(promise.value)
        return promise.held

    def _sent(self, value):
        return cloudpickle.loads(cloudpickle.dumps(value))

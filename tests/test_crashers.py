"""Every input that ever broke a reader, by fuzzing, is read again."""

from pathlib import Path

import numpy as np
import pytest
from fuzz.commands import COMMANDS, NOT_OURS
from fuzz.mutation import mutate
from fuzz.targets import TARGETS

from featstream.sources.values import LIMITS

FOLDER = Path(__file__).parent / "data" / "crashers"
CRASHERS = sorted(FOLDER.iterdir())

pytestmark = pytest.mark.jit_only


@pytest.fixture(scope="module", autouse=True)
def limits():
    """What a target changes is put back."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LIMITS, "csv_held", LIMITS.csv_held)
        patch.setattr(LIMITS, "csv_block", LIMITS.csv_block)
        yield


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return {n: make(tmp_path_factory.mktemp(n)) for n, make in TARGETS.items()}


@pytest.mark.parametrize("path", CRASHERS, ids=lambda path: path.name)
def test_it_breaks_nothing_any_more(path, targets):
    """The name of a file begins with that of its target."""
    target = targets[path.name.partition("-")[0]]
    assert target.run(path.read_bytes()).partition(":")[0] in ("DataError", "RunError")


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - NOT_OURS.keys()))
def test_a_little_fuzzing(name, targets):
    """The targets work: some inputs, always the same ones."""
    target, rng = targets[name], np.random.default_rng(7)
    corpus = list(target.seeds())
    outcomes = {target.run(seed).partition(":")[0] for seed in corpus}
    whole = {"matrix", "state", "table", "selection", "not judged"}
    assert outcomes <= {*whole, "DataError"}
    for _ in range(30 if name in COMMANDS else 200):
        target.run(mutate(corpus, target.words, rng))

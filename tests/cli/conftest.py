"""Commands, as the tests of this folder call them."""

import json
from functools import partial

import pytest

from featstream.cli import main


@pytest.fixture
def run(capsys):
    """Run a command, and return what it printed; its message, if it is to fail."""

    def run(*words, code=0):
        capsys.readouterr()
        assert main([str(word) for word in words]) == code
        out, err = capsys.readouterr()
        return err if code else out

    return run


@pytest.fixture
def run_json(run):
    return lambda *words: json.loads(run(*words, "--json", "-q"))


@pytest.fixture
def fail(run):
    return partial(run, code=1)

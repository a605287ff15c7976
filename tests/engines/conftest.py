"""A cluster for the tests of a module."""

import pytest

from featstream.engines import local_cluster


@pytest.fixture(scope="module")
def client():
    with local_cluster(2, "1GiB") as connected:
        yield connected

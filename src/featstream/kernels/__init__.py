"""Kernels of the tests of conditional independence."""

import featstream.measures  # noqa: F401  (whose storages these kernels read)

"""Kernels that only the sources use: parsing, and rows that become columns."""

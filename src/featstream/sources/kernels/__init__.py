"""Kernels that read and transpose."""

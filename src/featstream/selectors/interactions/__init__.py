"""Pairs of features that matter together: the search, its kernels, the selector."""

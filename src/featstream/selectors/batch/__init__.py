"""Selectors that need all features at once: the batch rivals of the paper."""

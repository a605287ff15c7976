"""Benchmarks: ratios in one run against named baselines, never bare times."""

"""Fuzzing by mutation: ``python -m fuzz {svmlight,state} --seconds 300``."""

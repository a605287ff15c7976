"""Fuzzing by mutation: ``python -m fuzz {svmlight,state,plink,csv} --seconds 300``."""

"""The SAOLA paper, run again: its tables, data sets, methods, classifier and pages.

Everything here uses the public names of the library, as a user's own study would.
"""

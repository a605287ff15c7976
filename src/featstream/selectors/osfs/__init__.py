"""OSFS and Fast-OSFS: selection by tests of conditional independence."""

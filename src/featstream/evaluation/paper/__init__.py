"""The SAOLA paper: what it shows, with which methods, and what we find."""

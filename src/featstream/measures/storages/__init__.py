"""Storages: how columns are held, compared, copied and saved. One file each."""

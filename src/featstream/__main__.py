"""``python -m featstream``."""

from featstream.cli import main

if __name__ == "__main__":
    raise SystemExit(main())

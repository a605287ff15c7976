"""Print the changelog: all fragments of this folder, ``TOPIC.KIND.md``, by kind.

``python changelog.d/collect.py VERSION > CHANGELOG.md``
"""

import sys
from pathlib import Path

KINDS = ("added", "changed", "fixed")


def changelog(version: str, folder: Path = Path(__file__).parent) -> str:
    """One section per kind, one entry per fragment."""
    unknown = {p.name for p in folder.glob("*.md")}
    lines = ["# Changelog", "", f"## {version}", ""]
    for kind in KINDS:
        paths = sorted(folder.glob(f"*.{kind}.md"))
        unknown -= {path.name for path in paths}
        lines += [f"### {kind.capitalize()}", ""] if paths else []
        for path in paths:
            text = path.read_text("utf-8").strip().splitlines()
            lines += [f"- {text[0]}", *(f"  {line}".rstrip() for line in text[1:])]
        lines += [""] if paths else []
    if unknown:
        raise SystemExit(f"fragments of no kind: {', '.join(sorted(unknown))}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(changelog(sys.argv[1]), end="")

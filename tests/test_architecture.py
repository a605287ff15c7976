"""The page on the architecture names every module, and none that does not exist.

``python tests/test_architecture.py`` writes the lists of modules anew.
"""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "featstream"
PAGE = ROOT / "docs" / "architecture.md"


@cache
def summary(path):
    """The first sentence of a module's docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    return " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())


def modules(folder):
    """One line per module of a folder."""
    paths = sorted((PACKAGE / folder).glob("*.py"))
    return [f"- `{p.name}`: {summary(p)}" for p in paths if p.name != "__init__.py"]


def folders():
    found = {p.parent.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py")}
    return {f.as_posix() for f in found if modules(f)}


def rewritten(page):
    """The page with the lists of modules as the tree has them."""
    head, *sections = re.split(r"(?m)^(?=### `)", page)
    for i, section in enumerate(sections):
        title, text = section.split("\n", 1)
        folder = re.match(r"### `featstream/(.*?)/?`", title)[1] or "."
        prose, tail = re.match(
            r"(?s)(.*?)\n*(?:^- `.*?)?(^## .*|\Z)", text, re.M
        ).groups()
        listed = "\n".join(modules(folder))
        sections[i] = (
            f"{title}\n{prose.rstrip()}\n\n{listed}\n\n{tail}".rstrip() + "\n\n"
        )
    return (head + "".join(sections)).rstrip() + "\n"


def test_the_page_lists_every_module():
    page = PAGE.read_text("utf-8")
    named = re.findall(r"(?m)^### `featstream/(.*?)/?`", page)
    assert sorted(name or "." for name in named) == sorted(folders())
    assert page == rewritten(page), "run: python tests/test_architecture.py"


def test_the_layers_are_those_of_the_contract():
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    contract = next(
        c for c in tools["importlinter"]["contracts"] if c["type"] == "layers"
    )
    layers = [re.sub(r"[| ]*\(.*?\)", "", layer) for layer in contract["layers"]]
    listed = PAGE.read_text("utf-8").split("## The rule of imports")[1].split("## ")[0]
    named = re.findall(r"(?m)^    (\w+)", listed)
    assert named == [layer for layer in layers if layer not in ("", "__main__")]


def test_every_path_that_the_page_names_exists():
    named = re.findall(r"`([\w/-]+(?:/|\.py|\.md|\.toml))`", PAGE.read_text("utf-8"))
    homes = [PACKAGE, PACKAGE.parent, ROOT, *(PACKAGE / folder for folder in folders())]
    lost = [name for name in named if not any((home / name).exists() for home in homes)]
    assert lost == []


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text("utf-8")), encoding="utf-8")

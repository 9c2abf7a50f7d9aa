"""The tree in ARCHITECTURE.md names every package, and only modules that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ENTRY = re.compile(r"(?P<indent> *)(?P<names>[^\s,]+(?:, [^\s,]+)*)(?: …)?(?: +(?P<text>.*))?$")
TOP = "src/ottla/"


class Entry(NamedTuple):
    folder: Path
    name: str
    """As it stands there: a folder ends with a slash, * and … stand for any letters."""
    text: str


def tree() -> list[Entry]:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    block = page.partition("## The tree")[2].partition("```\n")[2].partition("```")[0]
    found: list[Entry] = []
    folders: dict[int, Path] = {}
    for line in block.splitlines():
        match = ENTRY.match(line)
        assert match is not None, line
        depth = len(match["indent"])
        if depth > 12:  # the rest of a text
            continue
        parent = next((folders[each] for each in sorted(folders, reverse=True) if each < depth), ROOT)
        for name in match["names"].split(", "):
            found.append(Entry(parent, name, match["text"] or ""))
            if name.endswith("/"):
                folders = {each: folder for each, folder in folders.items() if each < depth} | {depth: parent / name}
    return found


def matches(entry: Entry) -> list[Path]:
    pattern = entry.name.replace("…", "*")
    if pattern.endswith("/"):
        return [each for each in entry.folder.glob(pattern.rstrip("/")) if each.is_dir()]
    return [each for each in entry.folder.glob(f"{pattern}.*") if each.suffix in (".py", ".pyx")]


def packages() -> list[Path]:
    return [init.parent for init in (ROOT / "src" / "ottla").rglob("__init__.py")]


def test_every_name_in_the_tree_exists() -> None:
    assert [str((each.folder / each.name).relative_to(ROOT)) for each in tree() if not matches(each)] == []


def test_every_package_is_in_the_tree() -> None:
    named = {found for each in tree() for found in matches(each) if found.is_dir()}
    inside = {folder for folder in packages() if any(above in named for above in folder.parents)}
    top = {folder for folder in packages() if len(folder.relative_to(ROOT).parts) == 3}
    assert sorted(str(each.relative_to(ROOT)) for each in (top | inside) - named if not _is_closed(each)) == []


def _is_closed(folder: Path) -> bool:
    """Its package is named with a text that covers all that is in it, and no module of it is listed."""
    listed = {each.folder.resolve() for each in tree()}
    return folder.parent.resolve() not in listed


def test_no_name_is_in_the_tree_twice() -> None:
    names = [(each.folder, each.name) for each in tree()]
    assert sorted({str(folder / name) for folder, name in names if names.count((folder, name)) > 1}) == []


def test_every_entry_of_the_tree_is_explained() -> None:
    rows: dict[tuple[Path, str], str] = {(each.folder, each.name): each.text for each in tree()}
    assert [name for (_, name), text in rows.items() if not text and name != TOP] == []

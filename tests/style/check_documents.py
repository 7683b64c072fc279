"""Fails where a document names a file, a folder or a page that does not exist, or a room is missing from the map.

    check_documents.py ROOT         prints every fault, exit 1 if there is any
    check_documents.py --self-test  plants faults and sees to it that exactly they are found
"""

import re

import checks

# A path in backticks; one with a word in capitals, as in tests/fuzz/corpus/NAME, stands for several.
PATH = re.compile(rf"`((?:{'|'.join(checks.FOLDERS)}|docs)/[\w./-]*)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")
LINK = re.compile(r"\]\((?!https?:)([^)\s#]+)(?:#[\w-]+)?\)")
# A page on adding something shows a new file as a whole, after its name.
SHOWN = re.compile(r"`([\w/.]+)`:\n\n```cpp$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def rooms(root):
    """The folders with sources, two levels deep, as the map names them: "sim/ir/"."""
    paths = [path.split("/") for path in checks.read_sources(root, checks.PRODUCT)]
    return sorted({"/".join(path[:2]) + "/" for path in paths if len(path) > 2})


def check(root):
    """(documents read, faults as text) of the tree at `root`."""
    faults = []
    documents = sorted(root.glob("*.md")) + sorted((root / "docs").glob("*.md"))
    for document in documents:
        name = document.relative_to(root).as_posix()
        text = document.read_text()
        new = set(SHOWN.findall(text))
        prose = BLOCK.sub("", text)
        for path in PATH.findall(prose):
            if path not in new and not PLACEHOLDER.search(path) and not (root / path).exists():
                faults.append(f"{name}: names {path}, which does not exist")
        for link in LINK.findall(prose):
            if not (document.parent / link).exists():
                faults.append(f"{name}: links to {link}, which does not exist")
    text = (root / "ARCHITECTURE.md").read_text()
    faults += [f"ARCHITECTURE.md: does not name the room `{room}`" for room in rooms(root) if f"`{room}`" not in text]
    return len(documents), faults


def self_test():
    tree = {path: "" for path in ("sim/ir/op.h", "tools/main.cc", "docs/glossary.md")}
    for text, expected in (
        ("`sim/ir/`, `sim/ir/op.h` and [terms](docs/glossary.md#a)", 0),
        ("`sim/ir/` and `sim/ir/NAME.h`, [a site](https://example.org/none)", 0),
        ("`sim/ir/`. All of `sim/ir/new.h`:\n\n```cpp\n`sim/none.h`\n```\n", 0),
        ("`sim/ir/` and `sim/ir/gone.h`", 1),
        ("`sim/ir/` and [terms](docs/gone.md)", 1),
        ("`sim/ir/op.h` without its room", 1),
    ):
        checks.expect_faults(check, [{**tree, "ARCHITECTURE.md": text}], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "documents name what exists")

#!/usr/bin/env python3
"""Fails where the prose of a page names something that no source has: a function, a field, a test, a flag.

    check_names.py ROOT PAGE...     prints every such name; exit 1 if there is any
    check_names.py --self-test      plants wrong names and sees to it that they are found

The names are those in backquotes, outside of the blocks that are built or run. Paths are left to tests/style/.
"""

import pathlib
import re
import sys
import tempfile

BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"``(.+?)``|`([^`\n]+)`")
PATH = re.compile(r"[\w./-]*/[\w./-]*|\w+\.(?:h|cc|md|json)")
TEST = re.compile(r"([A-Z]\w+)\.([A-Z]\w+)")
CTEST = re.compile(r"docs\.(adding_a_\w+)(?:\.\w+)?")
FLAG = re.compile(r"--[a-z][a-z-]+")
WORD = re.compile(r"[A-Za-z_]\w{3,}")
SOURCES = {".h", ".cc", ".cu", ".cuh"}
FOLDERS = ["sim", "schedules", "traces", "exec", "tools", "tests"]


def read_sources(root):
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in SOURCES]
    return "\n".join(f.read_text() for f in files)


def unknown_in(span, sources, words, root):
    """The names in one quoted span that nothing has."""
    if ctest := CTEST.fullmatch(span):
        return [] if (root / "docs" / f"{ctest[1]}.md").is_file() else [span]
    if test := TEST.fullmatch(span):
        return [] if re.search(rf"\bTEST(?:_[FP])?\({test[1]}, {test[2]}\)", sources) else [span]
    if "ctest" in span or PATH.fullmatch(span):
        return []
    bare = re.sub(r'"[^"]*"', "", span)
    unknown = [flag for flag in FLAG.findall(bare) if f'{flag}"' not in sources and f"{flag}," not in sources]
    bare = PATH.sub("", FLAG.sub("", bare))
    return unknown + [word for word in WORD.findall(bare) if word not in words and not word.isupper()]


def check(root, pages):
    """(names in backquotes, faults as text) of some pages."""
    sources = read_sources(root)
    words = set(re.findall(r"\w+", sources))
    spans, faults = 0, []
    for page in pages:
        text = page.read_text()
        shown = words | set(re.findall(r"\w+", " ".join(BLOCK.findall(text))))
        for quoted in QUOTED.finditer(BLOCK.sub("", text)):
            spans += 1
            found = unknown_in(quoted[1] or quoted[2], sources, shown, root)
            faults += [f"{page.name}: {name} is in no source" for name in found]
    return spans, faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "tests").mkdir()
        (root / "docs").mkdir()
        (root / "tests" / "a.cc").write_text('TEST(Registry, HoldsAll) { add_flag("--known", build_all); }\n')
        page = root / "docs" / "adding_a_thing.md"

        def faults(text):
            page.write_text(text)
            return len(check(root, [page])[1])

        assert faults("`build_all`, `Registry.HoldsAll`, `--known`, `.build_all(1)`, `docs.adding_a_thing`\n") == 0
        assert faults("`shown_here`\n\n```cpp\nint shown_here;\n```\n") == 0, "a name that a block of the page has"
        assert faults("`build_none`\n") == 1, "an unknown function"
        assert faults("`Registry.HoldsNone`\n") == 1, "an unknown test"
        assert faults("`Other.HoldsAll`\n") == 1, "a test of another suite"
        assert faults("`--unknown 5`\n") == 1, "an unknown flag"
        assert faults("`docs.adding_a_page`\n") == 1, "a test of a page that does not exist"


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        count, found = check(pathlib.Path(sys.argv[1]), [pathlib.Path(page) for page in sys.argv[2:]])
        print("\n".join(found) or f"{count} names are in sources")
        sys.exit(bool(found) or count == 0)

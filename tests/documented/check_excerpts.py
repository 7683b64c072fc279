#!/usr/bin/env python3
"""Fails where a page shows lines of a file that the file does not have.

    check_excerpts.py ROOT PAGE --word WORD   checks the page's excerpts; exit 1 if one is wrong
    check_excerpts.py --self-test             plants wrong excerpts and sees to it that they are found

A page names a file at the end of a sentence, `sim/model/noise.h`: and shows some of its lines in the
block that follows. The page must show every source of the product that mentions WORD, so that it
cannot forget one.
"""

import pathlib
import re
import sys
import tempfile

EXCERPT = re.compile(r"`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = ["sim", "schedules", "traces", "exec", "tools"]
SOURCES = {".h", ".cc", ".cu", ".cuh"}


def mentions(root, word):
    """The paths of the product's sources that mention the word."""
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in SOURCES]
    return [f.relative_to(root).as_posix() for f in files if re.search(rf"\b{word}\b", f.read_text())]


def check(root, page, word):
    """(excerpts, faults as text) of a page's text."""
    faults, shown = [], []
    for path, lines in EXCERPT.findall(page):
        shown.append(path)
        if not (root / path).is_file():
            faults.append(f"{path}: there is no such file")
        elif "\n" + lines not in "\n" + (root / path).read_text():
            faults.append(f"{path}: does not have these lines:\n{lines}")
    missing = [path for path in mentions(root, word) if path not in shown]
    faults += [f"{path}: mentions {word}, but the page does not show it" for path in missing]
    return len(shown), faults


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "sim").mkdir()
        (root / "sim" / "a.h").write_text("int first;\nint the_word;\nint last;\n")
        (root / "docs.md").write_text("the_word\n")

        def faults(path, lines):
            return len(check(root, f"The field is in `{path}`:\n\n```cpp\n{lines}```\n", "the_word")[1])

        assert faults("sim/a.h", "int first;\nint the_word;\n") == 0
        assert faults("sim/a.h", "int first;\nint last;\n") == 1, "lines that are not together"
        assert faults("sim/a.h", "nt the_word;\n") == 1, "a line that is not whole"
        assert faults("sim/b.h", "int the_word;\n") == 2, "no such file, and one that is not shown"
        assert faults("docs.md", "the_word\n") == 1, "a source that is not shown"


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        root_folder, page_path, _, wanted = sys.argv[1:]
        count, found = check(pathlib.Path(root_folder), pathlib.Path(page_path).read_text(), wanted)
        print("\n".join(found) or f"{count} excerpts are as they are shown")
        sys.exit(bool(found) or count == 0)

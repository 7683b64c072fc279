"""Serves the scripts check_*.py: the sources that they read, their command line, and trees with planted faults for their
self-tests."""

import pathlib
import sys
import tempfile

PRODUCT = ["sim", "schedules", "traces", "exec", "tools"]
FOLDERS = [*PRODUCT, "tests"]
SOURCES = {".h", ".cc", ".cu", ".cuh"}


def read_sources(root, folders=FOLDERS, endings=SOURCES):
    """path below `root` -> text of every source in these folders."""
    files = [file for folder in folders for file in sorted((root / folder).rglob("*")) if file.suffix in endings]
    return {file.relative_to(root).as_posix(): file.read_text() for file in files}


def code_lines(text):
    """(number, line) of each line that is not a comment."""
    return [(at, line) for at, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("//")]


def expect_faults(check, cases, expected):
    """Every case, path -> content, makes a tree in which `check` must find this many faults."""
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in case.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            found = check(pathlib.Path(folder))[1]
            assert len(found) == expected, f"{case}: expected {expected} fault(s), found {found}"


def run(check, self_test, success):
    """Checks the tree that the command line names, or the check itself; exits 1 if it found faults or read nothing."""
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    count, found = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) or f"{count} {success}")
    sys.exit(bool(found) or count == 0)

"""Serves the scripts check_*.py: their command line, and trees with planted faults for their self-tests."""

import pathlib
import sys
import tempfile


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

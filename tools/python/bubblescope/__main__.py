"""Runs the program: ``python -m bubblescope simulate 1f1b --pp 4 -m 8``."""
import os
import shutil
import sys
import sysconfig


def find_program() -> str:
    """The program that was installed with this package."""
    for scripts in (sysconfig.get_path("scripts"), os.path.dirname(sys.executable)):
        found = shutil.which("bubblescope", path=scripts)
        if found:
            return found
    found = shutil.which("bubblescope")
    if found:
        return found
    sys.exit("bubblescope: the program is not beside this Python; install the package again")


if __name__ == "__main__":
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])

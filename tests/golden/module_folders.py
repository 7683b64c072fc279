#!/usr/bin/env python3
"""Modules are opened beside the program or in its libexec, and in no other folder.

  module_folders.py PROGRAM

What stands in for a module is not a library, so a loader that opens it says so.
"""
import os
import shutil
import subprocess
import sys
import tempfile

COMMANDS = {
    "bubblescope_mpi.so": "run 1f1b --pp 2 -m 2 --backend mpi --work sleep",
    "bubblescope_graphviz.so": "simulate 1f1b --pp 2 -m 2 --dot graph.svg",
}


def opens(program, module, command, folder):
    """Whether a file of the module's name is opened in that folder."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, module), "w", encoding="utf-8") as file:
        file.write("no library at all, and longer than the header of one " * 8)
    work = os.path.join(os.path.dirname(os.path.dirname(program)), "work")
    done = subprocess.run([program, *command.split()], cwd=work, capture_output=True, text=True, timeout=60, check=False)
    os.remove(os.path.join(folder, module))
    if done.returncode != 3:
        sys.exit(f"{command}: exit status {done.returncode}, and it says\n{done.stderr}")
    return "invalid ELF header" in done.stderr


def main():
    with tempfile.TemporaryDirectory() as top:
        program = os.path.join(top, "bin", "bubblescope")
        for folder in ("bin", "work"):
            os.makedirs(os.path.join(top, folder))
        shutil.copy(sys.argv[1], program)
        for module, command in COMMANDS.items():
            for folder, expected in (("bin", True), ("libexec/bubblescope", True), (".", False), ("work", False),
                                     ("lib/bubblescope", False)):
                if opens(program, module, command, os.path.join(top, folder)) != expected:
                    sys.exit(f"{module} in {folder}: " + ("not opened" if expected else "opened"))
    print("modules are opened beside the program and in its libexec, and nowhere else")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Where our programs and modules look for libraries: in absolute folders alone. An empty or a relative entry is the
current folder, whoever's that is, and it is searched before the system's.

  check_search_paths.py FILE...      exit 1 where a file has such an entry
  check_search_paths.py --self-test
"""
import re
import subprocess
import sys


def doubtful(entries):
    """The entries of a path that depend on where the program is started."""
    return [entry for entry in entries.split(":") if not entry.startswith(("/", "$ORIGIN/"))]


def search_paths(file):
    said = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\((?:RPATH|RUNPATH)\)[^\[]*\[(.*)\]", said)


def self_test():
    assert doubtful("/usr/lib:/opt/lib") == []
    assert doubtful("/usr/lib:") == [""]
    assert doubtful(":/usr/lib") == [""]
    assert doubtful("lib:/usr/lib") == ["lib"]
    assert doubtful("$ORIGIN/../lib") == []


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    for file in sys.argv[1:]:
        for path in search_paths(file):
            if doubtful(path):
                return f"{file}: its search path '{path}' holds the current folder; give folders by their whole path"
    print(f"{len(sys.argv) - 1} files look in absolute folders alone")
    return None


if __name__ == "__main__":
    sys.exit(main())

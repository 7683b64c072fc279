"""Fails where the library names a flag of the command line, or a field whose flag is unknown there.

    check_flags.py ROOT         prints every such line, exit 1 if there is any
    check_flags.py --self-test  plants lines and sees to it that exactly the bad ones are found

Errors of sim and schedules name fields in backquotes, which tools/flags/field_names.cc turns into flags.
"""

import re

import checks

FOLDERS = ["sim", "schedules"]
TABLE = "tools/flags/field_names.cc"
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
FLAG = re.compile(r"(?<![\w-])--[a-z]|(?<![\w-])-m\b")
FIELD = re.compile(r"`(\w+)`")


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    known = set(re.findall(r'\{"(\w+)", "-', (root / TABLE).read_text()))
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in {".h", ".cc"}]
    for file in files:
        path = file.relative_to(root).as_posix()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if line.lstrip().startswith("//") or ".summary" in line:  # `list` prints summaries as they are
                continue
            for literal in LITERAL.findall(line):
                if FLAG.search(literal):
                    faults.append(f"{path}:{number}: names a flag; name the field in backquotes")
                for field in set(FIELD.findall(literal)) - known:
                    faults.append(f"{path}:{number}: `{field}` is not in {TABLE}")
    return len(files), faults


BAD = ['throw Error("leave --vpp out");', 'f("-m must be even");', 'f("`colour` must be green");']
GOOD = ['throw Error("leave `vpp` out");', "// --vpp", '.summary = "for --offload",', 'f("a micro-batch -- or two");']


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{TABLE: '{"vpp", "--vpp"},\n', "sim/a.cc": line + "\n"} for line in lines], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: the library names fields, not flags")

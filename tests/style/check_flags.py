"""Fails where a folder below tools/ names a flag of the command line, or a field whose flag is unknown there.

    check_flags.py ROOT         prints every such line, exit 1 if there is any
    check_flags.py --self-test  plants lines and sees to it that exactly the bad ones are found

Their texts name fields in backquotes, which tools/flags/field_names.cc turns into flags.
"""

import re

import checks

FOLDERS = ["sim", "schedules", "traces", "exec"]
TABLE = "tools/flags/field_names.cc"
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-m\b)")
# Flags of other programs, for which plans are written and to which messages refer.
FOREIGN = {
    "Megatron-LM": {
        "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
        "--num-virtual-stages-per-pipeline-rank", "--pipeline-model-parallel-layout", "--recompute-granularity",
        "--recompute-method", "--recompute-num-layers", "--timing-log-option",
    },
    "nsys": {"--type"},
    "torchrun": {"--no-python", "--nproc-per-node"},
}
ALLOWED = set().union(*FOREIGN.values())
FIELD = re.compile(r"`(\w+)`")


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    known = {word for text in LITERAL.findall((root / TABLE).read_text()) for word in text.strip('"').split()}
    sources = checks.read_sources(root, FOLDERS)
    for path, text in sources.items():
        for number, line in checks.code_lines(text):
            for literal in LITERAL.findall(line):
                if set(FLAG.findall(literal)) - ALLOWED:
                    faults.append(f"{path}:{number}: names a flag; name the field in backquotes")
                for field in set(FIELD.findall(literal)) - known:
                    faults.append(f"{path}:{number}: `{field}` is not in {TABLE}")
    return len(sources), faults


BAD = ['throw Error("leave --vpp out");', '.summary = "for --offload",', 'f("-m must be even");', 'f("`colour` must be green");']
GOOD = ['throw Error("leave `vpp` out");', "// --vpp", 'f("--type sqlite");', 'f("a micro-batch -- or two");']


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{TABLE: '"pp vpp "\n', "sim/a.cc": line + "\n"} for line in lines], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: folders below tools/ name fields, not flags")

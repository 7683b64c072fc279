"""Fails where a text or comment of a folder below tools/ names a flag of the command line, or a text a field whose flag is
unknown there, and where a text in tools/ names a flag that no command has.

    check_flags.py ROOT         prints every such line, exit 1 if there is any
    check_flags.py --self-test  plants lines and sees to it that exactly the bad ones are found

Their texts name fields in backquotes, which tools/flags/field_names.cc turns into flags.
"""

import re

import checks

FOLDERS = ["sim", "schedules", "traces", "exec"]
TABLE = "tools/flags/field_names.cc"
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"')
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*|-m\b)")
# A line up to its comment; strings may hold "//" themselves.
CODE = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'|[^"/]|/(?!/))*(?=//)""")
# Flags of other programs, for which plans are written and to which messages refer.
FOREIGN = {
    "Megatron-LM": {
        "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
        "--num-virtual-stages-per-pipeline-rank", "--pipeline-model-parallel-layout", "--recompute-granularity",
        "--recompute-method", "--recompute-num-layers", "--timing-log-level",
        "--timing-log-option",
    },
    "nsys": {"--type"},
    "torchrun": {"--no-python", "--nproc-per-node"},
}
ALLOWED = set().union(*FOREIGN.values())
# Further ones, which comments explain.
EXPLAINED = {
    "ASTRA-sim": {"--workload-configuration"},
    "Megatron-LM": {
        "--account-for-loss-in-pipeline-split", "--cross-entropy-loss-fusion", "--overlap-grad-reduce",
        "--overlap-p2p-communication",
    },
}
ALLOWED_IN_COMMENTS = ALLOWED.union(*EXPLAINED.values())
FIELD = re.compile(r"`(\w+)`")
DEFINITION = re.compile(r'"(?:--?[A-Za-z][\w-]*,?)+"')  # all names of a flag, and nothing else
LONG_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
EXPORT = re.compile(r'TimelineFormat\{\s*"(\w+)"')  # --trace FILE and the like


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    known = {word for text in LITERAL.findall((root / TABLE).read_text()) for word in text.strip('"').split()}
    sources = checks.read_sources(root, FOLDERS)
    for path, text in sources.items():
        for number, line in enumerate(text.splitlines(), 1):
            before_comment = CODE.match(line)
            code = before_comment[0] if before_comment else line
            if set(FLAG.findall(line[len(code):])) - ALLOWED_IN_COMMENTS:
                faults.append(f"{path}:{number}: the comment names a flag; name the field or the quantity")
            for literal in LITERAL.findall(code):
                if set(FLAG.findall(literal)) - ALLOWED:
                    faults.append(f"{path}:{number}: names a flag; name the field in backquotes")
                for field in set(FIELD.findall(literal)) - known:
                    faults.append(f"{path}:{number}: `{field}` is not in {TABLE}")
    named, more = check_names(root)
    return len(sources) + named, faults + more


def check_names(root):
    """(files read, faults as text) of tools/."""
    sources = checks.read_sources(root, ["tools"])
    lines = [(path, number, literal) for path, text in sources.items() for number, line in checks.code_lines(text)
             for literal in LITERAL.findall(line)]
    known = {flag for *_, literal in lines if DEFINITION.fullmatch(literal) for flag in literal.strip('"').split(",")}
    known |= {"--" + name for text in checks.read_sources(root, ["traces"]).values() for name in EXPORT.findall(text)}

    def is_known(flag):  # or the begin of several: "--total times"
        return flag in known | ALLOWED or any(each.startswith(flag.rstrip("-") + "-") for each in known)

    faults = [f"{path}:{number}: names {flag}, which no command has" for path, number, literal in lines
              for flag in LONG_FLAG.findall(literal) if not is_known(flag)]
    return len(sources), faults


BAD = [
    'throw Error("leave --vpp out");', '.summary = "for --offload",', 'f("-m must be even");', 'f("`colour` must be green");',
    "// --vpp", "int v = 1;  ///< of --vpp", 'f("a");  // "quoted --vpp"', "f(1 / 2);  // -m 8", "char c = '\"';  // --vpp",
]
GOOD = [
    'throw Error("leave `vpp` out");', 'f("--type sqlite");', 'f("a micro-batch -- or two");', 'f("http://a");',
    "// like Megatron-LM's --overlap-grad-reduce", "--count;  // of p-m -- or m", 'f("a");  // `colour`, as "`colour`"',
]


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{TABLE: '"pp vpp "\n', "sim/a.cc": line + "\n"} for line in lines], expected)
    flag = 'add("--pp,--ranks", "ranks");\n'
    for text, expected in (('f("give --ranks or --pp");', 0), ('f("give --order");', 1), ('f("give --pps");', 1)):
        checks.expect_faults(check, [{TABLE: '""\n', "tools/a.cc": flag + text + "\n"}], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: folders below tools/ name fields, not flags")

"""Fails where a type or an alias is defined twice, or a file is outside of its folder's namespace.

    check_types.py ROOT         prints every fault, exit 1 if there is any
    check_types.py --self-test  plants faults and sees to it that exactly they are found
"""

import collections
import re

import checks

UNNAMED = "(unnamed)"
# Comments and literals; what is left of a file is code.
NO_CODE = re.compile(
    r'R"([^()\\ ]{0,16})\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    re.DOTALL | re.MULTILINE,
)
TOKEN = re.compile(
    r"namespace\s+(?P<namespace>[\w:\s]*?)\s*\{|"
    r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?(?P<type>\w+)(?!\s*::)(?:\s+final)?"
    r"\s*(?::[^;{}()]*)?\{|"
    r"\busing\s+(?P<alias>\w+)\s*=|"
    r"(?P<open>\{)|(?P<close>\})"
)


def definitions(text):
    """(namespace, name) of each type and alias that a file defines at the scope of a namespace, unnamed ones left out."""
    code = NO_CODE.sub(" ", text)
    scopes = []  # a namespace's name, or None for any other brace
    for match in TOKEN.finditer(code):
        if match["close"]:
            if scopes:
                scopes.pop()
        elif match["namespace"] is not None:
            scopes.append(re.sub(r"inline\s+|\s", "", match["namespace"]) or UNNAMED)
        elif match["type"] or match["alias"]:
            if None not in scopes and UNNAMED not in scopes:
                yield "::".join(scopes), match["type"] or match["alias"]
            if match["type"]:
                scopes.append(None)
        else:
            scopes.append(None)


def check(root):
    """(files read, faults as text) of the tree at `root`. Types of the product have names of their own; those of tests
    may share one with a type of the product."""
    faults = []
    places = collections.defaultdict(list)
    sources = checks.read_sources(root)
    for path, text in sources.items():
        own = f"bubblescope::{path.split('/')[0]}"
        for namespace, name in definitions(text):
            places[name if path.split("/")[0] != "tests" else f"{namespace}::{name}"].append(path)
            if namespace != own and not namespace.startswith(own + "::"):
                faults.append(f"{path}: {name} is defined in '{namespace}'; put it into {own}")
    for name, where in sorted(places.items()):
        if len(where) > 1:
            faults.append(f"{name} is defined in {', '.join(where)}; give each its own name")
    return len(sources), faults


BAD = [
    {"sim/a.h": "namespace bubblescope {\nstruct A {};\n}"},
    {"exec/a.h": "namespace bubblescope::traces {\nclass A final : public B {};\n}"},
    {"traces/a.h": "struct A {};"},
    {"sim/a.h": "namespace bubblescope::inline sim {\nenum class A : int { kOne };\n}",
     "exec/a.cc": "namespace bubblescope::exec {\nstruct A { int b; };\n}"},
    {"traces/a.h": "namespace bubblescope::traces {\nusing A = int;\n}", "traces/b.h": "namespace bubblescope::traces {\nusing A = int;\n}"},
    {"sim/a.h": "namespace bubblescope::inline sim {\nstruct A {};\n}",
     "exec/a.h": "namespace bubblescope::exec {\ntemplate <class B>\nusing A = C<B>;\n}"},
    {"tests/a.h": "namespace bubblescope::tests {\nstruct A {};\n}", "tests/b.h": "namespace bubblescope::tests {\nstruct A {};\n}"},
]
GOOD = [
    {"sim/a.h": "namespace bubblescope::inline sim {\nstruct A { struct B {}; };\nstruct C;\nenum class D : int { kOne };\n}",
     "exec/a.h": "namespace bubblescope::exec {\nstruct B {};\nstruct C;\n}"},
    {"exec/a.cc": "namespace bubblescope::exec {\nnamespace {\nstruct A {};\n}\nstruct B::Impl {};\n}",
     "exec/b.cc": "namespace bubblescope::exec {\nnamespace {\nstruct A {};\n}\n}"},
    {"sim/a.h": "namespace bubblescope::inline sim {\nstruct A {};\n}", "tests/a.h": "namespace bubblescope::tests {\nstruct A {};\n}"},
    {"sim/a.h": "namespace bubblescope::inline sim {\nstruct A { using B = int; };\nvoid f() { using B = int; }\nusing std::swap;\n}",
     "exec/a.cc": "namespace bubblescope::exec {\nnamespace {\nusing B = int;\n}\n}"},
    {"tools/a.cc": "namespace bubblescope::tools {\nconst char* a = \"struct B {\";  // struct B {\nvoid f(struct C c) {}\n}"},
]


def self_test():
    checks.expect_faults(check, BAD, 1)
    checks.expect_faults(check, GOOD, 0)


if __name__ == "__main__":
    checks.run(check, self_test, "files: every type and alias is defined once, in its folder's namespace")

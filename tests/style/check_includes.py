#!/usr/bin/env python3
"""Fails where a source uses a name without the header that promises it.

    check_includes.py ROOT         prints every such line, exit 1 if there is any
    check_includes.py --self-test  plants lines and sees to it that exactly the bad ones are found

Names of the standard library: other headers include them by chance, and another release of a compiler or of a library
no longer does. A source may rely on the header of its own name. Types that our own headers have in their interfaces,
such as std::vector, are not looked for: a use of the interface brings them.

Names of the project: sources that are compiled in groups find the headers of their neighbours, and a compiler then says
nothing. So a type, constant or function of one of our headers has to be mentioned in what a file includes, directly or
through others. A file's own names may be the same: members, parameters, locals.
"""

import re

import checks
from check_types import NO_CODE

HEADERS = {
    "algorithm": "all_of any_of binary_search clamp copy copy_if count count_if equal equal_range fill fill_n find find_if "
    "find_if_not for_each generate is_sorted lexicographical_compare lower_bound max max_element min min_element "
    "minmax_element mismatch next_permutation none_of nth_element partial_sort partition partition_point push_heap pop_heap "
    "make_heap remove_if replace reverse rotate search set_difference set_intersection set_union shuffle sort stable_sort "
    "transform unique upper_bound",
    "atomic": "atomic atomic_ref",
    "bit": "bit_cast bit_width countr_zero popcount has_single_bit",
    "chrono": "chrono",
    "condition_variable": "condition_variable",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream fstream",
    "limits": "numeric_limits",
    "memory": "unique_ptr shared_ptr make_unique make_shared weak_ptr",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once",
    "numeric": "accumulate iota gcd lcm inner_product partial_sum reduce",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 uniform_int_distribution uniform_real_distribution normal_distribution",
    "set": "set multiset",
    "sstream": "istringstream ostringstream stringstream",
    "thread": "thread jthread",
    "tuple": "tuple tie make_tuple",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
}
HEADER_OF = {name: header for header, names in HEADERS.items() for name in names.split()}
USE = re.compile(r"std::(?:ranges::)?(\w+)\b(?!::\w+_t\b)")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')


# The folders that a folder's files may include, apart from the folder itself, as check_layers.py says in detail.
VISIBLE = {
    "schedules": ["sim"],
    "traces": ["sim"],
    "exec": ["sim"],
    "tools": ["sim", "schedules", "traces", "exec"],
    "tests": ["sim", "schedules", "traces", "exec", "tools"],
}
OWN_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
TEST_NAMES = re.compile(r"\b(?:TEST(?:_[FP])?|INSTANTIATE_TEST_SUITE_P)\([^)]*\)|\btesting::\w+")
# The names that a header offers: types and constants, and functions, whose names begin a line with their result.
OFFERED = re.compile(
    r"^(?:(?:struct|class|enum class|enum|using) (\w+)\b|(?:inline )?constexpr [\w:<>, ]+?(k[A-Z]\w*))", re.MULTILINE
)
OFFERED_FUNCTION = re.compile(
    r"^(?!(?:using|namespace|struct|class|enum|template|return|typedef)\b|#)[A-Za-z_][\w:<>,&*\s]*?[\s&*>](\w+)\(", re.MULTILINE
)
CALL = re.compile(r"(?<![\w.>:])(?:(?:sim|schedules|traces|exec|tools|bubblescope)::)*(\w+)\(")
# The names that a file declares itself, at any depth: types, functions, variables, parameters, enumerators.
DECLARED = re.compile(
    r"\b(?:struct|class|typename|enum class|enum|using|union|constexpr [\w:]+)\s*(?:\.\.\.)?\s*(\w+)"
    r"|\b(?!return\b|else\b|throw\b|case\b)\w+>?[&*]?\s+[&*]?(\w+)(?:[(){;,]| =)|\(\*(\w+)\)|(k[A-Z]\w*)\s*[,}=]|\b(\w+)\(\w+\) \{"
)


def first_names(matches):
    return {next(filter(None, match), "") if isinstance(match, tuple) else match for match in matches}


class OwnNames:
    """The names that the project's headers offer, and the files that find them."""

    def __init__(self, sources):
        self.code = {path: TEST_NAMES.sub(" ", NO_CODE.sub(" ", text)) for path, text in sources.items()}
        self.words = {path: set(WORD.findall(code)) for path, code in self.code.items()}
        self.included = {
            path: [name for name in OWN_INCLUDE.findall(text) if name in sources] for path, text in sources.items()
        }
        self.offered, self.functions = {}, {}
        for path, code in self.code.items():
            if not path.endswith(".h"):
                continue
            for name in first_names(OFFERED.findall(code)):
                self.offered.setdefault(name, set()).add(path)
            for name in OFFERED_FUNCTION.findall(code):
                self.functions.setdefault(name, set()).add(path)

    def reached(self, path):
        """The files that this one includes, directly or not."""
        seen, left = set(), list(self.included[path])
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left.extend(self.included[name])
        return seen

    def missing(self, path):
        """(name, header that offers it) of each name that the file mentions and nothing that it includes does."""
        found = set().union(*(self.words[name] for name in self.reached(path)))
        found |= first_names(DECLARED.findall(self.code[path]))
        folder = path.split("/")[0]
        folders = [folder, *VISIBLE.get(folder, [])]
        calls = set(CALL.findall(self.code[path]))
        for name in sorted(self.words[path] - found):
            offers = self.offered.get(name, set()) | (self.functions.get(name, set()) if name in calls else set())
            offers = {header for header in offers - {path} if header.split("/")[0] in folders}
            if offers and path not in self.offered.get(name, set()):
                yield name, min(offers)


def check_standard(path, sources):
    """Uses of the standard library without their header, as text."""
    text = sources[path]
    own = sources.get(path.removesuffix(".cc") + ".h", "")
    known = set(INCLUDE.findall(text) + INCLUDE.findall(own))
    code = "\n".join(line if line.startswith("#") else COMMENT.sub("", line) for line in text.splitlines())
    for number, line in enumerate(code.splitlines(), 1):
        for name in USE.findall(line):
            header = HEADER_OF.get(name)
            if header and header not in known:
                known.add(header)
                yield f"{path}:{number}: std::{name} needs #include <{header}>"


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    sources = checks.read_sources(root)
    names = OwnNames(sources)
    faults = []
    for path in sources:
        if path.endswith((".h", ".cc")):
            faults += check_standard(path, sources)
        faults += [f'{path}: {name} needs #include "{header}"' for name, header in names.missing(path)]
    return len(sources), faults


BAD = ["int a = std::max(1, 2);", "#include <vector>\nstd::vector<std::set<int>> a;", "auto a = std::ranges::sort(b);"]
GOOD = ["#include <algorithm>\nint a = std::max(1, 2);", "// std::max", 'f("std::max");', "std::size_t a;"]


HEADER = "namespace bubblescope::inline sim {\nstruct Rope {};\nconstexpr int kKnots = 3;\nint tie_rope(const Rope& rope);\n}\n"
OWN_BAD = ["Rope rope;", "int a = kKnots;", "int b = tie_rope({});", "int b = sim::tie_rope({});"]
OWN_GOOD = [
    '#include "sim/rope.h"\nRope rope;',
    '#include "sim/knot.h"\nRope rope;',
    "struct Rope;",
    "template <class Rope> Rope f();",
    "int b = a.tie_rope();",
    "int f(int tie_rope(int)) { return tie_rope(1); }",
    "// Rope",
    "enum Numbers { kKnots };",
]


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{"sim/a.cc": line + "\n"} for line in lines], expected)
    for lines, expected in ((OWN_BAD, 1), (OWN_GOOD, 0)):
        tree = {"sim/rope.h": HEADER, "sim/knot.h": '#include "sim/rope.h"\n'}
        checks.expect_faults(check, [{**tree, "sim/a.cc": line + "\n"} for line in lines], expected)
    # A folder does not see the names of those above it.
    checks.expect_faults(check, [{"tools/rope.h": HEADER, "sim/a.cc": "int a = kKnots;\n"}], 0)


if __name__ == "__main__":
    checks.run(check, self_test, "files: headers for all names that they use")

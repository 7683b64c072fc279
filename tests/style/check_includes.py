#!/usr/bin/env python3
"""Fails where a source uses a name of the standard library without the header that promises it.

    check_includes.py ROOT         prints every such line, exit 1 if there is any
    check_includes.py --self-test  plants lines and sees to it that exactly the bad ones are found

Other headers include them by chance, and another release of a compiler or of a library no longer does. A source may
rely on the header of its own name. Types that our own headers have in their interfaces, such as std::vector, are not
looked for: a use of the interface brings them.
"""

import re

import checks

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


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    sources = checks.read_sources(root, endings={".h", ".cc"})
    for path, text in sources.items():
        own = sources.get(path.removesuffix(".cc") + ".h", "")
        known = set(INCLUDE.findall(text) + INCLUDE.findall(own))
        code = "\n".join(line if line.startswith("#") else COMMENT.sub("", line) for line in text.splitlines())
        for number, line in enumerate(code.splitlines(), 1):
            for name in USE.findall(line):
                header = HEADER_OF.get(name)
                if header and header not in known:
                    known.add(header)
                    faults.append(f"{path}:{number}: std::{name} needs #include <{header}>")
    return len(sources), faults


BAD = ["int a = std::max(1, 2);", "#include <vector>\nstd::vector<std::set<int>> a;", "auto a = std::ranges::sort(b);"]
GOOD = ["#include <algorithm>\nint a = std::max(1, 2);", "// std::max", 'f("std::max");', "std::size_t a;"]


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{"sim/a.cc": line + "\n"} for line in lines], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: headers for all names of the standard library")

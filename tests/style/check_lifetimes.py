"""Fails where a loop runs over an element of a temporary, which dies before the first turn.

    check_lifetimes.py ROOT         prints every such loop, exit 1 if there is any
    check_lifetimes.py --self-test  plants lines and sees to it that exactly the bad ones are found

`for (x : parse(text)["list"])` holds a reference into a tree that is gone. Compilers before g++ 13 do not warn, and only
AddressSanitizer sees it. Give the tree a name first, or let the function return a reference to what lives longer and name
that.
"""

import re

import checks

LOOP = re.compile(r"\bfor \(.* : (.*)")
CALL = re.compile(r"[\w:<>.]+\(")
# A part of what a call returns: an element, or what a function returns that gives references to parts.
PART = re.compile(r"(\.\w+)*(\[|\.(at|front|back|value|items|get_ref)\()")


def end_of_brackets(text):
    """The length of the text before the bracket that closes what is open at its begin."""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return place
    return len(text)


def is_bad(line):
    loop = LOOP.search(line)
    if loop is None:
        return False
    rest = loop[1][:end_of_brackets(loop[1])]
    call = CALL.match(rest)
    if call is None:
        return False
    after = rest[call.end():]
    return PART.match(after[end_of_brackets(after) + 1:]) is not None


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    sources = checks.read_sources(root)
    for path, text in sources.items():
        for number, line in checks.code_lines(text):
            if is_bad(line):
                faults.append(f"{path}:{number}: runs over a part of a temporary; name it first")
    return len(sources), faults


BAD = [
    'for (const Json& row : json_of(kCommand)["rows"]) {',
    '  for (const auto& [key, value] : parse(text)["a"].items())',
    "for (const Op& op : build(request).ranks.at(0)) {",
    "for (const Op& op : build(request).ranks[0]) {",
]
GOOD = [
    'for (const Json& row : output["rows"]) {',
    "for (const Op& op : ops_of(ranks[0])) {",
    "for (const Layer& layer : parse(kGraph).layers) use(layer[0]);",
    "for (const std::string& name : names()) { use(name)[0]; }",
    "for (const Job& job : read(write(format)[0].content))",
]


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{"tests/a.cc": line + "\n"} for line in lines], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: no loop runs over a part of a temporary")

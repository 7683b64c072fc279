"""Fails where json is made without traces/json/json_writer.h.

    check_json.py ROOT         prints every such line, exit 1 if there is any
    check_json.py --self-test  plants lines and sees to it that exactly the bad ones are found

Three signs give it away: a string literal with a quoted key and its colon, a tree of nlohmann's that is made to be
printed, and a quoted string that is pieced together with others.
"""

import re

import checks

SIGNS = [
    (re.compile(r'\\"\s*:|:\s*\\"|\{\\"|R"\w*\([^)"]*"[\w{}]+"\s*:'), "makes json by hand"),
    (re.compile(r"\bordered_json\b|[.>]dump\("), "makes a tree of json to print it"),
    (re.compile(r"\bjson_string\("), "pieces json together"),
]
# Files that may, and why.
EXCEPTIONS = {
    "traces/json/json_writer.cc": "the writer",
    "traces/json/json_string.h": "the writer's strings",
    "traces/json/json_string.cc": "the writer's strings",
    "traces/json/json_node.cc": "an error quotes the member that a file lacks",
}


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    sources = checks.read_sources(root, checks.PRODUCT)
    for path, text in sources.items():
        for number, line in checks.code_lines("" if path in EXCEPTIONS else text):
            for sign, what in SIGNS:
                if sign.search(line):
                    faults.append(f"{path}:{number}: {what}; use JsonWriter")
    return len(sources), faults


BAD = [
    'text += "{\\"rank\\":" + rank;',
    'text += fmt::format("\\"rank\\":{}", rank);',
    'print(R"({"rank":4})");',
    "nlohmann::ordered_json json{};",
    "print(json.dump(1));",
    "text += json_string(name);",
]
GOOD = [
    'json.member("rank", 4);',
    '// "rank":4, "{\\"op\\":" and json.dump(1)',
    'fail("the name is \\"a\\" or \\"b\\"");',
    "const nlohmann::json read = nlohmann::json::parse(text);",
]


def self_test():
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        checks.expect_faults(check, [{"tools/a.cc": line + "\n"} for line in lines], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files: all json is written by the one writer")

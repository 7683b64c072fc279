"""Fails on what is too long to be read at once: a function, a header or a source file.

    check_sizes.py ROOT         prints what is over its limit, exit 1 if there is anything
    check_sizes.py --self-test  measures planted code
"""

import pathlib
import re

import checks

FILE_LIMITS = {".h": 120, ".cuh": 120, ".cc": 400, ".cu": 400, ".js": 400, ".css": 400}
FUNCTION_LIMIT = 60
# Matches comments, strings and character literals; everything in them except line ends is blanked before braces are
# counted.
OPAQUE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'|^\s*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$")


def functions(text):
    """(first line, last line) of every outermost function, from the start of its declaration."""
    text = OPAQUE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    inside = 0  # open braces within a function
    start = end = 0  # of the function that was read last; end is 0 while there is none to report
    line = 1
    head = ""  # the text since the last statement or scope ended
    for char in text + ";":
        if end and not char.isspace():
            if char in "{,":  # the braces before were a member's initializer: this is the same function
                head = "("
            else:
                yield start, end
            end = 0
        if char == "{" and (inside or ("(" in head and not SCOPE.search(head))):
            inside += 1
        elif char == "}" and inside:
            inside -= 1
            if not inside:
                end, head = line, ""
        elif not inside:
            if char in "{};":
                head = ""
            elif head or not char.isspace():
                start = start if head else line
                head += char
        line += char == "\n"


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    sources = checks.read_sources(root, endings=FILE_LIMITS)
    for path, text in sources.items():
        ending = pathlib.PurePath(path).suffix
        length, limit = text.count("\n"), FILE_LIMITS[ending]
        if length > limit:
            faults.append(f"{path}: {length} lines, limit {limit}; split the file")
        for first, last in functions(text) if ending not in (".js", ".css") else ():
            if last - first + 1 > FUNCTION_LIMIT:
                faults.append(f"{path}:{first}: a function of {last - first + 1} lines, limit {FUNCTION_LIMIT}")
    return len(sources), faults


SAMPLE = """// A brace in a comment { and a "string {
#define OPEN {
namespace a {
struct B {
  int x = 0;
  int get() const {
    return x;
  }
};
enum class C { kOne, kTwo };
template <typename T>
T twice(T value,
        int n = '{') noexcept {
  if (n > 0) { value += "}"[0]; }
  auto f = [&](int y) { return y + 1'000; };
  return f(value);
}
constexpr int kTable[] = {1, 2};
B::B()
    : x{3},
      y{4} {
  get();
}
}  // namespace a
"""


def self_test():
    assert list(functions(SAMPLE)) == [(6, 8), (11, 17), (19, 23)], list(functions(SAMPLE))

    def body(lines):
        return "int f() {\n" + "  g();\n" * (lines - 2) + "}\n"

    checks.expect_faults(check, [{"sim/a.cc": body(60)}, {"sim/a.h": "\n" * 120}, {"sim/a.cc": "\n" * 400}], 0)
    checks.expect_faults(check, [{"sim/a.cc": body(61)}, {"sim/a.h": "\n" * 121}, {"sim/a.cc": "\n" * 401}], 1)


if __name__ == "__main__":
    checks.run(check, self_test, "files are within their limits")

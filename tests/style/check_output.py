"""Finds code that prints without tools/print.h, which keeps printed text from acting on a terminal, and texts that leave
the number of a noun open, "rank(s)", which counted() in sim/ir/counted.h writes.

    check_output.py ROOT         prints the lines that do so, and exits with 1 if there is any
    check_output.py --self-test  checks that planted violations are found
"""

import re

import checks

SINKS = {"tools/print.cc", "tools/print.h"}
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
PRINTS = re.compile(
    r"\bfmt::(?:print|println|vprint)\b|\bstd::(?:cout|cerr|clog|print|println)\b"
    r"|(?<![\w])(?:std::)?(?:printf|fprintf|vprintf|vfprintf|dprintf|puts|fputs|putchar|fputc|putc|fwrite|perror)\s*\("
    r"|\bwrite\s*\(\s*(?:STDOUT_FILENO|STDERR_FILENO|1|2)\s*,"
)

OPEN_PLURAL = re.compile(r'"(?:\\.|[^"\\])*[a-z]\(e?s\)(?:\\.|[^"\\])*"')


def faults_of(text):
    """Returns (line, function) for every call in the code that prints."""
    code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return [(code.count("\n", 0, m.start()) + 1, m[0].strip("( ")) for m in PRINTS.finditer(code)]


def open_plurals_of(text):
    """Returns the lines of strings with a noun such as "rank(s)"."""
    return [at for at, line in checks.code_lines(text) if OPEN_PLURAL.search(line.split(" // ")[0])]


def check(root):
    sources = checks.read_sources(root, checks.PRODUCT)
    faults = []
    for path, text in sources.items():
        prints = faults_of(text) if path.startswith("tools/") and path not in SINKS else []
        for line, what in prints:
            faults.append(f"{path}:{line}: {what} prints past tools/print.h; call show or say")
        for line in open_plurals_of(text):
            faults.append(f"{path}:{line}: a noun's number is left open; write it with counted()")
    return len(sources), faults


def self_test():
    planted = [
        'fmt::print("x");',
        'std::printf("x");',
        'fprintf(stderr, "x");',
        "std::cout << 1;",
        "std::cerr << 1;",
        'std::fputs("x", stdout);',
        "std::fwrite(text, 1, 2, stdout);",
        'write(STDERR_FILENO, "x", 1);',
    ]
    for code in planted:
        assert len(faults_of(code)) == 1, code
    harmless = ["// printf(x)", '"puts(x)";', "snprintf(buffer, 4, x);", "outputs(x);", 'show("x");', "file.write(x, 1);"]
    for code in harmless:
        assert not faults_of(code), code
    for code in ['"{} rank(s)"', 'fmt::format("has {} batch(es), or {}", 1)']:
        assert open_plurals_of(code) == [1], code
    for code in ["// rank(s)", 'f("time (s):");', "rank(s);", 'read("a", s); // "rank(s)"']:
        assert not open_plurals_of(code), code
    assert faults_of('int x;\n\nputs("a");\n') == [(3, "puts")]


if __name__ == "__main__":
    checks.run(check, self_test, "files print through tools/print.h")

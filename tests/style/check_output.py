"""Finds code that prints without tools/print.h, which keeps printed text from acting on a terminal, and texts that leave
the number of a noun open, "rank(s)", or fixed, "{} ranks": counted() in sim/ir/counted.h writes a count and its noun.

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

LITERAL = r'"(?:\\.|[^"\\\n])*"'
OPEN_PLURAL = re.compile(r'"(?:\\.|[^"\\])*[a-z]\(e?s\)(?:\\.|[^"\\])*"')
LITERALS = re.compile(rf"{LITERAL}(?:\s*{LITERAL})*")
NESTED = r"\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"  # arguments with three levels of calls in them
COUNTED = re.compile(rf'\bcounted{NESTED},\s*"([a-zA-Z -]+)"\)')
# Plurals that are verbs as well, as in "{} runs twice".
VERBS = {"ends", "forwards", "launches", "names", "others", "plans", "ranges", "receives", "reports", "runs", "sends",
         "shards", "shares", "slices", "states", "times", "traces", "updates"}
# Between a name and a noun: "{} has replicas", "{} of ranks". Other words describe the noun: "{} inner stages".
BETWEEN = r"(?:[a-z-]*s|and|as|at|between|for|in|of|on|or|than|that|to|where|which|with)\b"
COMMENT = re.compile(r"(?m)^[ \t]*//.*$")
# Notes on recordings still write their counts by hand; the CUDA module is not linked with sim/.
UNCOUNTED = re.compile(r"traces/measured/|.*\.cuh?$")


def faults_of(text):
    """Returns (line, function) for every call in the code that prints."""
    code = COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    return [(code.count("\n", 0, m.start()) + 1, m[0].strip("( ")) for m in PRINTS.finditer(code)]


def open_plurals_of(text):
    """Returns the lines of strings with a noun such as "rank(s)"."""
    return [at for at, line in checks.code_lines(text) if OPEN_PLURAL.search(line.split(" // ")[0])]


def plural_of(noun):
    """Returns the plural that counted() writes."""
    if noun.endswith(("ry", "py")):
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("ch", "ss")) else "s")


def fixed_plurals_of(text, nouns):
    """Returns (line, text) for every count that is written with the plural of one of these nouns: "{} ranks"."""
    plurals = "|".join(sorted({plural_of(noun) for noun in nouns} - VERBS, key=len, reverse=True))
    in_format = re.compile(rf"\{{\d*\}} (?:(?!{BETWEEN})[a-z-]+ )?(?:{plurals})\b(?!/)")
    appended = re.compile(rf'\bto_string{NESTED}\)\s*\+\s*"(?: (?!{BETWEEN})[a-z-]+)? (?:{plurals})\b')
    text = COMMENT.sub("", text)

    def at(match):
        return text.count("\n", 0, match.start()) + 1

    found = [(at(literals), fixed[0]) for literals in LITERALS.finditer(text)
             for fixed in in_format.finditer(re.sub(r'"\s*"', "", literals[0]))]
    return found + [(at(fixed), fixed[0]) for fixed in appended.finditer(text)]


def check(root):
    sources = checks.read_sources(root, checks.PRODUCT)
    faults = []
    nouns = {noun.split()[-1] for text in sources.values() for noun in COUNTED.findall(text)}
    for path, text in sources.items():
        prints = faults_of(text) if path.startswith("tools/") and path not in SINKS else []
        for line, what in prints:
            faults.append(f"{path}:{line}: {what} prints past tools/print.h; call show or say")
        for line in open_plurals_of(text):
            faults.append(f"{path}:{line}: a noun's number is left open; write it with counted()")
        for line, what in [] if UNCOUNTED.match(path) else fixed_plurals_of(text, nouns):
            faults.append(f"{path}:{line}: '{what}' is wrong for 1; write the count and its noun with counted()")
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
    fixed = ['f("{} ranks");', 'f("has {} "\n  "inner stages");', 'to_string(size(a, b)) + " entries";', 'f("{2} ranks")']
    for code in fixed:
        assert len(fixed_plurals_of(code, {"rank", "stage", "entry"})) == 1, code
    for code in ['f("{} has ranks");', '// "{} ranks"', 'f("{} ranking");', 'name(a) + " ranks";', 'f("{} runs");']:
        assert not fixed_plurals_of(code, {"rank", "run"}), code
    assert COUNTED.findall('counted(size(a(1)), "rank")') == ["rank"]
    assert faults_of('int x;\n\nputs("a");\n') == [(3, "puts")]


if __name__ == "__main__":
    checks.run(check, self_test, "files print through tools/print.h")

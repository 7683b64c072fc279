"""Finds comments that begin with a word which makes a riddle of them: "What the file holds." has no verb of its own.
Finds lines of comments that an edit left short: the next line's first word would fit, and no sentence ends there.

    check_comments.py ROOT         prints the comments, and exits with 1 if there is any
    check_comments.py --self-test  checks that planted violations are found
"""

import re

import checks

ENDINGS = checks.SOURCES | {".py", ".sh", ".cmake", ".txt"}
BEGIN = re.compile(r'\s*(?://[/!]?<?|#|""")\s*(?:Of|What|Which|Whose)\b')
COMMENT = re.compile(r"\s*(?://|#)")
LINE = re.compile(r"(\s*///?) (\S.*)$")
# Lists, samples and tables keep their lines, and so do lines after which something else begins.
SAMPLE = re.compile(r"[-*|:{\[<\"]|\d+[.)]|.*  ")
ENDS = (".", ":", ";")
WIDTH, SHORT = 100, 60


def faults_of(text):
    """Returns the numbers of the lines on which such a comment begins; its further lines may begin with any word."""
    faults = []
    in_comment = False
    for at, line in enumerate(text.splitlines(), 1):
        if not in_comment and BEGIN.match(line):
            faults.append(at)
        in_comment = bool(COMMENT.match(line)) and len(line.strip(" /#")) > 0
    return faults


def short_lines_of(text):
    """Returns the numbers of the lines of C++ comments that end early within a sentence."""
    faults = []
    lines = text.splitlines()
    for at, (line, following) in enumerate(zip(lines, lines[1:]), 1):
        this, after = LINE.match(line), LINE.match(following)
        if not this or not after or this[1] != after[1] or len(line) >= SHORT or this[2].endswith(ENDS):
            continue
        if SAMPLE.match(this[2]) or SAMPLE.match(after[2]):
            continue
        if len(line) + 1 + len(after[2].split()[0]) <= WIDTH:
            faults.append(at)
    return faults


def check(root):
    sources = checks.read_sources(root, endings=ENDINGS)
    faults = [
        f"{path}:{line}: the comment begins with Of, What, Which or Whose; write a sentence with a subject and a verb"
        for path, text in sources.items()
        for line in faults_of(text)
    ]
    faults += [
        f"{path}:{line}: the comment's line ends early; fill it up with the next one"
        for path, text in sources.items()
        if path.endswith((".h", ".cc"))
        for line in short_lines_of(text)
    ]
    return len(sources), faults


def self_test():
    planted = ["// What it does.", "int x;\n  /// Of all ranks.", "# Which file.", "//\n// Whose rank.", '"""What it is."""']
    for text in planted:
        assert len(faults_of(text)) == 1, text
    harmless = ["// The files\n// Which are read.", "// Whatever it is, it ends.", 'x = "What"', "#include <a>\n"]
    for text in harmless:
        assert not faults_of(text), text
    assert short_lines_of("/// Accepts any\n/// schedule.") == [1]
    for text in ("/// Ends here.\n/// Begins.", "// - one\n// - two", "// a short\n\n// one", "// last\nint x;"):
        assert not short_lines_of(text), text


if __name__ == "__main__":
    checks.run(check, self_test, "files have no comment that begins as a riddle or ends a line early")

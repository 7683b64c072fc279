"""Mutations of files: bytes, tokens, numbers, lines, cells and json values; packed and checksummed files stay whole."""

import gzip
import json
import re
import zlib

NUMBERS = [b"0", b"-1", b"1", b"2", b"7", b"255", b"256", b"65535", b"65536", b"16777215", b"16777216", b"2147483647",
           b"2147483648", b"-2147483648", b"4294967296", b"9223372036854775807", b"9223372036854775808",
           b"-9223372036854775808", b"18446744073709551615", b"1e308", b"1e999", b"-1e-308", b"0.5", b"1.5", b"1e18",
           b"1152921504606846975", b"9.3e18", b"3153600000000000000", b"NaN", b"Infinity", b"nan", b"-inf", b"00", b"0x10", b""]
TOKENS = [b"\0", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\xc2\x9b", b"\r\n", b"\r", b"\n", b",", b";",
          b"|", b"_", b"(", b")", b"OVERLAP_F_B", b"0F0", b"0B0", b"1I0", b"1W0", b"9REDUCE_GRAD", b"0SEND_F0",
          b"1RECV_F0", b"3UNSHARD", b"3RESHARD", b"0OPTIMIZER", b"2R0", b"60000B0", b"65535F16777215", b"0F0.1", b"\"",
          b"\\", b"{", b"}", b"[", b"]", b"null", b"true", b"=1+1", b"@x", b"'", b"A" * 300, b"[" * 400, b"--svg"]
JOURNAL = b"bubblescope-plan-journal/1 "
WORD = 0xFFFFFFFFFFFFFFFF


def checksum(text):
    """The digest of sim/ir/digest.h."""
    def mix(bits):
        bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & WORD
        bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & WORD
        return (bits ^ (bits >> 31)) + 0x9E3779B97F4A7C15 & WORD

    value = mix(len(text))
    for at in range(0, len(text), 8):
        value = mix(value ^ int.from_bytes(text[at:at + 8], "little"))
    return b"%016x" % value


def json_values(value, path=()):
    """The ways to every value below a json value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield path + (key,)
        yield from json_values(inner, path + (key,))


class Mutator:
    def __init__(self, random, others):
        self.random = random
        self.others = others  # contents that pieces are taken from

    def mutate(self, content):
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 6])):
            content = self.once(content)
        return content

    def once(self, content):
        if content[:2] == b"\x1f\x8b" and self.random.random() < 0.7:
            try:
                return gzip.compress(self.once(gzip.decompress(content)), mtime=0)
            except (OSError, EOFError, zlib.error):
                pass
        if content.startswith(JOURNAL) and self.random.random() < 0.8:
            return self.journal_line(content)
        if content[:1] in b"{[" and content and self.random.random() < 0.5:
            try:
                return self.json_value(content)
            except (ValueError, RecursionError):
                pass
        ways = [self.number, self.number, self.token, self.token, self.byte, self.cut, self.double, self.line, self.cell,
                self.splice]
        return self.random.choice(ways)(content)

    def place(self, content):
        return self.random.randrange(len(content) + 1)

    def number(self, content):
        found = list(re.finditer(rb"\d+(\.\d+)?", content))
        if not found:
            return content + self.random.choice(NUMBERS)
        at = self.random.choice(found)
        near = b"%d" % (int(at[0].split(b".")[0]) + self.random.choice([-1, 1])) if self.random.random() < 0.3 else None
        return content[:at.start()] + (near or self.random.choice(NUMBERS)) + content[at.end():]

    def token(self, content):
        at = self.place(content)
        return content[:at] + self.random.choice(TOKENS) + content[at + self.random.choice([0, 0, 1, 3]):]

    def byte(self, content):
        at = self.place(content)
        return content[:at] + bytes([self.random.randrange(256)]) + content[at + 1:]

    def cut(self, content):
        begin, end = sorted((self.place(content), self.place(content)))
        return content[:begin] + content[end:] if self.random.random() < 0.7 else content[:begin]

    def double(self, content):
        begin, end = sorted((self.place(content), self.place(content)))
        return content[:end] + content[begin:]

    def line(self, content):
        lines = content.split(b"\n")
        at = self.random.randrange(len(lines))
        change = self.random.choice(["drop", "double", "swap", "empty"])
        if change == "drop":
            del lines[at]
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "empty":
            lines.insert(at, b"")
        else:
            other = self.random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        return b"\n".join(lines)

    def cell(self, content):
        cells = re.split(rb"([,|\n ])", content)
        at, other = self.random.randrange(len(cells)), self.random.randrange(len(cells))
        cells[at], cells[other] = cells[other], cells[at]
        return b"".join(cells)

    def splice(self, content):
        other = self.random.choice(self.others)
        begin, end = sorted((self.place(other), self.place(other)))
        at = self.place(content)
        return content[:at] + other[begin:min(end, begin + 4000)] + content[at:]

    def json_value(self, content):
        whole = json.loads(content)
        changed = json.dumps(self.changed(whole)).encode()
        if self.random.random() < 0.05:  # a key that stands twice
            changed = changed.replace(b"{", b'{"format":1,', 1)
        return changed

    def changed(self, whole):
        places = list(json_values(whole))
        if not places:
            return whole
        path = self.random.choice(places)
        inner = whole
        for key in path[:-1]:
            inner = inner[key]
        value = inner[path[-1]]
        change = self.random.choice(["drop", "number", "number", "number", "text", "nest", "empty", "double", "same"])
        if change == "drop":
            del inner[path[-1]]
        elif change == "double" and isinstance(inner, list):
            inner.insert(path[-1], value)
        elif change == "same" and isinstance(inner, list):
            inner[path[-1]] = inner[self.random.randrange(len(inner))]
        elif change == "nest":
            inner[path[-1]] = [value] * self.random.choice([1, 2, 50])
        elif change == "text":
            inner[path[-1]] = self.random.choice(TOKENS).decode("latin1")
        elif change == "empty":
            inner[path[-1]] = self.random.choice([None, {}, [], "", True])
        else:
            number = self.random.choice([-1, 0, 1, 2, 3, 5, 1000, 65536, 2**31 - 1, 2**31, 2**40, 2**59, 2**60 - 1,
                                         2**62, 2**63 - 1, 2**64, 1e18, 1e300, 0.5, -0.5, 1e-300])
            inner[path[-1]] = number if self.random.random() < 0.8 else str(number) + self.random.choice(["ms", "GiB", ""])
        return whole

    def journal_line(self, content):
        """Changes what one line says and gives it its checksum."""
        lines = content.split(b"\n")
        at = self.random.randrange(max(1, len(lines) - 1))
        begin = JOURNAL if at == 0 else b""
        text = lines[at][len(begin) + 17:]
        try:
            text = self.json_value(text)
        except (ValueError, RecursionError):
            text = self.number(text)
        lines[at] = begin + checksum(text) + b" " + text
        return b"\n".join(lines)

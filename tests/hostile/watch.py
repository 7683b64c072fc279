"""Runs one command in a folder of its own and says what it did that no command may do."""

import hashlib
import json
import os
import re
import resource
import signal
import stat
import time

MEMORY = 1 << 30  # bytes
SECONDS = 10  # of processor time; of the clock six times that, as other work may hold the machine
LONGEST_MESSAGE = 12_000
# Words of the json that may be negative: differences between two sides.
SIGNED = re.compile(r"change|later|shift|difference|saves|gap|error|excess|slack|delta|M_[SW]|position|offset|head_room", re.I)
LATEST = 2**60  # nanoseconds and bytes


def limit_memory(sanitized=False):
    """For this process and all that it starts. A sanitizer reserves terabytes of addresses and takes its own time."""
    global MEMORY, SECONDS
    if sanitized:
        MEMORY, SECONDS = 8 * MEMORY, 10 * SECONDS
    else:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # of this process; what is started gets the default


def listing(folder):
    """Lists a folder: name -> kind, rights and content."""
    found = {}
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        status = os.lstat(path)
        content = ""
        if stat.S_ISREG(status.st_mode) and status.st_size < 64 << 20:
            with open(path, "rb") as file:
                content = hashlib.sha1(file.read()).hexdigest()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        found[name] = (status.st_mode, status.st_size if stat.S_ISREG(status.st_mode) else 0, content)
    return found


def start(binary, words, folder, out, err):
    """(status, resources, seconds): runs to the end, or until it is stopped."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    os.chdir(folder)
    began = time.monotonic()
    environment = {"HOME": folder, "PATH": "/usr/bin:/bin", "TMPDIR": folder, "LC_ALL": "C.UTF-8"}
    process = os.posix_spawn(binary, [binary, *words], environment, file_actions=actions, setsigdef=[signal.SIGXCPU])
    while True:
        ended, status, used = os.wait4(process, os.WNOHANG)
        seconds = time.monotonic() - began
        if ended:
            return status, used, seconds
        if seconds > 6 * SECONDS:
            os.kill(process, signal.SIGKILL)
            _, status, used = os.wait4(process, 0)
            return status, used, seconds
        time.sleep(0.0005 if seconds < 0.05 else 0.01)


def is_acting(text):
    """The first control character that a terminal would act on, or None."""
    try:
        words = text.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"a byte that is not UTF-8 at {error.start}"
    acting = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", words)
    return f"U+{ord(acting[0]):04X} at {acting.start()}" if acting else None


def absurd_number(value, key=""):
    """The first number in json that cannot be, or None."""
    if isinstance(value, dict):
        return next((bad for name, inner in value.items() if (bad := absurd_number(inner, name))), None)
    if isinstance(value, list):
        return next((bad for inner in value if (bad := absurd_number(inner, key))), None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if value != value or abs(value) > LATEST or (value < -1e-6 and not SIGNED.search(key)):
        return f"{key} is {value}"
    return None


def absurd_output(words, out):
    """Says what is wrong with the results of a command that succeeded."""
    text = out.decode("utf-8", "replace")
    if "--format" in words and words[words.index("--format") + 1] == "json":
        try:
            return absurd_number(json.loads(text))
        except ValueError as error:
            return f"its json cannot be read: {error}"
    if words[0] in ("simulate", "analyze", "check", "partition", "plan", "compare"):
        own = re.sub(r"'[^'\n]*'", "''", text)  # without what is quoted from a file
        bad = re.search(r"(?<![\w.%-])(-\d[\d.]* (?:ns|us|ms|s)|-?nan\b|-?inf\b)(?![\w-])", own)
        if bad:
            return f"it prints {bad[0]}"
    return None


def faults(binary, words, folder, scratch):
    """Runs a command; says in words what it did that no command may do."""
    out, err = os.path.join(scratch, "out"), os.path.join(scratch, "err")
    before = listing(folder)
    status, used, seconds = start(binary, words, folder, out, err)
    found = []
    if os.WIFSIGNALED(status):
        stopped = os.WTERMSIG(status)
        hung = stopped in (signal.SIGXCPU, signal.SIGKILL)
        found.append(f"hang: {seconds:.1f} s" if hung else f"crash: {signal.Signals(stopped).name}")
    elif os.WEXITSTATUS(status) not in (0, 1, 2, 3):
        found.append(f"status: {os.WEXITSTATUS(status)}")
    if used.ru_maxrss > MEMORY >> 10:
        found.append(f"memory: {used.ru_maxrss >> 10} MiB")
    with open(out, "rb") as file:
        printed = file.read(8 << 20)
    with open(err, "rb") as file:
        said = file.read(8 << 20)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 3 and b"out of memory" in said:
        found.append("memory: it asked for more than there is")
    if sanitizer := re.search(rb"ERROR: \w+Sanitizer: [^\n]*|[^\n]*: runtime error: [^\n]*", said):
        return [*found, "sanitizer: " + sanitizer[0][:300].decode("utf-8", "replace")]
    if re.search(rb"basic_string|vector::|std::|_M_[a-z]|json\.exception|bad_alloc|stoi|stol", said):
        found.append("words: " + said[:160].decode("utf-8", "replace").strip())
    for name, text in (("stdout", printed), ("stderr", said)):
        if name == "stdout" and "chakra" in words:
            continue
        if acting := is_acting(text):
            found.append(f"terminal: {name} has {acting}")
    if len(said) > LONGEST_MESSAGE and b"|" not in said:
        found.append(f"words: a message of {len(said)} bytes")
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 and (bad := absurd_output(words, printed)):
        found.append(f"number: {bad}")
    after = listing(folder)
    for name in sorted(set(before) | set(after)):
        own = name.startswith("o.") or (name.endswith(".journal") and "--resume" in words)
        if before.get(name) != after.get(name) and not own:
            found.append(f"file: {name} was {'changed' if name in before else 'made'}")
        if name.startswith("o.") and name.endswith((".svg", ".dot", ".csv", ".json", ".html")) and name in after:
            with open(os.path.join(folder, name), "rb") as file:
                if acting := is_acting(file.read()):
                    found.append(f"text: {name} has {acting}")
        if name not in before:
            os.unlink(os.path.join(folder, name))
    return found

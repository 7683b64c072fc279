"""Files that no program should trust, read by every command that reads files, and places to write that are traps.

    hostile_files.py BINARY

The same rules as in attack.py hold; here the files are chosen, not drawn.
"""

import gzip
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from mutate import checksum
from watch import faults, limit_memory, start

READERS = [["check", "FILE"], ["simulate", "FILE"], ["convert", "FILE", "--to", "native"], ["analyze", "FILE"], ["diff", "FILE", "FILE"],
           ["partition", "FILE", "--stages", "2"], ["plan", "--merge", "FILE", "--threads", "1"],
           ["simulate", "1f1b", "--pp", "2", "-m", "4", "--costs", "FILE"],
           ["simulate", "1f1b", "--pp", "2", "-m", "4", "--model", "FILE"],
           ["simulate", "1f1b", "--pp", "2", "-m", "4", "--model", "llama3-8b", "--gpu", "FILE"],
           ["analyze", "FILE", "--rules", "FILE"]]
FEW = [0, 3, 6, 7]  # for files that take long to refuse


def zeros(count):
    return b"\0" * count


def bomb(piece, count):
    """`count` MiB of a piece, packed."""
    packed = gzip.compress(piece * ((1 << 20) // len(piece)), 9, mtime=0)
    return packed * count


def journal(head, *lines):
    text = b"bubblescope-plan-journal/1 " + checksum(head) + b" " + head + b"\n"
    return text + b"".join(checksum(line) + b" " + line + b"\n" for line in lines)


def head(arguments):
    return json.dumps({"arguments": arguments, "fingerprint": "0"}).encode()


def contents():
    """name -> content"""
    native = b'{"format":"bubblescope-schedule/1","name":"n","shape":{"ranks":1,"microbatches":1},"placement":[0],"order":["0F0 0B0"]}'
    stages = b",".join([b'{"forward":1,"backward":2}'] * 200_000)
    files = {
        "empty.json": b"", "newline.csv": b"\n", "newlines.txt": b"\n" * 100_000, "blank.csv": b" " * 1_000_000, "nul.csv": zeros(10),
        "nul_inside.csv": b"0F0,\0,0B0\n", "zeros.json": zeros(1 << 20), "bom.csv": b"\xef\xbb\xbf0F0,0B0\n",
        "bom.json": b"\xef\xbb\xbf" + native, "utf16.json": native.decode().encode("utf-16"), "crlf.csv": b"0F0,0B0\r\n",
        "cr.csv": b"0F0,0B0\r", "no_end.csv": b"0F0,0B0", "escape.csv": b"0F0,\x1b[2J\x1b]0;title\x07,0B0\n", "latin.csv": b"0F0,\xe9,0B0\n",
        "bidi.txt": "0F0 \u202e0B0\n".encode(), "c1.txt": b"0F0 \xc2\x9b31m0B0\n", "commas.csv": b"," * 2_000_000,
        "long_cell.csv": b"0F" + b"1" * 1_000_000 + b"\n", "long_word.txt": b"x" * 1_000_000, "quotes.csv": b'"' * 100_001,
        "pairs.csv": b"(" * 100_000, "many_rows.csv": b"0F0\n" * 100_000, "wide.csv": b",".join(b"0F%d" % at for at in range(50_000)),
        "huge_stage.csv": b"65535F0,65535B0\n", "huge_microbatch.csv": b"0F16777215,0B16777215\n", "huge_number.csv": b"99999999999999999999F0\n",
        "missing_stage.csv": b"0F0,0B0,9REDUCE_GRAD\n", "negative.csv": b"-1F0,0B-1\n", "formula.csv": b"=1+1,@x\n",
        "deep.json": b"[" * 1_000_000, "deep_objects.json": b'{"a":' * 300_000, "deep_closed.json": b"[" * 100_000 + b"]" * 100_000,
        "deep_trace.json": b'{"traceEvents":' + b"[" * 1_000_000, "twice.json": native[:-1] + b',"name":"m"}', "nan.json": b'{"format":NaN}',
        "inf.json": b'{"format":"bubblescope-costs/1","stages":[{"forward":Infinity,"backward":1}]}',
        "over.json": b'{"format":"bubblescope-costs/1","stages":[{"forward":1e999,"backward":1}]}',
        "minus.json": b'{"format":"bubblescope-costs/1","stages":[{"forward":-1,"backward":1},{"forward":1,"backward":1}]}',
        "late.json": b'{"format":"bubblescope-costs/1","stages":[{"forward":"8500000s","backward":"8500000s"},{"forward":1,"backward":1}]}',
        "control.json": native.replace(b'"n"', b'"\\u001b[2J\\u202e\\u0000"'), "formula.json": native.replace(b'"n"', b'"=1+1"'),
        "long_name.json": native.replace(b'"n"', b'"' + b"n" * 1_000_000 + b'"'), "order.json": native.replace(b"0B0", b"60000B0"),
        "ranks.json": native.replace(b'"ranks":1', b'"ranks":2147483647'), "microbatches.json": native.replace(b'"microbatches":1', b'"microbatches":16777216'),
        "many_stages.json": b'{"format":"bubblescope-costs/1","stages":[' + stages + b"]}",
        "many_keys.json": b"{" + b",".join(b'"%d":1' % at for at in range(200_000)) + b"}",
        "many_values.json": b"[" + b"1," * 2_000_000 + b"1]", "many_lists.json": b"[" + b"[]," * 2_000_000 + b"[]]",
        "placement.json": native.replace(b"[0]", b"[" + b",".join([b"0"] * 200_000) + b"]"), "text.gz": b"0F0,0B0\n", "cut.json.gz": gzip.compress(native)[:-9],
        "zeros.json.gz": bomb(b"\0", 3_000), "blanks.json.gz": bomb(b" ", 3_000), "brackets.json.gz": bomb(b"[", 300),
        "values.json.gz": gzip.compress(b"[") + bomb(b"1,", 300), "events.json.gz": gzip.compress(b"[") + bomb(b'{"ph":"B","name":"0F0","ts":1},', 60),
        "members.gz": gzip.compress(b"") * 200_000, "rows.csv.gz": bomb(b"0F0\n", 300), "cells.csv.gz": bomb(b",", 300),
        "events.json": b"[" + b",".join(b'{"ph":"B","name":"0F0","pid":%d,"tid":1,"ts":1}' % at for at in range(100_000)) + b"]",
        "times.json": b'[{"ph":"X","name":"0F0","pid":0,"tid":0,"ts":9e15,"dur":9e15},{"ph":"X","name":"0B0","pid":0,"tid":0,"ts":-9e15,"dur":9e15}]',
        "timeline.csv": b"rank,lane,op\n" + b"0,0,0F0\n" * 10, "graph.txt": b"node1 -- x -- forward_compute_time=1e308, backward_compute_time=nan, activation_size=-1, parameter_size=inf\n",
        "circle.txt": b"node1 -- x -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n\tnode1 -- node1\n",
        "graph_long.txt": b"".join(b"node%d -- x -- forward_compute_time=1, backward_compute_time=1, activation_size=1, parameter_size=1\n" % at for at in range(20_000)),
        "model.json": b'{"hidden_size":9223372036854775807,"num_hidden_layers":2147483647,"num_attention_heads":1,"intermediate_size":9223372036854775807,"vocab_size":9223372036854775807}',
        "gpu.json": b'{"like":"a100","reachable_teraflops":1e-300,"per_node":2147483647}',
        "svg.journal": journal(head(["--pp", "2", "--svg", "bystander"])), "help.journal": journal(head(["--help"])),
        "resume.journal": journal(head(["--resume", "bystander"])), "reads.journal": journal(head(["--pp", "2", "--costs", "bystander"])),
        "millions.journal": journal(head(["--pp", "4"]), b'{"at":999999999999}'), "overflow.journal": journal(head(["--pp", "4"]), b'{"at":9223372036854775808}'),
        "minus.journal": journal(head(["--pp", "4"]), b'{"at":-1}'), "line.journal": b"\n", "short.journal": b"bubblescope-plan-journal/1\n",
        "deep.journal": journal(head(["--pp", "4"]), b'{"at":' + b"[" * 100_000),
    }
    for name, sql in databases().items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "d")
            with sqlite3.connect(path) as database:
                database.executescript(sql)
            database.close()
            files[name] = path.read_bytes()
    files["cut.sqlite"] = files["names.sqlite"][:5000]
    files["head.sqlite"] = b"SQLite format 3\0" + zeros(5000)
    return files


def databases():
    events = "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);"
    names = "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT"
    return {
        "view.sqlite": "CREATE VIEW NVTX_EVENTS AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) "
                       "SELECT start, start AS end, 'PP:0F0' AS text, 1 AS globalTid FROM n;",
        "generated.sqlite": "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, globalTid INTEGER, text AS (hex(zeroblob(400000000))));"
                            "INSERT INTO NVTX_EVENTS VALUES(1, 2, 3);",
        "string.sqlite": events + "INSERT INTO NVTX_EVENTS VALUES(1, 2, hex(zeroblob(20000000)), NULL, 1);",
        "names.sqlite": events + names + f"INSERT INTO StringIds {count.format(60_000)} i, 'x' FROM n;"
                        "INSERT INTO NVTX_EVENTS SELECT id, id + 1, NULL, -1, 1 FROM StringIds;",
        "times.sqlite": events + "INSERT INTO NVTX_EVENTS VALUES(-9223372036854775808, 9223372036854775807, 'PP:0F0', NULL, 1);"
                        "INSERT INTO NVTX_EVENTS VALUES(9223372036854775806, 9223372036854775807, 'PP:0B0', NULL, 1);",
        "control.sqlite": events + "INSERT INTO NVTX_EVENTS VALUES(1, 2, 'PP:0F0' || char(27) || '[2J', NULL, 1);",
        "index.sqlite": events + "CREATE INDEX i ON NVTX_EVENTS(hex(zeroblob(1000000)));",
    }


def make_odd(folder):
    """Names in the folder that are not plain files; with what must be closed again."""
    os.mkfifo(Path(folder, "pipe.json"))
    Path(folder, "folder.json").mkdir()
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(Path(folder, "s.json")))
    os.symlink("loop.json", Path(folder, "loop.json"))
    os.symlink("nothing", Path(folder, "lost.json"))
    os.symlink("/dev/zero", Path(folder, "zero.json"))
    os.symlink("/dev/urandom", Path(folder, "random.json"))
    with open(Path(folder, "sparse.json"), "wb") as file:
        file.truncate(8 << 30)
    return bound, ["pipe.json", "folder.json", "s.json", "loop.json", "lost.json", "zero.json", "random.json", "sparse.json", "/dev/zero",
                   "/dev/null", "/dev/stdin", "/proc/self/mem", "/proc/self/environ", "", "n" * 300 + ".json", "-"]


def make_files(store):
    """Writes them in a process of its own: what is started later would be counted with the memory of this one."""
    child = os.fork()
    if child == 0:
        for name, content in contents().items():
            Path(store, name).write_bytes(content)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit("the files cannot be made")
    return sorted(os.listdir(store))


def closed(binary, folder, scratch):
    """Exports are written whoever listens, and no message becomes one."""
    found = []
    for ending in ("2>&-", "2>/dev/full", "0<&- 2>&-"):
        subprocess.run(f"{binary} simulate 1f1b --pp 2 -m 4 --svg o.svg --trace o.json --save o.save {ending} > {scratch}/out", shell=True,
                       cwd=folder, check=False)
        for name, begin in (("o.svg", "<?xml"), ("o.json", "{"), ("o.save", "{")):
            path = Path(folder, name)
            if not path.exists() or not path.read_text().startswith(begin) or "wrote" in path.read_text()[-200:]:
                found.append(f"simulate ... {ending}: {name} was not written")
            path.unlink(missing_ok=True)
    endless = f"yes '0F0,0B0' | {binary} check - > {scratch}/out 2>&1; yes '' | tr '\\n' '\\0' | {binary} check - > {scratch}/out 2>&1"
    started = start("/bin/sh", ["-c", endless], folder, f"{scratch}/out", f"{scratch}/err")
    if os.WIFSIGNALED(started[0]) or started[1].ru_maxrss > 1 << 20:
        found.append("check - of an endless input: not refused")
    return found


def main():
    binary = os.path.abspath(sys.argv[1])
    folder, scratch = tempfile.mkdtemp(prefix="hostile-"), tempfile.mkdtemp(prefix="hostile-out-")
    store = tempfile.mkdtemp(prefix="hostile-files-")
    files = make_files(store)
    limit_memory()
    Path(folder, "bystander").write_text("not to be touched\n")
    bound, odd = make_odd(folder)
    found, count = closed(binary, folder, scratch), 0
    print("\n".join(found), flush=True)
    for name in [*files, *odd]:
        if name in files:
            shutil.copyfile(Path(store, name), Path(folder, name))
        slow = name == "pipe.json" or name in files and Path(store, name).stat().st_size > 100_000
        for at, reader in enumerate(READERS):
            if slow and at not in FEW:
                continue
            words = [name if word == "FILE" else word for word in reader]
            for fault in faults(binary, words, folder, scratch):
                found.append(f"{' '.join(words)[:100]}: {fault}")
                print(found[-1], flush=True)
            count += 1
        if name in files:
            Path(folder, name).unlink()
    bound.close()
    shutil.rmtree(folder)
    shutil.rmtree(scratch)
    shutil.rmtree(store)
    print(f"{len(files) + len(odd)} files in {count} commands, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

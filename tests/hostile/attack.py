"""Attacks whole commands with mutants of every file that they read, and of the values of flags.

    attack.py BINARY [--count N] [--seed S] [--jobs J] [--only KIND] [--keep FOLDER] [--sanitized]

No command may crash, run for 10 s, take 1 GiB, exit with anything but 0 to 3, succeed with a negative or absurd number,
print what a terminal acts on, or make or change a file that its command line does not name. Every mutant that breaks a
rule is printed with its command; --keep keeps its file. The seed says everything: the same one, the same mutants.
A BINARY that was built with sanitizers needs --sanitized: its reports are faults, and the limits are wider.
300 mutants take some 20 s on an idle core, 200,000 some 2 hours on two (--jobs 2).
"""

import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from mutate import Mutator
from seeds import FLAGS, KINDS, make_seeds
from watch import faults, limit_memory

CORPUS = Path(__file__).resolve().parent.parent / "fuzz" / "corpus"


def flag_words(name, mutant):
    """The command whose flag has the mutant as its value."""
    before, flag, _ = FLAGS[int(name)]
    value = os.fsdecode(mutant.replace(b"\0", b""))
    return [*before, f"{flag}={value}"]


def attack(binary, seeds, options, job, report):
    """One process's share of the mutants."""
    limit_memory(options.sanitized)
    folder = tempfile.mkdtemp(prefix="hostile-")
    scratch = tempfile.mkdtemp(prefix="hostile-out-")
    contents = [content for _, _, content in seeds]
    Path(folder, "bystander").write_text("not to be touched\n")
    for number in range(job, options.count, options.jobs):
        chance = random.Random(f"{options.seed}/{number}")
        kind, name, content = chance.choice(seeds)
        mutant = Mutator(chance, contents).mutate(content)
        words = flag_words(name, mutant) if kind == "flag" else chance.choice(KINDS[kind](name))
        path = Path(folder, name)
        path.write_bytes(mutant)
        for fault in faults(binary, words, folder, scratch):
            report(number, fault, words)
            if options.keep:
                Path(options.keep).mkdir(parents=True, exist_ok=True)
                Path(options.keep, f"{number}-{name}").write_bytes(mutant)
        path.unlink(missing_ok=True)
    shutil.rmtree(folder)
    shutil.rmtree(scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=sorted([*KINDS, "flag"]))
    parser.add_argument("--keep")
    parser.add_argument("--sanitized", action="store_true")
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    if options.keep:
        options.keep = os.path.abspath(options.keep)
    print(f"seed {options.seed}: {options.count} mutants", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds = make_seeds(binary, Path(folder), CORPUS)
    seeds = [seed for seed in seeds if options.only in (None, seed[0])]
    results = tempfile.TemporaryFile("w+")
    began = time.monotonic()
    children = []
    for job in range(options.jobs):
        child = os.fork()
        if child == 0:
            def report(number, fault, words):
                line = os.fsencode(f"{number}: {fault}: bubblescope {' '.join(words)}\n")
                os.write(results.fileno(), line)
                os.write(1, line)
            attack(binary, seeds, options, job, report)
            os._exit(0)
        children.append(child)
    broken = [child for child in children if os.waitpid(child, 0)[1] != 0]
    results.seek(0)
    kinds = collections.Counter(line.split(": ")[1] for line in results)
    seconds = time.monotonic() - began
    print(f"seed {options.seed}: {options.count} mutants in {seconds:.0f} s, {sum(kinds.values())} faults {dict(kinds)}")
    return 1 if kinds or broken else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints how long the package takes: time_package.py [REPEATS]

Import, `schedule("1f1b", pp=64, m=1024).simulate()` beside the program, which does the same and prints a report, and 1,000
scenarios on 16 ranks in one call. The least of some repeats is printed, because other processes only add to it; in
brackets is the time of the processor alone, which they hardly change.
"""
import pathlib
import resource
import subprocess
import sys
import sysconfig
import time

PROGRAM = str(pathlib.Path(sysconfig.get_path("scripts"), "bubblescope"))
REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 15


def processor_time():
    """Seconds of this process and of those that it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def least(call, repeats=REPEATS):
    """Milliseconds of the quickest call: passed, and of the processor."""
    passed, busy = [], []
    for _ in range(repeats):
        begin, busy_begin = time.perf_counter(), processor_time()
        call()
        passed.append(1000 * (time.perf_counter() - begin))
        busy.append(1000 * (processor_time() - busy_begin))
    return min(passed), min(busy)


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def main():
    empty = least(lambda: run(sys.executable, "-c", "pass"))
    loaded = least(lambda: run(sys.executable, "-c", "import bubblescope"))
    print(f"import bubblescope: {loaded[0] - empty[0]:.1f} ms ({loaded[1] - empty[1]:.1f}); Python itself {empty[0]:.1f} ms")

    import bubblescope as bs

    bs.schedule("1f1b", pp=2, m=2).simulate()  # the first call imports what errors and warnings need
    for shape in ({"pp": 8, "m": 64}, {"pp": 64, "m": 1024}):
        words = [f"--{name}={value}" for name, value in (("pp", shape["pp"]), ("microbatches", shape["m"]))]
        program = least(lambda: run(PROGRAM, "simulate", "1f1b", *words))
        here = least(lambda: bs.schedule("1f1b", **shape).simulate())
        print(f"1f1b pp={shape['pp']} m={shape['m']}: program {program[0]:.1f} ms ({program[1]:.1f}), here {here[0]:.1f} ms "
              f"({here[1]:.1f}), ratio {here[0] / program[0]:.2f} ({here[1] / program[1]:.2f})")
    try:
        import numpy
    except ImportError:
        print("numpy is not installed: no scenarios")
        return
    s = bs.schedule("1f1b", pp=16, m=64)
    times = 1 + numpy.random.default_rng(1).random((1000, 16))
    whole = least(lambda: s.simulate_many(f=times, b=2 * times), 5)
    one = least(lambda: s.simulate_many(f=times[:, 0], b=2 * times[:, 0]), 5)
    print(f"1,000 scenarios of 1f1b pp=16 m=64: {whole[0]:.1f} ms ({whole[1]:.1f}) with a cost per stage, {one[0]:.1f} ms "
          f"({one[1]:.1f}) with one for all")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Damages checkpoints and sees to it that none is taken for whole, and that foreign ones are refused.

  damage_checkpoints.py PROGRAM [--count 60] [--seed 1]

Every damaged file must be named with a reason, and the run must go on from the checkpoint before it, to the same end.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

MODEL = "--hidden-size 8 --seq-length 4 --vocab-size 13 --training-optimizer adam".split()
COMMAND = ["run", "pipedream-2bw", "--pp", "2", "-m", "6", "--work", "transformer", "--format", "json", "--warmup", "1", *MODEL]
STEPS = ["--steps", "5"]  # with the warm-up six: checkpoints after steps 2, 4 and 6, of which the last two stay


def run(program, *words):
    return subprocess.run([program, *COMMAND, *words], capture_output=True, text=True, timeout=60, check=False)


def training_of(done):
    return json.loads(done.stdout)["training"]


def expect(condition, what, done):
    assert condition, f"{what}\n  status {done.returncode}\n  {done.stderr.strip()}"


def regions(size):
    """Offsets of every kind of bytes of a part: counts, losses, headers, weights, moments, its end."""
    return sorted({at for at in (0, 7, 8, 15, 16, 40, 55, 56, 57, 64, 65, 72, size // 4, size // 2, 3 * size // 4, size - 9,
                                 size - 8, size - 1) if at < size})


def damages(dice, content):
    """(name, damaged content) without end: every region first, then random ones."""
    size = len(content)

    def flip(at, bit):
        return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1:]

    for length in (0, 1, 8, size // 2, size - 8, size - 1):
        yield f"cut to {length} bytes", content[:length]
    yield "with zeros in its second half", content[:size // 2] + bytes(size - size // 2)
    yield "with a byte more", content + b"\0"
    yield "missing", None
    for at in regions(size):
        yield f"with a flipped bit in byte {at}", flip(at, dice.randrange(8))
    while True:
        if dice.random() < 0.3:
            length = dice.randrange(size)
            yield f"cut to {length} bytes", content[:length]
        else:
            at, bit = dice.randrange(size), dice.randrange(8)
            yield f"with flipped bit {bit} in byte {at}", flip(at, bit)


def write(path, content):
    path.unlink(missing_ok=True)
    if content is not None:
        path.write_bytes(content)


def try_damage(program, saved, folder, name, what, content, expected):
    """The newest checkpoint before the run's end is damaged, so the run continues from the one before."""
    shutil.copytree(saved, folder)
    path = folder / name
    write(path, content)
    done = run(program, "--steps", "7", "--checkpoint", str(folder), "--every", "2", "--resume")
    is_cut = name.endswith(".json") and content is None  # without a manifest there is no checkpoint
    expect(done.returncode == 0, f"{name} {what}: the checkpoint before it is whole", done)
    expect(is_cut or str(path) in done.stderr, f"{name} {what}: the file is not named", done)
    expect("resumes after step 4, " in done.stderr, f"{name} {what}: taken for whole", done)
    expect(training_of(done) == expected, f"{name} {what}: the training differs", done)


def refuse_without_any(program, saved, folder):
    """If every checkpoint is damaged, the run does not begin again as if there had been none."""
    shutil.copytree(saved, folder)
    for path in folder.glob("*.part-0"):
        path.write_bytes(path.read_bytes()[:-1])
    done = run(program, "--steps", "7", "--checkpoint", str(folder), "--resume")
    expect(done.returncode == 2 and "is whole" in done.stderr, "damaged checkpoints must be refused", done)
    for path in folder.glob("*.part-0"):
        expect(str(path) in done.stderr, f"{path.name} is not named", done)
    for path in folder.glob("*.json"):
        path.write_bytes(path.read_bytes()[:-3])
    done = run(program, "--steps", "7", "--checkpoint", str(folder), "--resume")
    expect(done.returncode == 2 and "is whole" in done.stderr, "damaged manifests must be refused", done)


def refuse_others(program, saved, folder):
    """A checkpoint of another training is refused, with what differs; nothing in the folder changes."""
    shutil.copytree(saved, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for extra, named in ((["--seed", "2"], "--seed 1 there and 2 here"), (["--hidden-size", "16"], "--hidden-size 8 there and 16"),
                         (["--precision", "bf16"], "--precision fp32 there and bf16"), (["-m", "8"], "-m 6 there and 8 here"),
                         (["--training-optimizer", "sgd"], "--training-optimizer adam there and sgd"),
                         (["--layers-per-stage", "2"], "--layers-per-stage 1 there and 2"), (["--pp", "3"], "--pp 2 there and 3"),
                         (["--steps", "2"], "more --steps")):
        words = [word for word in COMMAND]
        for flag, value in zip(extra[::2], extra[1::2]):
            if flag in words:
                words[words.index(flag) + 1] = value
            else:
                words += [flag, value]
        steps = [] if "--steps" in extra else ["--steps", "7"]
        done = subprocess.run([program, *words, *steps, "--checkpoint", str(folder), "--resume"], capture_output=True, text=True,
                              timeout=60, check=False)
        expect(done.returncode == 2 and named in done.stderr, f"{extra}: must be refused with '{named}'", done)
    done = run(program, "--steps", "7", "--checkpoint", str(folder))
    expect(done.returncode == 2 and "add --resume" in done.stderr, "a used folder must be refused", done)
    expect(before == {path.name: path.read_bytes() for path in folder.iterdir()}, "the folder has changed", done)


def refuse_flags(program, folder):
    for words, named in ((["--resume"], "--checkpoint DIR"), (["--every", "3"], "--checkpoint DIR"),
                         (["--checkpoint", str(folder), "--work", "sleep"], "--work transformer"),
                         (["--checkpoint", str(folder / "a" / "b")], "cannot create the folder")):
        command = [word for word in COMMAND if not ("--work" in words and word in ("--work", "transformer"))]
        done = subprocess.run([program, *command, *words], capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode == 2 and named in done.stderr, f"{words}: must be refused with '{named}'", done)
    assert not folder.exists(), "a refused run has made a folder"


def report_costs(program, folder):
    """The report has the time and the bytes of every checkpoint; the bytes are those of the files."""
    done = run(program, *STEPS, "--checkpoint", str(folder), "--every", "2")
    expect(done.returncode == 0, "must run", done)
    report = json.loads(done.stdout)["checkpoints"]
    assert report["resumed_step"] is None and report["every"] == 2, report
    assert [saved["step"] for saved in report["saved"]] == [2, 4, 6], report
    assert all(saved["time_ns"] > 0 for saved in report["saved"]) and 0 < report["time_share"] < 1, report
    assert report["saved"][-1]["bytes"] == (folder / "step-6.part-0").stat().st_size, report
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=60, help="damages of each file")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    dice = random.Random(options.seed)
    tried = 0
    with tempfile.TemporaryDirectory() as base:
        folders = (pathlib.Path(base, f"saved{number}") for number in range(10**9))
        refuse_flags(program, next(folders))
        saved = next(folders)
        report_costs(program, saved)
        expected = training_of(run(program, "--steps", "7"))
        for name in ("step-6.part-0", "step-6.json"):
            made = damages(dice, (saved / name).read_bytes())
            for what, content in (next(made) for _ in range(options.count)):
                folder = next(folders)
                try_damage(program, saved, folder, name, what, content, expected)
                shutil.rmtree(folder)
                tried += 1
        for refuse in (refuse_without_any, refuse_others):
            refuse(program, saved, next(folders))
    print(f"{tried} damaged checkpoints, none taken for whole")


if __name__ == "__main__":
    sys.exit(main())

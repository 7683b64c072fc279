"""The bundle for machines with a GPU needs libc and a driver only, is small enough to be carried, and its scripts run in
it. And the check notices a library that such a machine may lack.

    gpu_bundle.py BUILD
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bundle(folder, build):
    return subprocess.run(["bash", "tools/gpu_bundle.sh", folder, build], cwd=ROOT, capture_output=True, text=True,
                          check=False)


def expect(holds, what):
    if not holds:
        sys.exit(f"gpu_bundle.py: {what}")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if not (build / "bubblescope_cuda.so").exists():
        print("skipped: this build has no CUDA module")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = bundle(folder / "bundle", build)
        expect(done.returncode == 0, done.stdout + done.stderr)
        size = sum(file.stat().st_size for file in (folder / "bundle").rglob("*") if file.is_file())
        expect(size <= 64 << 20, f"the bundle has {size} bytes")
        told = subprocess.run([folder / "bundle" / "bubblescope", "--version"], capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"]})
        expect(told.returncode == 0 and told.stdout, "the carried program does not start")
        usage = subprocess.run(["bash", "tools/gpu_run.sh", "nothing", folder / "out"], cwd=folder / "bundle",
                               capture_output=True, text=True, check=False)
        expect(usage.returncode == 2 and "usage: gpu_run.sh" in usage.stderr, usage.stderr)

        # A program that is linked to libstdc++ must not pass.
        foreign = folder / "foreign"
        (foreign / "tests").mkdir(parents=True)
        for file in ("bubblescope_cuda.so", "tests/gpu_tests"):
            shutil.copy(build / file, foreign / file)
        (folder / "main.cc").write_text("#include <iostream>\nint main() { std::cout << 1; }\n")
        subprocess.run(["c++", folder / "main.cc", "-o", foreign / "bubblescope"], check=True)
        done = bundle(folder / "other", foreign)
        expect(done.returncode == 1 and "bubblescope needs libstdc++.so.6" in done.stderr, done.stderr)
    print(f"the bundle has {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()

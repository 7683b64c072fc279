"""Fails on an #include that crosses a room's border, and on a type that is declared ahead of an include that would.

    check_layers.py ROOT         prints every forbidden include in the tree, exit 1 if there is any
    check_layers.py --self-test  plants includes and sees to it that exactly the bad ones are found
"""

import re

import checks
from check_types import NO_CODE, definitions

# The folders that each folder may include.
FOLDERS = {
    "sim": ["sim"],
    "schedules": ["sim", "schedules"],
    "traces": ["sim", "traces"],
    "exec": ["sim", "exec"],
    "tools": ["sim", "schedules", "traces", "exec", "tools"],
    "tests": ["sim", "schedules", "traces", "exec", "tools", "tests"],
}
SIM = {
    "ir": ["ir"],
    "model": ["ir", "model"],
    "engine": ["ir", "model", "engine"],
    "analysis": ["ir", "model", "engine", "analysis"],
    "predict": ["ir", "model", "engine", "analysis", "predict"],
}
EXEC = {
    "runtime": ["runtime"],
    "cpu": ["runtime", "cpu"],
    "mpi": ["runtime", "mpi"],
    "training": ["runtime", "training"],
    "gpu": ["runtime", "training", "gpu"],
    "nccl": ["runtime", "training", "gpu", "mpi", "nccl"],
    "calibration": ["runtime", "calibration"],
}
TRACES = {
    "files": ["files"],
    "text": ["text"],
    "json": ["files", "json"],
    "schedules": ["files", "json", "schedules"],
    "timelines": ["files", "json", "text", "schedules", "timelines"],
    "measured": ["files", "json", "text", "schedules", "timelines", "measured"],
    "costs": ["files", "json", "schedules", "costs"],
    "checkpoints": ["files", "json", "checkpoints"],
    "workloads": ["files", "workloads"],
    "drawings": ["files", "json", "text", "timelines", "drawings"],
    "reports": ["files", "json", "text", "measured", "drawings", "reports"],
    "plans": ["files", "json", "text", "drawings", "reports", "costs", "plans"],
}
TOOLS = {  # and every room may include what lies in tools itself
    "flags": ["flags"],
    "inputs": ["flags", "inputs"],
    "plan": ["flags", "inputs", "plan"],
    "commands": ["flags", "inputs", "plan", "commands"],
    "python": ["flags", "inputs", "plan", "commands", "python"],
}
ARROWS = {"sim": SIM, "exec": EXEC, "traces": TRACES, "tools": TOOLS}
# Headers that stay in their room: the included header, and the files that may include it.
ROOMS = [
    (r"nlohmann/", r"(traces/json|tests)/"),
    (r"CLI/", r"tools/flags/"),
    (r"(nanobind/|Python\.h$)", r"tools/python/binding/"),
    (r"graphviz/", r"traces/drawings/graphviz"),
    (r"zlib\.h$", r"(traces|tests)/"),
    (r"(gtest|gmock|benchmark)/", r"tests/"),
    (r"(cuda|cublas|cupti|cooperative_groups|nvtx|nvToolsExt)", r"(exec|tests)/.*\.cuh?$|exec/gpu/device/|tests/fake_cuda/"),
    (r"nccl\.h$", r"exec/nccl/.*\.cu$"),
    (r"mpi\.h$", r"exec/mpi/"),
]
# Takes seconds to compile, so headers declare what they mean of it by <nlohmann/json_fwd.hpp>.
SLOW = re.compile(r"(nlohmann/json\.hpp|CLI/)")
SLOW_HEADERS = re.compile(r"tests/")
# The simulator is pure: no file, no thread, no clock.
SIM_FORBIDDEN = re.compile(
    r"(thread|mutex|shared_mutex|condition_variable|future|atomic|semaphore|chrono|ctime|time\.h|fstream"
    r"|iostream|filesystem|cstdio|stdio\.h|unistd\.h|fcntl\.h|sys/.*)$"
)
# The command line is parsed before any file is opened.
FLAGS_FORBIDDEN = re.compile(r"(fstream|filesystem|traces/files/file\.h|traces/.*_file\.h)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
AHEAD = re.compile(r"^(?:struct|class|enum class) (\w+)(?: : [\w:]+)?;", re.MULTILINE)
# Types that are passed through a room that does not look into them: the file, and the type.
PASSED_THROUGH = {("traces/files/trace_format.h", "NameRules")}


def fault(path, quote, header):
    """Why the file at `path` may not include `header`, or None."""
    own, target = path.split("/"), header.split("/")
    if path.startswith("tools/flags/") and FLAGS_FORBIDDEN.match(header):
        return "tools/flags opens no files"
    if quote == '"' and target[0] not in FOLDERS:
        return "our includes start at the repository's root"
    if target[0] in FOLDERS:
        if target[0] not in FOLDERS[own[0]]:
            return f"{own[0]} may include only {', '.join(FOLDERS[own[0]])}"
        if own[0] == target[0] and own[0] in ARROWS and (own[0] != "tools" or min(len(own), len(target)) > 2):
            seen = ARROWS[own[0]].get(own[1], [])
            if target[1] not in seen:
                return f"{own[0]}/{own[1]} may include only {', '.join(seen)}"
        if own[:3] == ["exec", "gpu", "device"] and target[:3] == ["exec", "gpu", "host"]:
            return "exec/gpu/device may include of exec/gpu only device and what host and device share"
        return None
    for pattern, allowed in ROOMS:
        if re.match(pattern, header) and not re.match(allowed, path):
            return f"belongs to files that match {allowed}"
    if path.endswith(".h") and SLOW.match(header) and not SLOW_HEADERS.match(path):
        return "takes seconds to compile; include it in sources"
    if own[0] == "sim" and SIM_FORBIDDEN.match(header):
        return "sim has no files, threads or clocks"
    return None


def check(root):
    """(files read, faults as text) of the tree at `root`."""
    faults = []
    sources = checks.read_sources(root)
    homes = {}  # type -> the header that defines it
    for path, text in sources.items():
        if path.endswith(".h") and not path.startswith("tests/"):
            homes.update({name: path for _, name in definitions(text)})
    for path, text in sources.items():
        for name in AHEAD.findall(NO_CODE.sub(" ", text)):
            home = homes.get(name, path)
            # Tests may have types of the same names.
            reason = None if path.startswith("tests/") else fault(path, '"', home)
            if reason and (path, name) not in PASSED_THROUGH:
                faults.append(f"{path}: declares {name} of {home}; {reason}")
        if path.endswith(".h") and "#pragma once" not in text:
            faults.append(f"{path}: lacks #pragma once")
        for quote, header in INCLUDE.findall(text):
            reason = fault(path, quote, header)
            if reason:
                faults.append(f"{path}: includes {header}; {reason}")
    return len(sources), faults


BAD = """
traces/json/a.cc "traces/schedules/a.h" | traces/drawings/a.h "traces/reports/a.h" | tools/flags/a.cc "tools/commands/a.h"
traces/checkpoints/a.cc "traces/costs/a.h" | traces/costs/a.cc "traces/checkpoints/a.h"
traces/costs/a.cc "traces/timelines/a.h" | tools/plan/a.h "tools/commands/a.h" | tools/inputs/a.cc "tools/plan/a.h"
sim/ir/a.cc "sim/engine/a.h" | sim/model/a.cc "sim/engine/a.h" | sim/engine/a.h "sim/analysis/a.h"
sim/ir/a.h "schedules/a.h" | sim/analysis/a.cc "traces/a.h" | schedules/a.cc "traces/a.h" | schedules/a.h "tools/a.h"
traces/a.cc "schedules/a.h" | traces/a.cc "exec/a.h" | exec/a.cc "traces/a.h" | exec/a.cu "schedules/a.h"
tools/flags/a.cc <filesystem> | tools/flags/a.cc "traces/costs/model_file.h" | tools/flags/a.h "traces/files/file.h"
tools/a.cc "tests/a.h" | sim/ir/a.cc "op.h" | sim/engine/a.cc <thread> | sim/ir/a.cc <fstream> | sim/ir/a.cc <chrono>
sim/ir/a.h "sim/predict/a.h" | sim/analysis/a.cc "sim/predict/a.h" | sim/predict/a.cc "traces/a.h" | sim/predict/a.cc <fstream>
exec/runtime/a.cc "exec/training/a.h" | exec/training/a.cc "exec/gpu/host/a.h" | exec/mpi/a.cc "exec/nccl/a.h"
exec/cpu/a.cc "exec/mpi/a.h" | exec/gpu/host/a.h "exec/nccl/a.h" | exec/gpu/device/a.cu "exec/gpu/host/a.h" | exec/a.cc "exec/cpu/a.h"
sim/ir/a.cc <nlohmann/json.hpp> | schedules/a.cc <nlohmann/json.hpp> | traces/a.cc <CLI/CLI.hpp> | tools/a.cc <CLI/CLI.hpp>
exec/gpu/host/a.cc <cuda_runtime.h> | exec/nccl/launch.cc <nccl.h> | exec/nccl/launch.cc <mpi.h> | tools/a.cc <mpi.h>
tools/commands/a.cc "tools/python/binding/a.h" | tools/commands/a.cc <nanobind/nanobind.h> | sim/ir/a.cc <nanobind/stl/string.h>
traces/drawings/svg.cc <graphviz/gvc.h> | traces/json/a.h <nlohmann/json.hpp> | traces/costs/a.cc <nlohmann/json.hpp> | tools/a.cc <nlohmann/json.hpp> | tools/flags/a.h <CLI/CLI.hpp> | exec/a.cc <zlib.h> | sim/ir/a.cc <gtest/gtest.h>
"""
GOOD = """
tools/inputs/a.cc <filesystem> | tools/inputs/a.cc "traces/costs/model_file.h" | tools/flags/a.cc "traces/costs/a.h"
traces/reports/a.cc "traces/drawings/a.h" | tools/flags/a.cc "tools/print.h" | tools/commands/a.cc "tools/plan/a.h"
tools/python/binding/a.cc "tools/commands/a.h" | tools/python/binding/a.h <nanobind/nanobind.h>
tools/main.cc "tools/commands/a.h" | traces/measured/a.cc "traces/timelines/a.h"
sim/ir/a.cc "sim/ir/a.h" | sim/analysis/a.cc "sim/engine/a.h" | sim/engine/a.cc "sim/model/a.h" | sim/ir/a.cc <vector>
sim/predict/a.cc "sim/analysis/a.h" | sim/predict/a.h "sim/engine/a.h" | tools/inputs/a.cc "sim/predict/a.h"
schedules/search/a.cc "schedules/search/a.h" | traces/a.cc "sim/analysis/a.h" | tools/a.cc "exec/a.h"
tests/unit/a.cc "tools/a.h" | traces/json/a.cc <nlohmann/json.hpp> | traces/json/a.h <nlohmann/json_fwd.hpp> | tools/flags/a.cc <CLI/CLI.hpp> | exec/a.cc <thread>
exec/nccl/a.cc "exec/gpu/host/a.h" | exec/gpu/host/a.cc "exec/training/a.h" | exec/training/a.h "exec/runtime/a.h"
exec/gpu/device/a.cu "exec/gpu/calls.h" | exec/mpi/a.h "exec/runtime/a.h" | exec/nccl/a.cc "exec/mpi/a.h"
exec/gpu/device/a.h <cuda.h> | exec/nccl/a.cu <nccl.h> | exec/mpi/a.cc <mpi.h> | traces/drawings/graphviz_render.cc <graphviz/gvc.h>
"""


def self_test():
    checks.expect_faults(check, [{"sim/a.h": "struct A {};\n"}], 1)  # a header that counts twice
    defined = {"exec/gpu/host/a.h": "#pragma once\nnamespace bubblescope::exec {\nstruct A {};\n}\n"}
    ahead = "#pragma once\nnamespace bubblescope::exec {\nstruct A;\n}\n"
    checks.expect_faults(check, [{**defined, "exec/runtime/b.h": ahead}, {**defined, "sim/ir/b.cc": ahead}], 1)
    checks.expect_faults(check, [{**defined, "exec/nccl/b.h": ahead}, {**defined, "tests/b.h": ahead}], 0)
    for lines, expected in ((BAD, 1), (GOOD, 0)):
        planted = [line.split() for line in lines.replace("|", "\n").splitlines() if line.strip()]
        checks.expect_faults(check, [{path: f"#pragma once\n#include {header}\n"} for path, header in planted], expected)


if __name__ == "__main__":
    checks.run(check, self_test, "files keep to their rooms")

#!/usr/bin/env python3
"""PyTorch as a second judge: its own pipeline runtime trains what our executor trained.

  train_in_pytorch.py PROGRAM [--ranks 4] [--microbatches 8] [--schedules gpipe,1f1b,...]

Needs PyTorch 2.15 or later with gloo (tests/pytorch/run.sh installs it). For every schedule, the program trains two
steps (`run --save-training`) and exports the schedule in three forms: the order alone, which PyTorch lowers, the lists
with messages, and the same with FSDP's cells and deferred receives. PyTorch loads each of them, one process per rank,
starts from the same weights, reads the same data and must come to the same losses and weights as our executor, and to
the losses and gradients of a serial run of its own, which knows nothing of pipelines. Lists in which `check` finds
swapped messages are left out: PyTorch trains them with wrong gradients. Not part of the default tests: PyTorch is large.
"""
import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

SCHEDULES = ("gpipe,1f1b,eager-1f1b,interleaved,bfs,zb-h1,zb-h2,zb-1p,zb-2p,interleaved-zb,zb-v,v-half,v-min,1f1b-v,"
             "dualpipev,hanayo")
ONE_CHUNK = {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"}
# As PyTorch has them; all others by the widest rules.
PROFILED = {"interleaved", "bfs", "interleaved-zb", "zb-v", "dualpipev"}
# Form: how PyTorch loads the file, and what `convert` is asked for.
FORMS = {"order": ("compute_only", ["--to", "pytorch-csv"]),
         "lists": ("compute_comms", ["--to", "pytorch-csv-comms"]),
         "deferred": ("compute_comms", ["--to", "pytorch-csv-comms", "--fsdp", "--lowering", "deferred"])}
TOLERANCE = 1e-4  # of a matrix's largest entry: PyTorch adds and multiplies in other orders


def build_stage_class():
    """The same layers as exec/training/transformer.cc; torch is imported in the workers only."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Stage(nn.Module):
        def __init__(self, model, weights):
            super().__init__()
            self.model = model
            self.weights = nn.ParameterDict({
                entry["name"].replace(".", "_"):
                    nn.Parameter(torch.tensor(entry["before"]).reshape(entry["rows"], entry["columns"]))
                for entry in weights})

        def norm(self, values, gain):
            scale = torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-5)
            return values * scale * self.weights[gain][0]

        def attend(self, qkv):
            batch, length, width = qkv.shape[0], qkv.shape[1], self.model["width"]
            heads = self.model["heads"]
            query, key, value = (part.reshape(batch, length, heads, width // heads).transpose(1, 2)
                                 for part in qkv.split(width, dim=-1))
            logits = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
            mask = torch.ones(length, length, dtype=torch.bool).tril()
            mixed = logits.masked_fill(~mask, float("-inf")).softmax(-1) @ value
            return mixed.transpose(1, 2).reshape(batch, length, width)

        def block(self, values, prefix):
            attended = self.attend(self.norm(values, prefix + "attention_gain") @ self.weights[prefix + "qkv"])
            values = values + attended @ self.weights[prefix + "out"]
            inner = self.norm(values, prefix + "mlp_gain") @ self.weights[prefix + "up"]
            return values + functional.gelu(inner, approximate="tanh") @ self.weights[prefix + "down"]

        def forward(self, values):
            if "embedding" in self.weights:
                values = self.weights["embedding"][values] + self.weights["position"]
            for number in range(self.model["blocks_per_stage"]):
                values = self.block(values, f"block{number}_")
            if "head" in self.weights:
                values = self.norm(values, "head_gain") @ self.weights["head"]
            return values

    return Stage


def read_placement(order):
    """{stage: rank} of an order as PyTorch writes it."""
    import re
    placement = {}
    for rank, row in enumerate(pathlib.Path(order).read_text().splitlines()):
        for stage in re.findall(r"(?:^|[,(;\"])\s*(\d+)[FIBW]\d", row):
            placement[int(stage)] = rank
    return placement


def loss_of(logits, targets):
    from torch.nn import functional
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def make_runtime(training, order, load_as, rank, microbatches):
    """(PyTorch's runtime with our file loaded, this rank's stages by number)"""
    import torch
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    stage_class = build_stage_class()
    placement = read_placement(order)
    modules = {stage: stage_class(training["model"], training["stages"][stage]["weights"])
               for stage in sorted(placement) if placement[stage] == rank}
    stages = [PipelineStage(module, stage, len(placement), torch.device("cpu")) for stage, module in modules.items()]
    for stage in stages:
        stage.stage_index_to_group_rank = placement

    runtime = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss_of, scale_grads=True)
    runtime.stage_index_to_group_rank = placement
    runtime._load_csv(order, format=load_as)
    return runtime, modules


def lists_of(modules, of_weight):
    return {stage: {name: of_weight(weight).detach().tolist() for name, weight in module.weights.items()}
            for stage, module in modules.items()}


def optimize(training, modules, run_step):
    """Trains `modules`, {stage: module}: run_step(inputs, targets) gives a step's mean loss, or None."""
    import torch
    optimizer = torch.optim.SGD([weight for module in modules.values() for weight in module.parameters()],
                                lr=training["optimizer"]["learning_rate"])
    shape = (-1, training["model"]["sequence"])
    losses, gradients = [], []
    for step in training["data"]:
        inputs = torch.tensor([each["inputs"] for each in step]).reshape(shape)
        targets = torch.tensor([each["targets"] for each in step]).reshape(shape)
        optimizer.zero_grad()
        losses.append(run_step(inputs, targets))
        gradients.append(lists_of(modules, lambda weight: weight.grad))
        optimizer.step()
    return {"losses": losses, "gradients": gradients, "weights": lists_of(modules, lambda weight: weight)}


def train(rank, training, order, load_as):
    """One rank's losses, where it has them, gradients and weights."""
    import torch
    runtime, modules = make_runtime(training, order, load_as, rank, training["microbatches"])
    last = max(read_placement(order)) in modules

    def run_step(inputs, targets):
        told = []
        runtime.step(*([inputs] if 0 in modules else []), **({"target": targets, "losses": told} if last else {}))
        return torch.stack(told).detach().mean().item() if last else None

    return optimize(training, modules, run_step)


def train_serially(training):
    """All stages one after the other, micro-batch by micro-batch, by autograd alone."""
    import torch
    stage_class = build_stage_class()
    modules = {number: stage_class(training["model"], stage["weights"]) for number, stage in enumerate(training["stages"])}

    def run_step(inputs, targets):
        count = training["microbatches"]
        total = 0.0
        for some_inputs, some_targets in zip(inputs.chunk(count), targets.chunk(count), strict=True):
            values = some_inputs
            for module in modules.values():
                values = module(values)
            loss = loss_of(values, some_targets) / count
            loss.backward()
            total += loss.item()
        return total

    torch.set_num_threads(1)
    return optimize(training, modules, run_step)


def work(rank, ranks, folder, *schedules):
    """One rank of all schedules in all forms, in a process of its own."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for schedule in schedules:
        training = json.loads(pathlib.Path(folder, f"{schedule}.json").read_text())
        for form, (load_as, _) in FORMS.items():
            if pathlib.Path(folder, f"{schedule}-{form}.swapped").exists():
                continue
            result = train(rank, training, os.path.join(folder, f"{schedule}-{form}.csv"), load_as)
            pathlib.Path(folder, f"{schedule}-{form}.{rank}").write_text(json.dumps(result))
    dist.destroy_process_group()


def flatten(rows):
    return [value for row in rows for value in row]


def difference(trained, expected):
    """The largest difference relative to the largest entry."""
    flat = flatten(trained)
    return max(abs(a - b) for a, b in zip(flat, expected, strict=True)) / max(map(abs, expected))


def judge(training, results):
    """The largest difference of losses and weights, and of what."""
    worst = (0.0, "")
    for step, expected in enumerate(training["losses"]):
        losses = [result["losses"][step] for result in results if result["losses"][step] is not None]
        worst = max(worst, (abs(losses[0] - expected) / expected, f"loss of step {step}"))
    for result in results:
        for stage, weights in result["weights"].items():
            for entry in training["stages"][int(stage)]["weights"]:
                apart = difference(weights[entry["name"].replace(".", "_")], entry["after"])
                worst = max(worst, (apart, f"{entry['name']} of stage {stage}"))
    return worst


def judge_by_serial(serial, results):
    """The same against the serial run: losses and gradients of every step."""
    worst = (0.0, "")
    for step, expected in enumerate(serial["losses"]):
        losses = [result["losses"][step] for result in results if result["losses"][step] is not None]
        worst = max(worst, (abs(losses[0] - expected) / expected, f"serial loss of step {step}"))
        for result in results:
            for stage, gradients in result["gradients"][step].items():
                for name, gradient in gradients.items():
                    apart = difference(gradient, flatten(serial["gradients"][step][int(stage)][name]))
                    worst = max(worst, (apart, f"gradient of {name} of stage {stage} in step {step}"))
    return worst


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def prepare(options, schedule, folder):
    """Trains in our executor, and writes the files that PyTorch is to follow."""
    chunks = [] if schedule in ONE_CHUNK else ["--vpp", str(options.chunks)]
    profile = ["--profile", "pytorch-2.15"] if schedule in PROFILED else []
    shape = [schedule, "--pp", str(options.ranks), *chunks, "-m", str(options.microbatches), *profile]
    run = [options.program, "run", *shape, "--backend", "cpu", "--work", "transformer", "--warmup", "0", "--steps", "2",
           "--save-training", os.path.join(folder, f"{schedule}.json"), "--format", "csv"]
    done = subprocess.run(run, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(run)}: {done.stderr.strip()}")
    for form, (_, asked) in FORMS.items():
        output = os.path.join(folder, f"{schedule}-{form}.csv")
        subprocess.run([options.program, "convert", *shape, *asked, "-o", output], check=True,
                       stderr=subprocess.DEVNULL)
    if swaps_messages(options, schedule, folder):
        pathlib.Path(folder, f"{schedule}-deferred.swapped").touch()


def swaps_messages(options, schedule, folder):
    """Whether PyTorch, which takes messages in their order, would take the wrong ones."""
    order = os.path.join(folder, f"{schedule}-deferred.csv")
    checked = subprocess.run([options.program, "check", order, "--format", "json"], check=True, capture_output=True)
    return bool(json.loads(checked.stdout)["swapped_messages"])


def launch(options, schedules, folder):
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    workers = [subprocess.Popen([sys.executable, __file__, "--worker", str(rank), str(options.ranks), folder, *schedules],
                                env=environment) for rank in range(options.ranks)]
    for worker in workers:
        worker.wait()


def compare(options, schedule, folder):
    """True where all came to the same."""
    training = json.loads(pathlib.Path(folder, f"{schedule}.json").read_text())
    serial = train_serially(training)
    agree = True
    for form in FORMS:
        if pathlib.Path(folder, f"{schedule}-{form}.swapped").exists():
            print(f"{schedule}, {form}: messages are swapped, not trained", flush=True)
            continue
        files = [pathlib.Path(folder, f"{schedule}-{form}.{rank}") for rank in range(options.ranks)]
        if not all(file.exists() for file in files):
            print(f"{schedule}, {form}: PyTorch failed", flush=True)
            agree = False
            continue
        results = [json.loads(file.read_text()) for file in files]
        apart, where = max(judge(training, results), judge_by_serial(serial, results))
        print(f"{schedule}, {form}: losses {training['losses']}; largest relative difference {apart:.1e} ({where})",
              flush=True)
        agree = agree and apart <= TOLERANCE
    return agree


def main():
    if sys.argv[1:2] == ["--worker"]:
        rank, ranks, *files = sys.argv[2:]
        return work(int(rank), int(ranks), *files)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--chunks", type=int, default=2)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--schedules", default=SCHEDULES)
    options = parser.parse_args()
    schedules = options.schedules.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for schedule in schedules:
            prepare(options, schedule, folder)
        launch(options, schedules, folder)
        wrong = [schedule for schedule in schedules if not compare(options, schedule, folder)]
    print("PyTorch agrees on every schedule" if not wrong else f"PyTorch disagrees on {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""PyTorch as a second judge: its own pipeline runtime trains what our executor trained.

  train_in_pytorch.py PROGRAM [--ranks 2] [--microbatches 8] [--schedules gpipe,1f1b,...]

Needs PyTorch 2.6 or later with gloo (`python3 -m venv venv; venv/bin/pip install torch numpy`, then run this with
venv/bin/python). For every schedule, the program trains two steps (`run --save-training`) and exports the order
(`convert --to pytorch-csv`). PyTorch loads the order, one process per rank, starts from the same weights, reads the
same data and must come to the same losses and weights. Not part of the default tests: PyTorch is large.
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


def make_runtime(training, order, rank, microbatches):
    """(PyTorch's runtime with our order loaded, this rank's stages by number)"""
    import torch
    from torch.distributed.pipelining import PipelineStage
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
    from torch.nn import functional
    stage_class = build_stage_class()
    placement = read_placement(order)
    modules = {stage: stage_class(training["model"], training["stages"][stage]["weights"])
               for stage in sorted(placement) if placement[stage] == rank}
    stages = [PipelineStage(module, stage, len(placement), torch.device("cpu")) for stage, module in modules.items()]
    for stage in stages:
        stage.stage_index_to_group_rank = placement

    def loss_of(logits, targets):
        return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))

    runtime = _PipelineScheduleRuntime(stages, microbatches, loss_fn=loss_of, scale_grads=True)
    runtime.stage_index_to_group_rank = placement
    runtime._load_csv(order, format="compute_only")
    return runtime, modules


def train(rank, training, order):
    """One rank's losses, where it has them, and weights."""
    import torch
    runtime, modules = make_runtime(training, order, rank, training["microbatches"])
    optimizer = torch.optim.SGD([weight for module in modules.values() for weight in module.parameters()],
                                lr=training["optimizer"]["learning_rate"])
    shape = (-1, training["model"]["sequence"])
    losses = []
    for step in training["data"]:
        inputs = torch.tensor([each["inputs"] for each in step]).reshape(shape)
        targets = torch.tensor([each["targets"] for each in step]).reshape(shape)
        told = []
        optimizer.zero_grad()
        arguments = [inputs] if 0 in modules else []
        last = max(read_placement(order)) in modules
        runtime.step(*arguments, **({"target": targets, "losses": told} if last else {}))
        optimizer.step()
        losses.append(torch.stack(told).detach().mean().item() if last else None)
    weights = {stage: {name: weight.detach().tolist() for name, weight in module.weights.items()}
               for stage, module in modules.items()}
    return {"losses": losses, "weights": weights}


def work(rank, ranks, folder, *schedules):
    """One rank of all schedules, in a process of its own."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    for schedule in schedules:
        training = json.loads(pathlib.Path(folder, f"{schedule}.json").read_text())
        result = train(rank, training, os.path.join(folder, f"{schedule}.csv"))
        pathlib.Path(folder, f"{schedule}.{rank}").write_text(json.dumps(result))
    dist.destroy_process_group()


def difference(trained, expected):
    """The largest difference relative to the largest entry."""
    flat = [value for row in trained for value in row]
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


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def prepare(options, schedule, folder):
    """What our executor trains, and the order that PyTorch is to follow."""
    chunks = [] if schedule in ONE_CHUNK else ["--vpp", str(options.chunks)]
    shape = [schedule, "--pp", str(options.ranks), *chunks, "-m", str(options.microbatches)]
    run = [options.program, "run", *shape, "--backend", "cpu", "--work", "transformer", "--warmup", "0", "--steps", "2",
           "--save-training", os.path.join(folder, f"{schedule}.json"), "--format", "csv"]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    order = os.path.join(folder, f"{schedule}.csv")
    subprocess.run([options.program, "convert", *shape, "--to", "pytorch-csv", "-o", order], check=True,
                   stderr=subprocess.DEVNULL)


def launch(options, schedules, folder):
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    workers = [subprocess.Popen([sys.executable, __file__, "--worker", str(rank), str(options.ranks), folder, *schedules],
                                env=environment) for rank in range(options.ranks)]
    for worker in workers:
        worker.wait()


def compare(options, schedule, folder):
    """True where both came to the same."""
    results = [pathlib.Path(folder, f"{schedule}.{rank}") for rank in range(options.ranks)]
    if not all(result.exists() for result in results):
        print(f"{schedule}: PyTorch failed")
        return False
    training = json.loads(pathlib.Path(folder, f"{schedule}.json").read_text())
    apart, where = judge(training, [json.loads(result.read_text()) for result in results])
    print(f"{schedule}: losses {training['losses']}; largest relative difference {apart:.1e} ({where})", flush=True)
    return apart <= TOLERANCE


def main():
    if sys.argv[1:2] == ["--worker"]:
        rank, ranks, *files = sys.argv[2:]
        return work(int(rank), int(ranks), *files)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=2)
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

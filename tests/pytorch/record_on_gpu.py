#!/usr/bin/env python3
"""Records pipeline steps of PyTorch on one GPU, and compares what `analyze` says with what the device's events say.

  record_on_gpu.py record FOLDER [--ranks 4] [--microbatches 8] [--cases 1f1b,zb-v,...] [--width 2048] [--device cuda]
  record_on_gpu.py judge PROGRAM FOLDER

`record` runs one process per rank. All of them share the first GPU: NCCL takes processes with different NCCL_HOSTID for
different hosts, and so lets them have one device. FOLDER/CASE gets a profile per rank as PyTorch writes it, compressed,
and the times of its ops as events of the device say; the profile knows nothing of these events. `judge` needs neither a GPU nor
PyTorch. `--device cpu` rehearses both over gloo, without a GPU. Exit status: 0 recorded, or agreed; 1 not.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import traceback

STEPS, WARMUP = 2, 2
HOOKS = [pathlib.Path(__file__).resolve().parents[2] / "tools" / "hooks", pathlib.Path(__file__).resolve().parent]
# Name: the class in torch.distributed.pipelining, stages per rank, whether hooks name the ops, wrapper of stages.
CASES = {"1f1b": ("Schedule1F1B", 1, False, None),
         "gpipe": ("ScheduleGPipe", 1, False, None),
         "1f1b-hooks": ("Schedule1F1B", 1, True, None),
         "interleaved": ("ScheduleInterleaved1F1B", 2, False, None),
         "interleaved-zb": ("ScheduleInterleavedZeroBubble", 2, False, None),
         "zb-v": ("ScheduleZBVZeroBubble", 2, False, None),
         "dualpipev": ("ScheduleDualPipeV", 2, False, None),
         "zb-v-hooks": ("ScheduleZBVZeroBubble", 2, True, None),
         "1f1b-ddp": ("Schedule1F1B", 1, False, "ddp"),
         "1f1b-fsdp": ("Schedule1F1B", 1, False, "fsdp")}
V_SHAPED = {"zb-v", "zb-v-hooks", "dualpipev"}
KINDS = {"forward_one_chunk": "F", "backward_one_chunk": "B", "backward_weight_one_chunk": "W"}


class HostEvent:
    """Stands for an event of a device where there is none."""

    def __init__(self, **_):
        self.nanoseconds = 0

    def record(self):
        self.nanoseconds = time.time_ns()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.nanoseconds - self.nanoseconds) / 1e6


def note_events(notes, event):
    """Notes events of the device before and after every op, inside of what the hooks name."""
    from torch.distributed.pipelining import stage
    base = stage._PipelineStageBase
    for function, kind in KINDS.items():
        def noted(self, number, *args, _run=getattr(base, function), _kind=kind, **kwargs):
            begin, end = event(enable_timing=True), event(enable_timing=True)
            begin.record()
            result = _run(self, number, *args, **kwargs)
            end.record()
            whole = kwargs.get("full_backward", True)
            notes.append((f"{self.stage_index}{_kind if _kind != 'B' or whole else 'I'}{number}", begin, end))
            return result
        noted.__wrapped__ = getattr(base, function)
        setattr(base, function, noted)


def build_stage(width, blocks, device):
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(width)
            self.up = torch.nn.Linear(width, 4 * width)
            self.down = torch.nn.Linear(4 * width, width)

        def forward(self, values):
            return values + self.down(torch.nn.functional.gelu(self.up(self.norm(values))))

    return torch.nn.Sequential(*[Block() for _ in range(blocks)]).to(device=device, dtype=torch.bfloat16)


def stages_of_rank(name, rank, ranks, chunks):
    if name in V_SHAPED:
        return [rank, 2 * ranks - 1 - rank]
    return [rank + chunk * ranks for chunk in range(chunks)]


class Recorder:
    """A process of the job: runs every case, and writes its profile and notes."""

    def __init__(self, rank, options):
        import torch
        import torch.distributed as dist
        self.rank, self.options, self.notes = rank, options, []
        self.on_gpu = options.device == "cuda"
        self.event = torch.cuda.Event if self.on_gpu else HostEvent
        if self.on_gpu:
            torch.cuda.set_device(0)
        else:
            torch.set_num_threads(1)
        dist.init_process_group("nccl" if self.on_gpu else "gloo", rank=rank, world_size=options.ranks)
        note_events(self.notes, self.event)
        self.pipelines = {}

    def mesh(self, wrapper):
        from torch.distributed.device_mesh import init_device_mesh
        replicas = 2 if wrapper else 1
        if replicas not in self.pipelines:
            self.pipelines[replicas] = init_device_mesh(self.options.device, (replicas, self.options.ranks // replicas),
                                                        mesh_dim_names=("dp", "pp"))
        return self.pipelines[replicas]

    def schedule(self, name):
        import torch
        from torch.distributed import pipelining
        class_name, chunks, _, wrapper = CASES[name]
        mesh = self.mesh(wrapper)
        group, rank = mesh.get_group("pp"), mesh.get_local_rank("pp")
        ranks = self.options.ranks // (2 if wrapper else 1)
        torch.manual_seed(7)
        stages = []
        for number in stages_of_rank(name, rank, ranks, chunks):
            module = build_stage(self.options.width, 2 // chunks, self.options.device)
            if wrapper == "ddp":
                module = torch.nn.parallel.DistributedDataParallel(module, process_group=mesh.get_group("dp"))
            if wrapper == "fsdp":
                from torch.distributed.fsdp import fully_shard
                for block in module:
                    fully_shard(block, mesh=mesh["dp"])
                fully_shard(module, mesh=mesh["dp"])
            stages.append(pipelining.PipelineStage(module, number, ranks * chunks, torch.device(self.options.device),
                                                    group=group))
        steps = getattr(pipelining, class_name)(stages if chunks > 1 else stages[0], self.options.microbatches,
                                                loss_fn=torch.nn.MSELoss())
        return steps, stages, rank, ranks

    def synchronize(self):
        import torch
        if self.on_gpu:
            torch.cuda.synchronize()

    def record(self, name):
        import torch
        import torch.distributed as dist
        from torch.profiler import ProfilerActivity, profile, schedule as plan
        steps, stages, rank, ranks = self.schedule(name)
        batch = torch.randn(self.options.rows * self.options.microbatches, self.options.width, device=self.options.device,
                            dtype=torch.bfloat16)
        optimizers = [torch.optim.SGD(stage.submod.parameters(), lr=1e-4) for stage in stages]
        last = any(stage.is_last for stage in stages)
        folder = pathlib.Path(self.options.folder, name)
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f"rank{self.rank}.json"
        with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.on_gpu,
                     schedule=plan(wait=0, warmup=WARMUP, active=STEPS),
                     on_trace_ready=lambda made: made.export_chrome_trace(str(written))) as profiler:
            for number in range(WARMUP + STEPS):
                dist.barrier()
                self.synchronize()
                if number == WARMUP:
                    self.notes.clear()
                    base = self.event(enable_timing=True)
                    base.record()
                    base.synchronize()
                    base_ns = time.time_ns()
                steps.step(*([batch] if rank == 0 else []), **({"target": batch} if last else {}))
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
                profiler.step()
        self.synchronize()
        ops = [[op, base_ns + 1e6 * base.elapsed_time(begin), base_ns + 1e6 * base.elapsed_time(end)]
               for op, begin, end in self.notes]
        (folder / f"notes{self.rank}.json").write_text(json.dumps(ops), encoding="utf-8")
        with open(written, "rb") as plain, gzip.open(f"{written}.gz", "wb", 6) as packed:
            shutil.copyfileobj(plain, packed)
        written.unlink()
        if self.rank == 0:
            print(f"{name}: recorded", flush=True)


def work(rank, options):
    import torch.distributed as dist
    recorder = Recorder(rank, options)
    for hooked in (False, True):  # hooks cannot be taken off again
        names = [name for name in options.cases.split(",") if CASES[name][2] == hooked]
        if hooked and names:
            sys.path[:0] = map(str, HOOKS)
            import bubblescope_hooks
            bubblescope_hooks.annotate_pytorch()
        for name in names:
            try:
                recorder.record(name)
            except Exception:  # the other cases may still be recorded
                traceback.print_exc()
                print(f"rank {rank}: {name} was not recorded", file=sys.stderr, flush=True)
                shutil.rmtree(pathlib.Path(options.folder, name), ignore_errors=True)
    dist.destroy_process_group()


def record(options):
    """Records cases with and without replicas by processes of their own, as one job has only one of these layouts."""
    names = options.cases.split(",")
    for of_layout in ([name for name in names if not CASES[name][3]], [name for name in names if CASES[name][3]]):
        if of_layout:
            run_processes(options, ",".join(of_layout))
    recorded = [name for name in names
                if len(list(pathlib.Path(options.folder, name).glob("rank*.json.gz"))) == options.ranks]
    print(f"recorded: {', '.join(recorded) or 'nothing'}")
    return len(recorded) == len(names)


def run_processes(options, cases):
    """Runs a process per rank until all have ended or the time is up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(options.ranks):
        environment = dict(os.environ, RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           NCCL_HOSTID=f"rank{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1",
                           KINETO_LOG_LEVEL="99", TORCH_NCCL_ASYNC_ERROR_HANDLING="1")
        processes.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--cases", cases, "--rank", str(rank)],
                                          env=environment))
    deadline = time.monotonic() + options.seconds
    for process in processes:
        try:
            process.wait(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def expected(folder, ranks):
    """The mean makespan and bubble of the noted steps, of the ops as they are in the notes."""
    notes = [json.loads((folder / f"notes{rank}.json").read_text(encoding="utf-8")) for rank in range(ranks)]
    makespans, busy = [], []
    for step in range(STEPS):
        of_step = [ops[step * len(ops) // STEPS:(step + 1) * len(ops) // STEPS] for ops in notes]
        makespans.append(max(end for ops in of_step for _, _, end in ops) -
                         min(begin for ops in of_step for _, begin, _ in ops))
        busy.append(sum(end - begin for ops in of_step for _, begin, end in ops))
    makespan = sum(makespans) / STEPS
    return makespan, 1 - sum(busy) / STEPS / ranks / makespan


def judge(program, folder):
    """Prints a line per case; returns whether each is as the events say."""
    agreed = True
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        traces = sorted(map(str, case.glob("rank*.json.gz")))
        outcome = subprocess.run([program, "analyze", *traces, "--format", "json"], capture_output=True, text=True,
                                 check=False)
        if outcome.returncode:
            print(f"{case.name}: {outcome.stderr.strip()}")
            agreed = False
            continue
        report = json.loads(outcome.stdout)
        makespan, bubble = expected(case, len(traces))
        found = report["bubble"]["ratio"] if report["bubble"] else None
        error = report["makespan_ns"] / makespan - 1
        print(f"{case.name}: {report['schedule']}, makespan {makespan / 1e6:.1f} ms {100 * error:+.2f} %, "
              f"bubble {found} for {bubble:.4f}, trust {report['trust']['verdict']}")
        named = case.name.split("-hooks")[0].split("-ddp")[0].split("-fsdp")[0]
        agreed &= report["schedule"] == named and abs(error) < 0.01 and found is not None and abs(found - bubble) < 0.01
    return agreed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=("record", "judge"))
    parser.add_argument("places", nargs="+")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=1024, help="of a micro-batch")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seconds", type=float, default=60, help="for the cases of one layout")
    parser.add_argument("--rank", type=int)
    options = parser.parse_args()
    if options.verb == "judge":
        program, folder = options.places
        return 0 if judge(program, pathlib.Path(folder)) else 1
    options.folder = options.places[0]
    if options.rank is not None:
        work(options.rank, options)
        return 0
    return 0 if record(options) else 1


if __name__ == "__main__":
    sys.exit(main())

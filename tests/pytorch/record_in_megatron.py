#!/usr/bin/env python3
"""Records pipeline steps of Megatron-Core and compares what `analyze` says with what ran.

  record_in_megatron.py PROGRAM

Two processes over gloo run Megatron-Core's own schedules without a GPU: what it allocates there is allocated on the
host. Models sleep, and each process notes when its ops began and ended; the profile knows nothing of these notes. 1F1B is recorded as it is and with
tools/hooks/bubblescope_hooks.py, interleaved 1F1B with the hooks, because its profile does not say which of its stages
a rank runs. Exit status: 0 agreed, 1 did not.
"""
import argparse
import json
import os
import pathlib
import sys
import time

from record_in_pytorch import BACKWARD, FORWARD, HOOKS, MICROBATCHES, RANKS, STEPS, check

WIDTH = 8


def stay_on_host(torch):
    """Megatron-Core names the GPU wherever it allocates."""
    host = torch.device("cpu")
    zeros = torch.zeros

    def zeros_on_host(*args, **kwargs):
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = host
        return zeros(*args, **kwargs)

    torch.zeros = zeros_on_host
    torch.Tensor.cuda = lambda tensor, *args, **kwargs: tensor
    torch.cuda.current_device = lambda: host
    torch.cuda.synchronize = lambda *args: None


def note_times(schedules, notes):
    """Notes when ops begin and end, inside of what the hooks name."""
    for name in ("forward_step", "backward_step"):
        def noted(*args, _run=getattr(schedules, name), _name=name, **kwargs):
            begin = time.time_ns()
            result = _run(*args, **kwargs)
            notes.append([_name, begin, time.time_ns()])
            return result
        noted.__wrapped__ = getattr(schedules, name)
        setattr(schedules, name, noted)


def build_model(torch, config, chunks):
    """A stage whose forward and backward sleep; each chunk takes its part of the rank's time."""
    from megatron.core.enums import ModelType

    class Sleep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, weights):
            ctx.save_for_backward(values, weights)
            time.sleep(FORWARD / chunks)
            return values @ weights

        @staticmethod
        def backward(ctx, gradient):
            values, weights = ctx.saved_tensors
            time.sleep(BACKWARD / chunks)
            return gradient @ weights.t(), values.flatten(0, -2).t() @ gradient.flatten(0, -2)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.Parameter(torch.eye(WIDTH))
            self.received = None
            self.config = config
            self.model_type = ModelType.encoder_or_decoder

        def set_input_tensor(self, tensor):
            self.received = tensor[0] if isinstance(tensor, list) else tensor

        def forward(self, values):
            return Sleep.apply(values if self.received is None else self.received, self.weights)

    return Model()


def work(rank, port, folder, chunks, hooked):
    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, schedule as plan

    stay_on_host(torch)
    os.environ.update(KINETO_LOG_LEVEL="99", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                      WORLD_SIZE=str(RANKS))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules
    from megatron.core.transformer import TransformerConfig

    virtual = {"virtual_pipeline_model_parallel_size": chunks} if chunks > 1 else {}
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=RANKS, **virtual)
    notes = []
    note_times(schedules, notes)
    if hooked:
        sys.path.insert(0, str(HOOKS))
        import bubblescope_hooks
        bubblescope_hooks.annotate_megatron()
    config = TransformerConfig(num_layers=RANKS * chunks, hidden_size=WIDTH, num_attention_heads=1,
                               pipeline_model_parallel_size=RANKS, pipeline_dtype=torch.float32,
                               use_cpu_initialization=True, **virtual)
    models = [build_model(torch, config, chunks) for _ in range(chunks)]
    run_step = schedules.get_forward_backward_func()
    values = torch.ones(4, 1, WIDTH)

    def forward_step(_, model):
        return model(values), lambda output: (output.sum(), {"loss": output.detach().sum()})

    with profile(activities=[ProfilerActivity.CPU], schedule=plan(wait=0, warmup=1, active=STEPS),
                 on_trace_ready=lambda made: made.export_chrome_trace(f"{folder}/rank{rank}.json")) as profiler:
        for number in range(STEPS + 1):
            dist.barrier()
            if number == 1:
                notes.clear()
            run_step(forward_step_func=forward_step, data_iterator=[None] * chunks, model=models,
                     num_microbatches=MICROBATCHES, seq_length=4, micro_batch_size=1, forward_only=False)
            profiler.step()
    pathlib.Path(f"{folder}/notes{rank}.txt").write_text(json.dumps(notes), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


def main():
    if "--work" in sys.argv:
        at = sys.argv.index("--work")
        rank, port, folder, chunks, hooked = sys.argv[at + 1:at + 6]
        work(int(rank), int(port), folder, int(chunks), hooked == "1")
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    options = parser.parse_args()
    failed = False
    for chunks, hooked, name in ((1, False, "1f1b"), (1, True, "1f1b"), (2, True, "interleaved")):
        label = f"Megatron-Core, {chunks} stage(s) per rank, {'hooks' if hooked else 'as it is'}"
        arguments = [str(chunks), str(int(hooked))]
        failed |= not check(options.program, label, __file__, arguments, name, 2 * MICROBATCHES * chunks)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

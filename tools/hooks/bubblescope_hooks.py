"""Names every forward and backward of a pipeline in its profile, for `bubblescope analyze`.

Copy this file beside a training script; it needs nothing but PyTorch.

    import bubblescope_hooks

    bubblescope_hooks.annotate_pytorch()   # torch.distributed.pipelining, once, before the first step
    bubblescope_hooks.annotate_megatron()  # Megatron-LM, once, before training

    with bubblescope_hooks.op("F", stage=2, microbatch=5):  # any other runtime, around each op
        ...

The names are those of PyTorch's own pipelining: PP:2F5 is the forward of micro-batch 5 through stage 2; F, B (whole
backward), I (input gradient), W (weight gradient). They appear in profiles of torch.profiler and, as NVTX ranges, in
those of Nsight Systems. Record whole steps on all ranks, with torch.profiler's `step()` after each.
"""
import collections
import contextlib
import functools
import inspect

import torch

KINDS = ("F", "B", "I", "W")


@contextlib.contextmanager
def op(kind, stage, microbatch):
    """Names what is launched in this block."""
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    name = f"PP:{int(stage)}{kind}{int(microbatch)}"
    has_nvtx = torch.cuda.is_available()
    if has_nvtx:
        torch.cuda.nvtx.range_push(name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if has_nvtx:
            torch.cuda.nvtx.range_pop()


def _wrap(owner, name, names_op):
    """Replaces a function by one that names its calls; `names_op` gives kind, stage and micro-batch of a call."""
    function = getattr(owner, name)
    if hasattr(function, "bubblescope_wraps"):
        return
    signature = inspect.signature(function)

    @functools.wraps(function)
    def named(*args, **kwargs):
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        with op(*names_op(call.arguments)):
            return function(*args, **kwargs)

    named.bubblescope_wraps = function
    setattr(owner, name, named)


def annotate_pytorch():
    """Names the ops of every schedule of torch.distributed.pipelining, also of those that name none (Schedule1F1B)."""
    from torch.distributed.pipelining import stage

    base = stage._PipelineStageBase  # pylint: disable=protected-access
    _wrap(base, "forward_one_chunk", lambda call: ("F", call["self"].stage_index, call["fwd_chunk_id"]))
    _wrap(base, "backward_one_chunk",
          lambda call: ("B" if call["full_backward"] else "I", call["self"].stage_index, call["bwd_chunk_id"]))
    _wrap(base, "backward_weight_one_chunk", lambda call: ("W", call["self"].stage_index, call["bwd_chunk_id"]))


class _Counter:
    """Numbers the calls of each chunk within a step: Megatron-LM's backwards do not say which micro-batch they are."""

    def __init__(self):
        self.counts = collections.Counter()

    def next(self, kind, chunk):
        number = self.counts[kind, chunk]
        self.counts[kind, chunk] += 1
        return number


def annotate_megatron():
    """Names forward_step and backward_step of megatron.core, which run in the order of micro-batches per chunk."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules

    counter = _Counter()

    def place(kind):
        chunk = parallel_state.get_virtual_pipeline_model_parallel_rank() or 0
        ranks = parallel_state.get_pipeline_model_parallel_world_size()
        stage = chunk * ranks + parallel_state.get_pipeline_model_parallel_rank()
        return kind, stage, counter.next(kind, chunk)

    _wrap(schedules, "forward_step", lambda call: place("F"))
    _wrap(schedules, "backward_step", lambda call: place("B"))
    get_function = schedules.get_forward_backward_func

    @functools.wraps(get_function)
    def begins_step(*args, **kwargs):
        run = get_function(*args, **kwargs)

        @functools.wraps(run)
        def step(*inner, **more):
            counter.counts.clear()
            return run(*inner, **more)

        return step

    schedules.get_forward_backward_func = begins_step

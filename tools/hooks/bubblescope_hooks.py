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


def _tensors(output):
    """The tensors of a stage's output: one, or a list of them."""
    return output if isinstance(output, (list, tuple)) else [output]


def annotate_megatron():
    """Names forward_step and backward_step of megatron.core. A backward belongs to the forward whose output it gets."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules

    if hasattr(schedules.forward_step, "bubblescope_wraps"):
        return
    places = {}  # id of an output tensor, which lives until its backward -> stage, micro-batch
    forward_step, backward_step = schedules.forward_step, schedules.backward_step
    signature = inspect.signature(forward_step)
    backward_signature = inspect.signature(backward_step)

    @functools.wraps(forward_step)
    def forward(*args, **kwargs):
        call = signature.bind(*args, **kwargs)
        call.apply_defaults()
        chunk = call.arguments.get("vp_stage")
        if chunk is None and "vp_stage" not in signature.parameters:
            chunk = parallel_state.get_virtual_pipeline_model_parallel_rank()
        stage = ((chunk or 0) * parallel_state.get_pipeline_model_parallel_world_size() +
                 parallel_state.get_pipeline_model_parallel_rank())
        microbatch = call.arguments.get("current_microbatch") or 0
        with op("F", stage, microbatch):
            result = forward_step(*args, **kwargs)
        output = result[0] if isinstance(result, tuple) else result
        places.update({id(tensor): (stage, microbatch) for tensor in _tensors(output)})
        return result

    @functools.wraps(backward_step)
    def backward(*args, **kwargs):
        output = backward_signature.bind(*args, **kwargs).arguments["output_tensor"]
        found = [places.pop(id(tensor)) for tensor in _tensors(output) if id(tensor) in places]
        with op("B", *found[0]) if found else contextlib.nullcontext():
            return backward_step(*args, **kwargs)

    forward.bubblescope_wraps, backward.bubblescope_wraps = forward_step, backward_step
    schedules.forward_step, schedules.backward_step = forward, backward

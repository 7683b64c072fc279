"""Names every forward and backward of a pipeline in its profile, for `bubblescope analyze`.

Copy this file beside a training script; it needs nothing but PyTorch.

    import bubblescope_hooks

    bubblescope_hooks.annotate_pytorch()   # torch.distributed.pipelining, once, before the first step
    bubblescope_hooks.annotate_megatron()  # Megatron-LM, once, before training
    bubblescope_hooks.annotate_deepspeed()  # DeepSpeed's pipelines, once, before training

    with bubblescope_hooks.op("F", stage=2, microbatch=5):  # any other runtime, around each op
        ...

The names are those of PyTorch's own pipelining: PP:2F5 is the forward of micro-batch 5 through stage 2; F, B (whole
backward), I (input gradient), W (weight gradient). They appear in profiles of torch.profiler and, as NVTX ranges, in
those of Nsight Systems; DeepSpeed's instructions keep their own names. Record whole steps on all ranks:
give torch.profiler a `schedule=`, and call its `step()` after each step. Without a schedule it marks no steps.
"""
import contextlib
import functools
import inspect

import torch

KINDS = ("F", "B", "I", "W")


@contextlib.contextmanager
def _range(name):
    has_nvtx = torch.cuda.is_available()
    if has_nvtx:
        torch.cuda.nvtx.range_push(name)
    try:
        with torch.profiler.record_function(name):
            yield
    finally:
        if has_nvtx:
            torch.cuda.nvtx.range_pop()


def op(kind, stage, microbatch):
    """Names what is launched in this block."""
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}, not {kind!r}")
    return _range(f"PP:{int(stage)}{kind}{int(microbatch)}")


def _argument(args, kwargs, name, at, default=None):
    """An argument of a call, by its name or its place. Signatures do not help where something else wrapped the function."""
    return kwargs[name] if name in kwargs else args[at] if at < len(args) else default


def _name_of(names_op, args, kwargs):
    """Names an op, or nothing where its call does not say what it runs: training continues without a name."""
    try:
        return op(*names_op(args, kwargs))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return contextlib.nullcontext()


def _with_range(function, name):
    """The function, all calls of which have this name."""

    @functools.wraps(function)
    def named(*args, **kwargs):
        with _range(name):
            return function(*args, **kwargs)

    named.bubblescope_wraps = function
    return named


def _wrap(owner, name, names_op):
    """Replaces a function by one that names its calls; `names_op` gives kind, stage and micro-batch of a call."""
    function = getattr(owner, name)
    if hasattr(function, "bubblescope_wraps"):
        return

    @functools.wraps(function)
    def named(*args, **kwargs):
        with _name_of(names_op, args, kwargs):
            return function(*args, **kwargs)

    named.bubblescope_wraps = function
    setattr(owner, name, named)


def annotate_deepspeed():
    """Names the instructions of DeepSpeed's pipelines, as PipelineEngine._exec_forward_pass. Its engine numbers buffers,
    not micro-batches, so these are counted: give the recordings of all ranks together."""
    from deepspeed.runtime.pipe.engine import PipelineEngine

    instructions = PipelineEngine._INSTRUCTION_MAP  # which the engine runs them from
    for instruction, method in instructions.items():
        if not hasattr(method, "bubblescope_wraps"):
            instructions[instruction] = _with_range(method, f"PipelineEngine.{method.__name__}")


def annotate_pytorch():
    """Names the ops of every schedule of torch.distributed.pipelining, also of those that name none (Schedule1F1B)."""
    from torch.distributed.pipelining import stage

    base = stage._PipelineStageBase  # pylint: disable=protected-access

    def names(kind, chunk):
        return lambda args, kwargs: (kind(args, kwargs), args[0].stage_index, _argument(args, kwargs, chunk, 1))

    _wrap(base, "forward_one_chunk", names(lambda args, kwargs: "F", "fwd_chunk_id"))
    _wrap(base, "backward_one_chunk",
          names(lambda args, kwargs: "B" if _argument(args, kwargs, "full_backward", 3, True) else "I", "bwd_chunk_id"))
    _wrap(base, "backward_weight_one_chunk", names(lambda args, kwargs: "W", "bwd_chunk_id"))


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

    def place_of(args, kwargs):
        """Stage and micro-batch of a forward; None where its call does not say them."""
        try:
            call = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        call.apply_defaults()
        arguments = {**call.arguments, **kwargs}
        if "current_microbatch" not in arguments:
            return None
        chunk = arguments.get("vp_stage")
        if "vp_stage" not in arguments:
            chunk = parallel_state.get_virtual_pipeline_model_parallel_rank()
        stage = ((chunk or 0) * parallel_state.get_pipeline_model_parallel_world_size() +
                 parallel_state.get_pipeline_model_parallel_rank())
        return stage, arguments["current_microbatch"] or 0

    @functools.wraps(forward_step)
    def forward(*args, **kwargs):
        place = place_of(args, kwargs)
        if place is None:
            return forward_step(*args, **kwargs)
        with op("F", *place):
            result = forward_step(*args, **kwargs)
        output = result[0] if isinstance(result, tuple) else result
        places.update({id(tensor): place for tensor in _tensors(output)})
        return result

    @functools.wraps(backward_step)
    def backward(*args, **kwargs):
        output = _argument(args, kwargs, "output_tensor", 1)
        found = [places.pop(id(tensor)) for tensor in _tensors(output) if id(tensor) in places]
        with op("B", *found[0]) if found else contextlib.nullcontext():
            return backward_step(*args, **kwargs)

    forward.bubblescope_wraps, backward.bubblescope_wraps = forward_step, backward_step
    schedules.forward_step, schedules.backward_step = forward, backward

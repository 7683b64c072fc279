"""Hooks must never end a training: a call that does not say what it runs stays without a name."""
import contextlib
import importlib.util
import pathlib
import sys
import types
import unittest
import unittest.mock

HOOKS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "hooks" / "bubblescope_hooks.py"


def fake_torch(names):
    """Modules that stand for PyTorch; the names of profiled ranges are added to `names`."""

    @contextlib.contextmanager
    def record_function(name):
        names.append(name)
        yield

    class Stage:
        stage_index = 2

        def forward_one_chunk(self, fwd_chunk_id, args, kwargs=None):
            return fwd_chunk_id

        def backward_one_chunk(self, bwd_chunk_id, loss=None, full_backward=True, last_backward=False):
            return bwd_chunk_id

        def backward_weight_one_chunk(self, bwd_chunk_id, last_backward=False):
            return bwd_chunk_id

    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)
    torch.profiler = types.SimpleNamespace(record_function=record_function)
    stage = types.ModuleType("torch.distributed.pipelining.stage")
    stage._PipelineStageBase = Stage
    pipelining = types.ModuleType("torch.distributed.pipelining")
    pipelining.stage = stage
    return {"torch": torch, "torch.distributed": types.ModuleType("torch.distributed"),
            "torch.distributed.pipelining": pipelining, "torch.distributed.pipelining.stage": stage}, Stage


def wrap_without_signature(owner, name):
    function = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: function(*args, **kwargs))


def fake_deepspeed():
    """Modules that stand for DeepSpeed, and the instructions of its engine."""

    class PipelineEngine:
        def _exec_forward_pass(self, buffer_id):
            return buffer_id

        def _exec_reduce_grads(self):
            return "reduced"

        _INSTRUCTION_MAP = {"ForwardPass": _exec_forward_pass, "ReduceGrads": _exec_reduce_grads}

    names = ["deepspeed", "deepspeed.runtime", "deepspeed.runtime.pipe", "deepspeed.runtime.pipe.engine"]
    modules = {name: types.ModuleType(name) for name in names}
    modules[names[-1]].PipelineEngine = PipelineEngine
    return modules, PipelineEngine


class Hooks(unittest.TestCase):
    def test_instructions_of_deepspeed_have_their_names_once(self):
        names = []
        modules, engine = fake_deepspeed()
        with unittest.mock.patch.dict(sys.modules, {**fake_torch(names)[0], **modules}):
            spec = importlib.util.spec_from_file_location("bubblescope_hooks", HOOKS)
            hooks = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(hooks)
            hooks.annotate_deepspeed()
            hooks.annotate_deepspeed()
            run = engine._INSTRUCTION_MAP
            self.assertEqual(types.MethodType(run["ForwardPass"], engine())(buffer_id=3), 3)
            self.assertEqual(types.MethodType(run["ReduceGrads"], engine())(), "reduced")
        self.assertEqual(names, ["PipelineEngine._exec_forward_pass", "PipelineEngine._exec_reduce_grads"])

    def names_of(self, run, is_wrapped):
        names = []
        modules, stage = fake_torch(names)
        if is_wrapped:
            for name in ("forward_one_chunk", "backward_one_chunk", "backward_weight_one_chunk"):
                wrap_without_signature(stage, name)
        with unittest.mock.patch.dict(sys.modules, modules):
            spec = importlib.util.spec_from_file_location("bubblescope_hooks", HOOKS)
            hooks = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(hooks)
            hooks.annotate_pytorch()
            run(stage())
        return names

    def test_ops_have_names_whatever_wrapped_them_before(self):
        def run(stage):
            self.assertEqual(stage.forward_one_chunk(5, ()), 5)
            stage.forward_one_chunk(fwd_chunk_id=6, args=())
            stage.backward_one_chunk(5, loss=None, full_backward=True)
            stage.backward_one_chunk(6, None, False)
            stage.backward_weight_one_chunk(6, last_backward=True)

        for is_wrapped in (False, True):
            self.assertEqual(self.names_of(run, is_wrapped), ["PP:2F5", "PP:2F6", "PP:2B5", "PP:2I6", "PP:2W6"])

    def test_a_call_that_says_nothing_runs_without_a_name(self):
        def run(stage):
            del type(stage).stage_index
            self.assertEqual(stage.forward_one_chunk(5, ()), 5)

        self.assertEqual(self.names_of(run, True), [])
        self.assertEqual(self.names_of(lambda stage: stage.forward_one_chunk(None, ()), True), [])


if __name__ == "__main__":
    unittest.main()

"""PyTorch itself as the judge of bubblescope.torch.

Its schedules read as ours, its runtime takes our lists, and on four processes over gloo every schedule trains a small
model with the losses and weights of a serial run.
"""
import copy
import functools
import gc
import importlib.util
import itertools
import json
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import bubblescope as bs

RANKS, MICROBATCHES, WIDTH, STEPS = 4, 8, 16, 3
TRAINED = {"gpipe": {}, "1f1b": {}, "eager-1f1b": {}, "interleaved": {"vpp": 2}, "bfs": {"vpp": 2}, "zb-h1": {},
           "zb-h2": {}, "zb-1p": {}, "zb-2p": {}, "interleaved-zb": {"vpp": 2}, "zb-v": {}, "v-half": {}, "v-min": {},
           "1f1b-v": {}, "dualpipev": {}, "hanayo": {}}
# As PyTorch has them; all others by the widest rules.
PROFILED = {"interleaved", "bfs", "interleaved-zb", "zb-v", "dualpipev"}
THEIRS = {"Interleaved1F1B": "interleaved", "LoopedBFS": "bfs", "InterleavedZeroBubble": "interleaved-zb",
          "ZBVZeroBubble": "zb-v", "DualPipeV": "dualpipev"}
HAVE_TORCH = importlib.util.find_spec("torch") is not None


def built(name, ranks=RANKS, microbatches=MICROBATCHES, **shape):
    profile = {"profile": "pytorch-2.15"} if name in PROFILED else {}
    return bs.schedule(name, pp=ranks, m=microbatches, **shape, **profile)


@functools.lru_cache
def stages_of(ranks, chunks):
    """Stand-ins: only their numbers count before the first step."""
    from torch.distributed.pipelining import PipelineStage

    stage = mock.create_autospec(PipelineStage, instance=True)
    stage.group_rank, stage.group_size, stage.num_stages, stage.submod = 0, ranks, ranks * chunks, None
    return [stage] * chunks


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class Lists(unittest.TestCase):
    def test_their_schedules_are_ours(self):
        from torch.distributed.pipelining import schedules as pytorch

        compared = 0
        for name, ranks, chunks, microbatches in itertools.product(THEIRS, (1, 2, 4), (1, 2, 3), (1, 2, 4, 8)):
            try:
                theirs = pytorch.get_schedule_class(name)(stages_of(ranks, chunks), microbatches)
            except (ValueError, AssertionError):
                continue
            ours = built(THEIRS[name], ranks, microbatches, vpp=chunks)
            self.assertEqual(bs.Schedule.from_torch(theirs).rows, ours.rows, (name, ranks, chunks, microbatches))
            compared += 1
        self.assertGreater(compared, 40)

    def test_those_that_run_by_hand_are_ours(self):
        from torch.distributed.pipelining import schedules as pytorch

        for name, microbatches in itertools.product(("GPipe", "1F1B"), (4, 8)):
            theirs = pytorch.get_schedule_class(name)(stages_of(4, 1)[0], microbatches)
            self.assertEqual(bs.Schedule.from_torch(theirs).rows, built(name, 4, microbatches).rows)

    def test_their_lowering_of_our_lists_is_ours(self):
        from torch.distributed.pipelining import schedules as pytorch

        for name, shape in TRAINED.items():
            ours = built(name, **shape)
            runtime = pytorch._PipelineScheduleRuntime(stages_of(RANKS, ours.vpp), MICROBATCHES)
            runtime._prepare_schedule_with_comms(ours.to_torch())
            theirs = {rank: [str(action) for action in actions]
                      for rank, actions in runtime.pipeline_order_with_comms.items()}
            with_messages = ours.convert("pytorch-csv-comms", profile="pytorch-2.15", fsdp=True).splitlines()
            self.assertEqual(theirs, {rank: row.split(",") for rank, row in enumerate(with_messages)}, name)
            orders = [[cell for cell in row if cell != "_"] for row in ours.rows]
            self.assertEqual(bs.Schedule.from_torch(runtime).rows, orders, name)

    def test_their_lists_need_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bs.schedule("zb-v", pp=4, m=8).to_torch()
            bs.schedule("zb-v", pp=4, m=8, profile="pytorch").to_torch()

    def test_their_names_lead_to_ours(self):
        from torch.distributed.pipelining import schedules as pytorch

        classes = {each for each in vars(pytorch).values() if isinstance(each, type) and each.__name__.startswith("Schedule")}
        self.assertGreaterEqual(len(classes), 7)
        for each in classes:
            ours = {**{f"Schedule{theirs}": name for theirs, name in THEIRS.items()}, **bs.torch.SINGLE}[each.__name__]
            for given in (each, each.__name__):
                for call in (bs.schedule, bs.simulate, bs.check, bs.compare):
                    with self.assertRaisesRegex(bs.UsageError, f"no schedule is called '{each.__name__}'; here it is '{ours}'"):
                        call(given, pp=4, m=8)
        theirs = pytorch.get_schedule_class("LoopedBFS")(stages_of(2, 2), 4)
        for call in (bs.schedule, bs.simulate, bs.compare, bs.check):
            with self.assertRaisesRegex(bs.UsageError, r"Schedule\.from_torch\(schedule\) reads its order"):
                call(theirs, pp=2, m=4)

    def test_what_their_grammar_lacks_is_refused(self):
        with self.assertRaises(bs.Error):
            bs.schedule("seq1f1b", pp=4, m=8, slices=2).to_torch()


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class Alone(unittest.TestCase):
    """Runs in this process, which is the only one of its group."""

    def setUp(self):
        import torch.distributed as dist

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        dist.init_process_group("gloo", init_method=f"file://{folder.name}/store", rank=0, world_size=1)
        self.addCleanup(dist.destroy_process_group)

    def run_schedule(self, schedule, **options):
        import torch

        modules, inputs, target = make_model(len(schedule.rank_of_stage))
        usual = {"inputs": inputs, "target": target, "loss_fn": torch.nn.functional.mse_loss, "steps": 2}
        return bs.torch.run(dict(enumerate(modules)), schedule, **{**usual, **options})

    def test_stages_may_differ_in_how_they_split_backwards(self):
        rows = [["0F0", "1F0", "1B0", "0I0", "0W0", "0F1", "1F1", "1B1", "0B1"]]
        made = self.run_schedule(bs.Schedule(rows))
        self.assertEqual(len(made.losses), 3)
        self.assertGreater(made.prediction.makespan, 0)

    def test_recordings_are_deleted_with_the_result_unless_they_are_kept(self):
        schedule = bs.Schedule(["0F0 0B0 0F1 0B1"])
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(tempfile, "tempdir", folder):
            made = self.run_schedule(schedule)
            copies = [copy.copy(made.analysis), copy.deepcopy(made.analysis), made.analysis.timeline]
            self.assertNotIn(folder, json.dumps(made.analysis.json) + repr(made) + str(made.analysis))
            self.assertEqual(pickle.loads(pickle.dumps(made.analysis)).makespan, made.analysis.makespan)
            del made
            while copies:
                gc.collect()
                self.assertEqual([name.startswith("bubblescope-run-") for name in os.listdir(folder)], [True])
                copies.pop()
            gc.collect()
            self.assertEqual(os.listdir(folder), [])
            kept = pathlib.Path(folder, "kept", "here")
            made = self.run_schedule(schedule, traces=kept)
            self.assertEqual(os.listdir(kept), ["rank0.json"])
            self.assertEqual(os.listdir(folder), ["kept"])
            self.assertEqual(bs.analyze(kept).makespan, made.analysis.makespan)
            with self.assertRaisesRegex(bs.UsageError, "^traces: cannot make the folder"):
                self.run_schedule(schedule, traces=kept / "rank0.json")
            with self.assertRaisesRegex(bs.UsageError, "^traces: int is not a path"):
                self.run_schedule(schedule, traces=3)

    def test_a_missing_prediction_keeps_what_was_measured(self):
        with mock.patch("bubblescope.torch.measured_costs", side_effect=bs.ProblemError("no costs")):
            with self.assertWarnsRegex(UserWarning, "has no prediction: no costs"):
                made = self.run_schedule(bs.Schedule(["0F0 0B0 0F1 0B1"]))
        self.assertEqual(len(made.losses), 3)
        self.assertIn("without a prediction", repr(made))
        with self.assertRaisesRegex(bs.ProblemError, "no prediction"):
            made.error

    def test_wrong_arguments_are_refused_before_anything_runs(self):
        import torch

        schedule = bs.schedule("1f1b", pp=1, m=8)
        with mock.patch("bubblescope.torch.make_runtime", side_effect=AssertionError("it ran")):
            for options, message in (({"steps": 0}, "^steps is 0"), ({"steps": -1}, "^steps is -1"),
                                     ({"warmup": -1}, "^warmup is -1"), ({"loss_fn": None}, "needs the same loss_fn"),
                                     ({"inputs": torch.randn(30, WIDTH)}, "^inputs: .*30.* 8 equal micro-batches"),
                                     ({"target": torch.randn(30, WIDTH)}, "^target: .*30.* 8 equal micro-batches"),
                                     ({"inputs": None}, "^inputs: ")):
                with self.subTest(options=options), self.assertRaisesRegex(bs.UsageError, message):
                    self.run_schedule(schedule, **options)
            with self.assertRaisesRegex(bs.UsageError, "forward-only has no backwards"):
                self.run_schedule(bs.schedule("forward-only", pp=1, m=8))
            with self.assertRaisesRegex(bs.UsageError, "^steps is a whole number, not str"):
                self.run_schedule(schedule, steps="3")
        for modules, given, message in (([torch.nn.Tanh()], schedule, "^modules map this rank's stages"),
                                        ({0: torch.nn.Tanh()}, "1f1b", "^a schedule such as")):
            with self.assertRaisesRegex(bs.UsageError, message):
                bs.torch.run(modules, given, inputs=torch.randn(8, 2), target=torch.randn(8, 2))

    def test_a_group_is_needed(self):
        import torch.distributed as dist

        with mock.patch.object(dist, "is_initialized", return_value=False):
            with self.assertRaisesRegex(bs.UsageError, "init_process_group"):
                self.run_schedule(bs.schedule("1f1b", pp=1, m=8))


def make_model(stages):
    import torch

    torch.manual_seed(0)
    modules = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(stages)]
    return modules, torch.randn(MICROBATCHES * 2, WIDTH), torch.randn(MICROBATCHES * 2, WIDTH)


def optimizer_of(modules):
    import torch

    return torch.optim.SGD([weight for module in modules for weight in module.parameters()], lr=0.5)


def train_serially(stages):
    """The losses of all steps, of all micro-batches at once, and the weights after them."""
    import torch

    modules, inputs, target = make_model(stages)
    optimizer = optimizer_of(modules)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(torch.nn.Sequential(*modules)(inputs), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [module[0].weight.detach().tolist() for module in modules]


def work(folder):
    """One rank of all schedules, in a process of its own."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for name, shape in TRAINED.items():
        schedule = built(name, **shape)
        modules, inputs, target = make_model(len(schedule.rank_of_stage))
        mine = {stage: modules[stage] for stage, owner in enumerate(schedule.rank_of_stage) if owner == rank}
        made = bs.torch.run(mine, schedule, inputs=inputs, target=target, loss_fn=torch.nn.functional.mse_loss,
                            optimizer=optimizer_of(mine.values()), steps=STEPS - 1, warmup=1)
        weights = {stage: module[0].weight.detach().tolist() for stage, module in mine.items()}
        told = {"losses": made.losses, "weights": weights}
        if rank == 0:
            told.update(measured=made.analysis.makespan, predicted=made.prediction.makespan,
                        trust=made.analysis.trust["verdict"], recognized=made.analysis.json["schedule"])
        pathlib.Path(folder, f"{name}.{rank}").write_text(json.dumps(told))
    dist.destroy_process_group()


@unittest.skipUnless(HAVE_TORCH, "torch is not installed")
class Training(unittest.TestCase):
    def launch(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        workers = []
        for rank in range(RANKS):
            environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(RANKS),
                               PYTHONWARNINGS="ignore")
            workers.append(subprocess.Popen([sys.executable, __file__, "--worker", folder], env=environment))
        for worker in workers:
            self.assertEqual(worker.wait(timeout=900), 0)

    def test_every_schedule_trains_like_the_serial_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.launch(folder)
            for name, shape in TRAINED.items():
                told = [json.loads(pathlib.Path(folder, f"{name}.{rank}").read_text()) for rank in range(RANKS)]
                losses, weights = train_serially(len(built(name, **shape).rank_of_stage))
                found = next(each["losses"] for each in told if each["losses"])
                for one, other in zip(found, losses, strict=True):
                    self.assertAlmostEqual(one, other, places=5, msg=name)
                for each in told:
                    for stage, rows in each["weights"].items():
                        for row, expected in zip(rows, weights[int(stage)], strict=True):
                            for one, other in zip(row, expected, strict=True):
                                self.assertAlmostEqual(one, other, places=5, msg=f"{name}, stage {stage}")
                first = told[0]
                off = first["predicted"] / first["measured"] - 1
                print(f"{name}: measured {first['measured'] / 1e6:.2f} ms, predicted {100 * off:+.1f} %, trust "
                      f"{first['trust']}, read as {first['recognized']}", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        warnings.simplefilter("ignore")
        work(sys.argv[2])
    else:
        unittest.main()

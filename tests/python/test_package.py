"""The Python package: what users call, with closed forms and with the program's own reports as the judge.

    python -m unittest discover tests/python
"""
import ast
import csv
import json
import pathlib
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import unittest
import warnings

from optional_packages import have

import bubblescope as bs

SHARED = pathlib.Path(__file__).parents[3] / "shared" / "data"
PROGRAM = pathlib.Path(sysconfig.get_path("scripts"), "bubblescope")


def run_program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)


class Simulate(unittest.TestCase):
    def test_the_report_is_that_of_the_program(self):
        for name, options in (("1f1b", {}), ("zb-v", {"f": 10, "i": 9.5, "w": "7ms", "p2p": 0.4}),
                              ("interleaved", {"vpp": 2, "p2p_mode": "rendezvous"}), ("zb-auto", {"f": 3, "cap": 5}),
                              ("1f1b", {"recompute": "full"}), ("bpipe", {"copy": 0.1}),
                              ("1f1b", {"model": "llama3-8b", "tp": 2}), ("zb-h2", {"jitter": "5%", "seeds": 20})):
            words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            printed = run_program("simulate", name, "--pp=4", "-m", "8", *words, "--format=json")
            with self.subTest(name=name, options=options), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(bs.schedule(name, pp=4, m=8).simulate(**options).json, json.loads(printed.stdout))

    def test_a_long_step_is_reported_as_the_whole_of_it(self):
        # The program times every op where it writes a timeline.
        costs = {"f": 10, "i": 9.5, "w": 7, "p2p": 0.4}
        for name, m, options in (("1f1b", 96, {}), ("1f1b", 400, costs), ("zb-h1", 64, costs),
                                 ("interleaved", 128, {"vpp": 2}), ("gpipe", 64, costs), ("zb-v", 64, costs)):
            words = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
            with self.subTest(name=name, options=options), tempfile.TemporaryDirectory() as folder:
                theirs, ours = pathlib.Path(folder, "theirs.csv"), pathlib.Path(folder, "ours.csv")
                printed = run_program("simulate", name, "--pp=4", "-m", m, *words, "--format=json",
                                      f"--timeline={theirs}")
                report = bs.schedule(name, pp=4, m=m).simulate(**options)
                self.assertEqual(report.json, json.loads(printed.stdout))
                report.save(ours)
                self.assertEqual(ours.read_text(), theirs.read_text())
                path = report.critical_path
                self.assertEqual(path[-1].end - path[0].start, report.makespan)
                if have("numpy"):
                    self.assertLessEqual(set(path), set(report.timeline))

    def test_1f1b_takes_its_closed_form(self):
        # m + p - 1 forwards and backwards, one after the other, of 1 and 2 ms.
        for pp, m in ((1, 1), (2, 3), (4, 8), (8, 64)):
            report = bs.schedule("1f1b", pp=pp, m=m).simulate()
            self.assertEqual(report.makespan, (m + pp - 1) * 3_000_000)
            self.assertAlmostEqual(report.bubble.ratio, (pp - 1) / (m + pp - 1))

    def test_busy_and_idle_add_up_on_every_rank(self):
        report = bs.schedule("zb-h1", pp=4, m=8).simulate(f=10, i=10, w=9, p2p=0.4)
        for rank in report.ranks:
            self.assertEqual(rank.busy + rank.idle, report.makespan)
            self.assertEqual(sum(rank.idle_by_cause.values()), rank.idle)
            self.assertEqual(sum(rank.busy_by_kind.values()), rank.busy)

    def test_costs_may_be_the_content_of_a_cost_file(self):
        stages = [{"forward": 1, "backward": 2}, {"forward": 2, "backward": 4}]
        report = bs.schedule("gpipe", pp=2, m=2).simulate(costs={"format": "bubblescope-costs/1", "stages": stages})
        # Stage 1 is busy with 2 x (2 + 4) ms, 1 ms after the start; then stage 0 runs its last backward.
        self.assertEqual(report.makespan, (1 + 12 + 2) * 1_000_000)

    def test_assumptions_may_be_a_mapping(self):
        options = {"model": "llama3-8b", "gpu": "h100"}
        usual = bs.schedule("1f1b", pp=2, m=4).simulate(**options)
        slower = bs.schedule("1f1b", pp=2, m=4).simulate(
            **options, assume={"host_layer_us": 50_000, "host_pass_us": 0})
        self.assertGreater(slower.makespan, usual.makespan)

    def test_a_schedule_that_reads_costs_is_built_for_them(self):
        built = bs.schedule("zb-auto", pp=4, m=8)
        report = built.simulate(f=1, i=5, w=3)
        self.assertEqual(report.schedule, bs.schedule("zb-auto", pp=4, m=8, f=1, i=5, w=3))
        self.assertNotEqual(report.schedule, built)

    def test_the_text_is_that_of_the_program(self):
        printed = run_program("simulate", "1f1b", "--pp=4", "-m", "8")
        self.assertEqual(str(bs.schedule("1f1b", pp=4, m=8).simulate()), printed.stdout)

    def test_what_would_be_on_stderr_is_a_warning(self):
        with self.assertWarnsRegex(UserWarning, "^optimizer_step changes nothing"):
            bs.schedule("1f1b", pp=2, m=2).simulate(optimizer_step=3)


class Errors(unittest.TestCase):
    def test_messages_name_keywords(self):
        schedule = bs.schedule("1f1b", pp=2, m=2)
        with self.assertRaisesRegex(bs.UsageError, "'p2p_mod'.*did you mean 'p2p_mode'"):
            schedule.simulate(p2p_mod="fifo")
        with self.assertRaisesRegex(bs.UsageError, "^1f1b needs pp"):
            bs.schedule("1f1b", m=2)
        with self.assertRaisesRegex(ValueError, "^f: 'x'"):
            schedule.simulate(f="x")

    def test_rows_are_not_taken_for_a_name(self):
        with self.assertRaisesRegex(TypeError, r"a function or a Schedule, not list; Schedule\(rows\)"):
            bs.schedule([["0F0", "0B0"]])

    def test_a_deadlock_explains_itself(self):
        schedule = bs.Schedule(["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"])
        with self.assertRaisesRegex(bs.ProblemError, "deadlock: rank 0 at 0B0 waits for 1B0") as raised:
            schedule.simulate()
        self.assertIn(">0B0<", raised.exception.details)

    def test_a_file_that_is_missing_is_named(self):
        with self.assertRaisesRegex(bs.UsageError, "gone.csv"):
            bs.read("gone.csv")

    def test_the_times_of_a_file_are_not_dropped_silently(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.json")
            bs.schedule("1f1b", pp=2, m=2).simulate(f=7).save(path)
            with self.assertRaisesRegex(bs.UsageError, "step.json"):
                bs.read(path).simulate()
            with self.assertRaisesRegex(bs.UsageError, "step.json"):
                bs.read(path).simulate(f=1)
            self.assertEqual(bs.read(path).simulate(f=1, b=2).makespan, 9_000_000)

    def test_another_shape_than_the_schedules_is_refused(self):
        with self.assertRaisesRegex(bs.UsageError, "has 2 micro-batches, not 3"):
            bs.Schedule(["0F0 0F1 0B0 0B1"]).simulate(m=3)


class Schedules(unittest.TestCase):
    def test_rows_come_back(self):
        for name in ("1f1b", "zb-v", "dualpipev", "chimera", "interleaved"):
            built = bs.schedule(name, pp=4, m=8)
            again = bs.Schedule(built.rows, name=name)
            self.assertEqual(again.rows, built.rows)
            self.assertEqual(again.simulate().makespan, built.simulate().makespan)

    def test_files_come_back(self):
        built = bs.schedule("zb-h1", pp=4, m=8)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.json")
            built.save(path)
            self.assertEqual(bs.read(path), built)
            text = pathlib.Path(folder, "mine.csv")
            text.write_text(built.convert("pytorch-csv"))
            self.assertEqual(bs.read(text).rows, built.rows)
            with self.assertRaisesRegex(bs.UsageError, "several files"):
                built.convert("chakra")
            built.save(pathlib.Path(folder, "trace"), "chakra")
            self.assertEqual(len(list(pathlib.Path(folder).glob("trace*"))), 4)

    def test_every_schedule_is_checked_like_by_the_program(self):
        for name in bs.schedules():
            printed = json.loads(run_program("check", name, "--pp=4", "-m", "8", "--format=json").stdout)
            with self.subTest(name=name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(bs.check(name, pp=4, m=8).json, printed)
                if printed["legal"]:
                    self.assertEqual(bs.schedule(name, pp=4, m=8).check().json, printed)

    def test_a_function_builds_a_schedule_wherever_a_name_does(self):
        def gpipe(pp, m):
            return [" ".join(f"{rank}{kind}{i}" for kind in "FB" for i in range(m)) for rank in range(pp)]

        compared = bs.compare([gpipe, "gpipe"], pp=3, m=5, f=2)
        self.assertEqual(compared[0].makespan, compared[1].makespan)
        self.assertEqual(bs.schedule(gpipe, pp=3, m=5).rows, bs.schedule("gpipe", pp=3, m=5).rows)

    def test_errors_in_a_function_are_the_users(self):
        with self.assertRaises(ZeroDivisionError):
            bs.schedule(lambda pp, m: 1 // 0, pp=2, m=2)


class Compare(unittest.TestCase):
    def test_all_are_those_of_the_program(self):
        words = ["all", "--pp=4", "-m", "8", "--f=10", "--format=json"]
        printed = json.loads(run_program("compare", *words).stdout)["reports"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compared = bs.compare("all", pp=4, m=8, f=10)
        self.assertEqual([(report.name, report.makespan) for report in compared],
                         [(report["schedule"], report["makespan_ns"]) for report in printed])

    def test_a_refused_shape_is_listed(self):
        compared = bs.compare(["1f1b", "chimera"], pp=3, m=4)
        self.assertEqual([report.name for report in compared], ["1f1b"])
        self.assertEqual(compared.refused[0].name, "chimera")
        with self.assertRaisesRegex(bs.UsageError, "did you mean '1f1b'"):
            bs.compare("1f1bb", pp=4, m=8)

    def test_a_policy_has_the_rows_of_the_program(self):
        printed = run_program("compare", "1f1b,zb-h1", "--pp=4", "-m", "8", "--w=0.5", "--policy=ready", "--format=csv")
        rows = [row[:2] for row in csv.reader(printed.stdout.splitlines())][1:]
        compared = bs.compare("1f1b,zb-h1", pp=4, m=8, w=0.5, policy="ready")
        self.assertEqual([[report.name, str(report.makespan)] for report in compared], rows)
        self.assertEqual([report.name for report in compared], ["1f1b", "1f1b ready", "zb-h1", "zb-h1 ready"])
        again = pickle.loads(pickle.dumps(compared["zb-h1 ready"]))
        self.assertEqual((again.name, again.makespan), ("zb-h1 ready", compared["zb-h1 ready"].makespan))
        self.assertEqual([report.name for report in bs.compare("1f1b", pp=4, m=8, policy="fixed")], ["1f1b"])

    def test_schedules_with_a_shape_give_it_to_others(self):
        mine = bs.schedule("1f1b", pp=4, m=8)
        expected = [report.makespan for report in bs.compare("1f1b,zb-h1", pp=4, m=8)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.csv")
            mine.save(path, "pytorch-csv")
            for names in ([mine, "zb-h1"], [path, "zb-h1"], [str(path), "zb-h1"],
                          [mine, lambda pp, m: bs.schedule("zb-h1", pp=pp, m=m).rows]):
                self.assertEqual([report.makespan for report in bs.compare(names)], expected)
            with self.assertRaisesRegex(bs.UsageError, "^1f1b has pp 4 and 1f1b has pp 2, so that"):
                bs.compare([mine, bs.schedule("1f1b", pp=2, m=8), "zb-h1"])
        with self.assertRaisesRegex(bs.UsageError, r"""^compare needs pp and m; for example bs.compare\("zb-h1", pp=4, m=8\)"""):
            bs.compare("zb-h1")

    def test_all_schedules_and_counts_beside_a_schedule_of_ones_own(self):
        mine = bs.schedule("1f1b", pp=3, m=6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            every = bs.compare("all", pp=3, m=6)
            self.assertEqual(len(bs.compare([mine, "all"])), len(every) + 1)
            self.assertEqual(len(bs.compare("all,1f1b", pp=3, m=6)), len(every))
            beside = bs.compare("dualpipe,all", pp=3, m=6)
        self.assertEqual([refusal.name for refusal in beside.refused], ["dualpipe"])
        compared = bs.compare([mine, "interleaved"], vpp=4)
        self.assertEqual(compared.refused, [])
        self.assertEqual([report.json["vpp"] for report in compared], [1, 4])
        self.assertEqual(len(bs.compare([mine], vpp=2).refused), 1)

    def test_options_of_a_schedule_hold_for_those_that_have_none(self):
        mine = bs.schedule("1f1b", pp=4, m=8, f=10, i=10, w=9, policy="ready")
        expected = bs.compare("1f1b,zb-h1", pp=4, m=8, f=10, i=10, w=9, policy="ready")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "zb-h1.json")
            bs.schedule("zb-h1", pp=4, m=8).save(path)
            for other in ("zb-h1", path, lambda pp, m: bs.schedule("zb-h1", pp=pp, m=m).rows):
                compared = bs.compare([mine, other])
                self.assertEqual([report.makespan for report in compared], [report.makespan for report in expected])
                self.assertEqual([report.name for report in compared][:2], ["1f1b", "1f1b ready"])
        self.assertEqual([report.makespan for report in bs.compare([mine, "zb-h1"], f=1, i=1, w=1, policy="fixed")],
                         [33_000_000, 27_000_000])

    def test_schedules_that_differ_in_their_options_are_named_after_them(self):
        base = bs.schedule("1f1b", pp=4, m=8, f=10, b=20)
        costs = {"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 2}] * 4}
        compared = bs.compare([base, bs.schedule(base, recompute="full"), bs.schedule("1f1b", pp=4, m=8, costs=costs)])
        self.assertEqual([report.name for report in compared],
                         ["1f1b f=10 b=20", "1f1b f=10 b=20 recompute=full", "1f1b costs"])
        again = pickle.loads(pickle.dumps(compared["1f1b costs"]))
        self.assertEqual((again.name, again.makespan), ("1f1b costs", 33_000_000))
        with self.assertRaisesRegex(bs.UsageError, "^1f1b was made with f=10 and zb-h1 without f, so that .*; give f to"):
            bs.compare([base, bs.schedule("zb-h1", pp=4, m=8, b=20), "gpipe"])
        self.assertEqual(len(bs.compare([base, bs.schedule("zb-h1", pp=4, m=8, b=20), "gpipe"], f=10)), 3)

    def test_values_are_compared_and_not_their_spelling(self):
        made = [bs.schedule("1f1b", pp=2, m=4, f=given) for given in (10, 10.0, "10ms")]
        self.assertEqual([row.name for row in bs.compare(made)], ["1f1b"] * 3)
        self.assertEqual(bs.compare([*made, "gpipe"])["gpipe"].makespan, bs.simulate("gpipe", pp=2, m=4, f=10).makespan)

    def test_every_report_has_its_schedule(self):
        for options in ({}, {"vpp": 2, "slices": 2, "in_flight": 3}, {"cap": 3, "f": 2}, {"recompute": "full"},
                        {"profile": "pytorch"}, {"model": "llama3-8b", "tp": 2}):
            with self.subTest(options=options), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compared = bs.compare("1f1b,interleaved,zb-auto,zb-v,seq1f1b", pp=4, m=8, **options)
                self.assertGreaterEqual(len(compared), 2)
                for report in compared:
                    self.assertEqual(report.schedule.name, report.name)
                    self.assertEqual(report.schedule.simulate().makespan, report.makespan)
        best = bs.compare("1f1b,zb-v", pp=4, m=8).best.schedule
        self.assertEqual(best, bs.schedule("zb-v", pp=4, m=8))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.csv")
            best.save(path, "pytorch-csv")
            self.assertEqual(bs.compare(str(path))[0].schedule.rows, best.rows)

    def test_the_best_is_that_of_the_program(self):
        for options in ({"cap": 3}, {"model": "llama3-8b", "gpu": "a100-40", "tp": 2}):
            words = [f"--{key}={value}" for key, value in options.items()]
            printed = run_program("compare", "gpipe,1f1b,zb-h1,v-min", "--pp=4", "-m", "8", *words).stdout
            shown = {line.split()[0]: line.split("%")[0].split()[-1] for line in printed.splitlines()[1:] if "%" in line}
            with self.subTest(options=options), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compared = bs.compare("gpipe,1f1b,zb-h1,v-min", pp=4, m=8, **options)
                rows = {line.split()[0]: line.split("%")[0].split()[-1] for line in repr(compared).splitlines()[1:] if "%" in line}
                self.assertEqual(rows, shown)
                self.assertEqual(rows[compared.best.name], "+0.00")

    def test_examples_in_errors_are_calls_of_the_function_at_hand(self):
        for call, name in ((bs.check, "check"), (bs.simulate, "simulate"), (bs.compare, "compare")):
            with self.assertRaisesRegex(bs.UsageError, rf"""bs.{name}\("1f1b", pp=4, m=8\)"""):
                call("1f1b")


class Try(unittest.TestCase):
    COSTS = {"f": 10, "i": 11, "w": 9, "p2p": 0.4}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def record(self, name):
        path = self.folder / f"{name}.trace.json"
        bs.schedule(name, pp=4, m=8).simulate(**self.COSTS).save(path)
        return path

    def test_the_rows_are_those_of_the_program(self):
        path = self.record("1f1b")
        printed = json.loads(run_program("analyze", path, "--try=zb-h1,chimera,interleaved", "-m", "8,9", "--split-b=0.55",
                                         "--format=json").stdout)
        tries = bs.analyze(path).try_(["zb-h1", "chimera", "interleaved"], m=[8, 9], split_b=0.55)
        self.assertEqual(tries.rows, printed["tries"])
        self.assertEqual((tries.fit_error, tries.without), (printed["fit_error"], printed["without"]))
        self.assertEqual(bs.analyze(path, split_b=0.3, try_="gpipe").try_("zb-h1,chimera,interleaved", m=range(8, 10),
                                                                        split_b=0.55).rows, tries.rows)

    def test_the_sentences_below_the_table_are_those_of_the_program(self):
        for jitter in (False, True):
            path = self.record("zb-h1")
            if jitter:
                path = self.folder / "steps"
                path.mkdir()
                for seed in range(3):
                    report = bs.simulate("zb-h1", pp=4, m=8, **{**self.COSTS, "f": 10 + seed})
                    report.save(path / f"step{seed}.trace.json")
            printed = run_program("analyze", path, "--try=1f1b,zb-v").stdout
            below = printed[printed.index("\nchange: of the time") + 1:]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tries = bs.analyze(path).try_("1f1b,zb-v")
            self.assertTrue(repr(tries).endswith("\n" + below.rstrip("\n")), (repr(tries), below))
            self.assertEqual("no spread" in below, not jitter)
            self.assertIn("change: of the time per micro-batch", tries._repr_html_())

    def test_a_try_takes_what_is_about_tries(self):
        path = self.record("1f1b")
        known = bs.analyze(path, cap=9, mem="1,0,-1", split_b=0.3, costs_out=self.folder / "costs.json",
                           costs_per="stage", html=self.folder / "page.html")
        page = (self.folder / "page.html")
        page.unlink()
        self.assertEqual(len(known.try_("interleaved", m=8, vpp=[2, 4], split_b=0.55)), 3)
        self.assertEqual(len(known.try_("zb-h1", microbatches=[8, 16])), 3)
        known.save(page)
        for keyword, message in (("cap", r"analyze\(cap=...\)"), ("costs_out", r"tries\.costs$"),
                                 ("try_out", r"tries\.schedule"), ("rules", "what analyze takes is given to it"),
                                 ("vp", "takes m, split_b, vpp"), ("html", "takes m"), ("format", "takes m")):
            with self.assertRaisesRegex(bs.UsageError, f"^{keyword} is not a keyword here: .*{message}"):
                known.try_("gpipe", **{keyword: 3})

    def test_a_trace_predicts_what_the_costs_of_its_simulation_predict(self):
        tries = bs.analyze(self.record("zb-h1")).try_(["1f1b", "zb-v", "zb-h2"], m=[8, 16])
        for row in tries:
            simulated = bs.schedule(row["schedule"], pp=4, m=row["microbatches"]).simulate(**self.COSTS)
            self.assertEqual(row["step_ns"], simulated.makespan, row)
        self.assertEqual(tries.measured, tries[0])
        shortest = min(tries.rows[1:], key=lambda row: row["step_ns"] / row["microbatches"])
        self.assertEqual(tries.best, shortest)
        self.assertEqual(tries.schedule, bs.schedule(shortest["schedule"], pp=4, m=shortest["microbatches"]))
        self.assertEqual(tries.schedule.simulate(costs=tries.costs).makespan, shortest["step_ns"])

    def test_where_none_can_be_run_the_rows_say_why(self):
        tries = bs.analyze(self.record("1f1b")).try_(["zb-h1"], m=[8, 9])
        self.assertEqual([("problem" in row) for row in tries], [False, True, True])
        for get in (lambda: tries.best, lambda: tries.schedule):
            with self.assertRaisesRegex(bs.ProblemError, "zb-h1 with 8 micro-batches: .*; split_b 0.5 would halve it"):
                get()
        self.assertIn("zb-h1, m=9: needs the backward in two halves", repr(tries))

    def test_a_search_is_tried(self):
        tries = bs.analyze(self.record("zb-h1")).try_("search")
        self.assertLessEqual(tries.best["change"], 0)
        self.assertTrue(tries.schedule.is_legal)

    def test_nothing_is_predicted_from_steps_that_the_ops_do_not_explain(self):
        path = self.record("1f1b")
        trace = json.loads(path.read_text())
        del trace["otherData"]
        for event in trace["traceEvents"]:
            if "dur" in event:
                event["dur"] /= 2
        path.write_text(json.dumps(trace))
        with self.assertRaisesRegex(bs.ProblemError, "nothing can be predicted"):
            bs.analyze(path).try_(["gpipe"])

    def test_wrong_names_are_refused(self):
        analysis = bs.analyze(self.record("1f1b"))
        with self.assertRaisesRegex(bs.UsageError, "did you mean '1f1b'"):
            analysis.try_("1f1bb")
        with self.assertRaisesRegex(bs.UsageError, "by its name"):
            analysis.try_([bs.schedule("1f1b", pp=4, m=8)])

    @unittest.skipUnless(have("pandas"), "pandas is not installed")
    def test_the_frame_has_a_row_for_each(self):
        frame = bs.analyze(self.record("1f1b")).try_(["gpipe", "chimera"], m=[8, 9]).df()
        self.assertEqual(frame.schedule.tolist(), ["1f1b", "gpipe", "gpipe", "chimera", "chimera"])
        self.assertEqual(frame.measured.tolist(), [True] + 4 * [False])
        self.assertEqual(frame.best.sum(), 1)
        self.assertEqual(frame.problem.isna().tolist(), [True] * 4 + [False])


@unittest.skipUnless(have("numpy"), "numpy is not installed")
class Arrays(unittest.TestCase):
    def test_the_timeline_is_the_steps_own_memory(self):
        import numpy
        timeline = bs.schedule("zb-h1", pp=4, m=8).simulate(p2p=0.3).timeline
        self.assertTrue(numpy.shares_memory(timeline.start, timeline.start))
        self.assertFalse(timeline.start.flags.writeable)
        self.assertEqual([op.end for op in timeline], timeline.end.tolist())
        kinds = [timeline.kinds[kind] for kind in timeline.kind]
        for op, stage, kind, microbatch in zip(timeline.ops, timeline.stage, kinds, timeline.microbatch, strict=True):
            self.assertEqual(op, f"{stage}{kind}{microbatch}")

    def test_arrays_outlive_the_report(self):
        start = bs.schedule("gpipe", pp=2, m=2).simulate().timeline.start
        bs.schedule("1f1b", pp=8, m=64).simulate()
        self.assertEqual(start.tolist()[:2], [0, 1_000_000])

    def test_scenarios_equal_single_simulations(self):
        import numpy
        random = numpy.random.default_rng(1)
        for name in ("1f1b", "zb-v", "interleaved", "dualpipev"):
            schedule = bs.schedule(name, pp=4, m=8)
            f, i, w, p2p = random.uniform(0.1, 9, (4, 37))
            many = schedule.simulate_many(f=f, i=i, w=w, p2p=p2p)
            for at in range(0, 37, 5):
                one = schedule.simulate(f=f[at], i=i[at], w=w[at], p2p=p2p[at]).makespan
                self.assertEqual(many[at], one)

    def test_scenarios_may_cost_every_stage_on_its_own(self):
        import numpy
        random = numpy.random.default_rng(2)
        f = random.uniform(1, 9, (20, 4)).round(3)
        many = bs.schedule("zb-h1", pp=4, m=8).simulate_many(f=f, i=2, w=1)
        for at in (0, 17, 19):
            stages = [{"forward": f[at, stage], "input_grad": 2, "weight_grad": 1} for stage in range(4)]
            costs = {"format": "bubblescope-costs/1", "stages": stages}
            self.assertEqual(many[at], bs.schedule("zb-h1", pp=4, m=8).simulate(costs=costs).makespan)

    def test_wrong_scenarios_are_refused(self):
        schedule = bs.schedule("1f1b", pp=4, m=8)
        for costs, message in (({"f": [1, 2], "i": [1]}, "as many"), ({"f": [-1.0]}, "not a duration"),
                               ({"f": [float("nan")]}, "not a duration"), ({"f": [[1.0] * 3]}, "has 4 stages"),
                               ({"copy": [1, 2]}, "cannot vary"), ({"f": 1}, "no cost varies"),
                               ({"f": [1], "model": "llama3-8b"}, "one by one")):
            with self.subTest(costs=costs), self.assertRaisesRegex(bs.UsageError, message):
                schedule.simulate_many(**costs)


@unittest.skipUnless(have("pandas"), "pandas is not installed")
class Frames(unittest.TestCase):
    def test_the_timeline_is_that_of_the_program(self):
        import pandas
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.csv")
            run_program("simulate", "zb-h1", "--pp=4", "-m", "8", "--p2p=0.3", f"--timeline={path}")
            expected = pandas.read_csv(path)
        frame = bs.schedule("zb-h1", pp=4, m=8).simulate(p2p=0.3).timeline.df()
        for column in ("rank", "op", "kind", "stage", "microbatch", "start_ns", "end_ns", "slack_ns"):
            self.assertEqual(frame[column].tolist(), expected[column].tolist(), column)
        self.assertEqual(frame.critical.astype(int).tolist(), expected.critical.tolist())
        self.assertEqual(frame.lane.astype(object).where(frame.lane.notna(), None).tolist(),
                         expected.lane.astype(object).where(expected.lane.notna(), None).tolist())

    @unittest.skipUnless(have("pyarrow"), "pyarrow is not installed")
    def test_arrow_reads_the_same_table(self):
        import pyarrow
        timeline = bs.schedule("zb-v", pp=4, m=8).simulate(p2p=0.3).timeline
        table = pyarrow.table(timeline)
        table.validate(full=True)
        frame = timeline.df()
        self.assertEqual(table.column_names, frame.columns.tolist())
        for column in table.column_names:
            expected = frame[column].astype(object).where(frame[column].notna(), None).tolist()
            self.assertEqual(table[column].to_pylist(), expected, column)
        address = table["start_ns"].chunk(0).buffers()[1].address
        self.assertEqual(address, timeline.start.ctypes.data, "the times were copied")
        del timeline, frame
        self.assertEqual(table["start_ns"][0].as_py(), 0)

    def test_plans_searches_and_traces_are_frames(self):
        plan = bs.plan(pp=[2, 4], m=8, schedules=["1f1b", "zb-h1"])
        self.assertEqual(len(plan.df()), len(plan))
        self.assertEqual(plan.best["schedule"], "zb-h1")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.trace.json.gz")
            report = bs.schedule("zb-h1", pp=4, m=8).simulate()
            report.save(path)
            analysis = bs.analyze(path)
            other = pathlib.Path(folder, "sliced.trace.json")
            bs.simulate("seq1f1b", pp=2, m=2, slices=2).save(other)
            sliced = bs.analyze(other)
            self.assertEqual(analysis.makespan, report.makespan)
            self.assertEqual(analysis.df()[report.df().columns].values.tolist(), report.df().values.tolist())
            ours, theirs = analysis.timeline.df(), report.timeline.df()
            self.assertEqual(ours.columns.tolist(), [*theirs.columns, "rank_rows"])
            self.assertEqual(ours[theirs.columns.drop("lane")].sort_values(["rank", "op"]).values.tolist(),
                             theirs.drop(columns="lane").sort_values(["rank", "op"]).values.tolist())
            self.assertEqual(sliced.timeline.df()["slice"].max(), 1)
            self.assertEqual(analysis.timeline().end_ns.max(), report.makespan)

    def test_noise_and_sensitivity_are_frames(self):
        report = bs.simulate("1f1b", pp=4, m=8, jitter="5%", seeds=30, sensitivity=True)
        frame = report.noise.df()
        self.assertEqual((len(frame), frame.makespan_ns.max()), (30, report.noise.max))
        frame = report.sensitivity.df()
        self.assertEqual(frame[frame["rank"].notna()].longer_ns.tolist(), report.sensitivity.by_rank)
        self.assertEqual(frame[frame.kind == "F"].longer_ns.tolist(), [report.sensitivity.by_kind["F"]])

    def test_no_plan_fits(self):
        self.assertEqual(len(bs.plan(pp=4, m=8, schedules="gpipe", cap=2)), 0)


class Plans(unittest.TestCase):
    def test_a_report_is_the_step_of_its_plan(self):
        stage = {"forward": 10, "input_grad": 10, "weight_grad": 9}
        costs = {"format": "bubblescope-costs/1", "stages": [stage] * 4}
        asked = {"pp": 4, "m": [8, 16], "schedules": "1f1b,zb-h1"}
        for options in ({**asked, "costs": costs}, {**asked, "total_f": 40, "total_i": 41, "total_w": 30},
                        {"model": "llama3-8b", "gpus": 8, "global_batch_size": 64, "schedules": "1f1b,zb-v",
                         "assume": {"launch_blocking": 1, "launch_us": 5}}):
            plan = bs.plan(**options)
            self.assertGreater(len(plan), 2)
            for at in range(3):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    report = plan.report(at)
                self.assertEqual(report.schedule.name, plan[at]["schedule"])
                self.assertEqual("--costs costs " in plan[at]["command"], "costs" in options)
                self.assertEqual(report.json.get("step_ns", report.makespan), plan[at]["step_ns"])

    def test_a_report_speaks_of_what_was_asked_for(self):
        for options in ({"total_f": 80, "total_b": 161}, {"total_f": 80, "total_b": 160, "total_i": 70},
                        {"total_f": 81, "total_i": 80, "total_w": 70, "cap": 30}, {"f": 3}, {"f": 3, "b": 7}, {}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plan = bs.plan(pp=[3, 4], m=12, **options)
            for at in range(len(plan)):
                with self.subTest(options=options, at=at), warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    self.assertEqual(plan.report(at).makespan, plan[at]["step_ns"], plan[at]["command"])
                    for message in (str(each.message) for each in caught if "changes nothing" in str(each.message)):
                        spoken = message.split()[0]
                        self.assertTrue({spoken, f"total_{spoken}"} & set(options), message)

    def test_shards_are_merged_and_not_made(self):
        asked = ["--pp=2,4", "--microbatches=8", "--schedules=1f1b,zb-h1"]
        with tempfile.TemporaryDirectory() as folder:
            for shard in ("1/2", "2/2"):
                subprocess.run([PROGRAM, "plan", *asked, f"--shard={shard}"], cwd=folder, check=True,
                               capture_output=True)
            merged = bs.plan(merge=sorted(pathlib.Path(folder).iterdir()))
        self.assertEqual(merged.plans, bs.plan(pp=[2, 4], m=8, schedules="1f1b,zb-h1").plans)
        with self.assertRaisesRegex(bs.UsageError, "^shard: one part of a plan is no plan"):
            bs.plan(pp=4, m=8, shard="1/2")

    def test_there_is_no_report_where_no_plan_fits(self):
        with self.assertRaisesRegex(bs.ProblemError, "no configuration fits"):
            bs.plan(pp=4, m=8, schedules="gpipe", cap=2).report()
        with self.assertRaisesRegex(IndexError, "the plan has 1 configuration, and none at 3"):
            bs.plan(pp=4, m=8, schedules="gpipe").report(3)
        with self.assertRaisesRegex(KeyError, "'zb' is none of 1f1b, zb-v"):
            bs.compare("1f1b,zb-v", pp=4, m=8)["zb"]


class Measured(unittest.TestCase):
    """Numbers of reports and analyses have the same names, and the same values where a trace is that of a simulation."""

    def both(self, name, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.trace.json")
            report = bs.simulate(name, pp=4, m=8, f=10, i=11, w=9, p2p=0.4, **options)
            report.save(path)
            analysis = bs.analyze(path)
            analysis.schedule, analysis.timeline.csv()  # read the trace
            return report, analysis

    def test_names_and_values_are_the_same(self):
        numbers = ("name", "makespan", "step", "max_span", "ideal", "lower_bound", "period")
        for name in ("1f1b", "zb-h1", "zb-v"):
            report, analysis = self.both(name)
            for number in numbers:
                self.assertEqual(getattr(analysis, number), getattr(report, number), number)
            for number in ("ratio", "overhead", "span_rate", "time"):
                self.assertAlmostEqual(getattr(analysis.bubble, number), getattr(report.bubble, number), 5)
            self.assertEqual(analysis.bubble["ratio"], analysis.bubble.ratio)
            public = [number for number in dir(report.ranks[0]) if not number.startswith("_")]
            self.assertGreater(len(public), 10)
            for ours, theirs in zip(analysis.ranks, report.ranks, strict=True):
                for number in public:
                    self.assertEqual(getattr(ours, number), getattr(theirs, number), number)
            self.assertEqual(analysis.critical_path[-1].end, report.critical_path[-1].end)
            self.assertEqual(analysis.schedule, report.schedule)
            self.assertEqual(analysis.schedule.simulate(f=3).makespan, bs.simulate(name, pp=4, m=8, f=3).makespan)
            if have("numpy"):
                self.assertEqual(sorted(analysis.timeline), sorted(report.timeline))
                self.assertEqual(analysis.timeline[0:1], [analysis.timeline[0]])

    def test_an_analysis_has_what_a_report_has(self):
        report, analysis = self.both("1f1b")
        of_predictions = {"noise", "sensitivity", "plot", "problems"}
        public = {name for name in dir(report) if not name.startswith("_")}
        self.assertEqual({name for name in public if not hasattr(analysis, name)}, of_predictions)

    def test_the_text_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.trace.json")
            bs.simulate("1f1b", pp=4, m=8).save(path)
            self.assertEqual(str(bs.analyze(path)), run_program("analyze", path).stdout)

    def test_a_timeline_says_how_many_ops_it_has(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.trace.json"
            bs.simulate("1f1b", pp=2, m=2).save(path)
            with self.assertRaisesRegex(IndexError, "^the timeline has [0-9]+ ops and messages, and none at 999"):
                bs.analyze(path).timeline[999]

    def test_a_rank_without_a_trace_has_no_numbers(self):
        missing = bs.measured.MeasuredRank({**dict.fromkeys(
            ("busy_ns", "idle_ns", "first_start_ns", "last_end_ns", "sends", "peak_chunks", "peak_activations", "peak_units",
             "busy_by_kind_ns", "idle_by_cause_ns")), "rank": 1, "recorded": False})
        self.assertIsNone(missing.busy)
        self.assertEqual(bs.reports.row_of_rank(1, missing)["busy_ns"], None)

    def test_noise_and_sensitivity_are_those_of_json(self):
        report = bs.simulate("1f1b", pp=4, m=8, jitter="5%", seeds=30, sensitivity=True)
        found = report.json["noise"]
        self.assertEqual([getattr(report.noise, name) for name in ("p5", "p50", "p95", "mean", "min", "max")],
                         [found[f"{name}_ns"] for name in ("p5", "p50", "p95", "mean", "min", "max")])
        self.assertEqual((len(report.noise.makespans), min(report.noise.makespans)), (found["seeds"], report.noise.min))
        self.assertEqual(list(report.sensitivity), [report.json["sensitivity"][key] for key in ("more", "by_rank_ns", "by_kind_ns")])
        plain = bs.simulate("1f1b", pp=4, m=8)
        self.assertEqual((plain.noise, plain.sensitivity), (None, None))


class Search(unittest.TestCase):
    def test_it_finds_what_it_proves(self):
        found = bs.search(pp=4, m=6, cap=4)
        self.assertLessEqual(found.bound, found.value)
        self.assertEqual(found.report.makespan, found.value)
        self.assertTrue(found.schedule.check(cap=4))


class Pictures(unittest.TestCase):
    def test_files_are_those_of_their_ending(self):
        report = bs.schedule("1f1b", pp=2, m=2).simulate()
        with tempfile.TemporaryDirectory() as folder:
            for name, start in (("a.svg", b"<"), ("a.html", b"<!"), ("a.csv", b"rank,"), ("a.json", b"{"),
                                ("a.trace.json", b"{"), ("a.dot", b"digraph"), ("a.svg.gz", b"\x1f\x8b")):
                path = pathlib.Path(folder, name)
                report.save(path)
                self.assertTrue(path.read_bytes().lstrip().startswith(start), name)
            with self.assertRaisesRegex(bs.UsageError, "no format has this ending"):
                report.save(pathlib.Path(folder, "a.doc"))

    def test_a_notebook_shows_the_page(self):
        shown = bs.schedule("1f1b", pp=2, m=2).simulate()._repr_html_()
        self.assertTrue(shown.startswith("<iframe srcdoc="))
        self.assertIn("1f1b", shown)
        large = bs.schedule("1f1b", pp=16, m=512).simulate()._repr_html_()
        self.assertLess(len(large), 1000)

    @unittest.skipUnless(have("matplotlib"), "matplotlib is not installed")
    def test_pictures_are_the_figure(self):
        report = bs.schedule("1f1b", pp=2, m=2).simulate()
        with tempfile.TemporaryDirectory() as folder:
            for name, start in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")):
                path = pathlib.Path(folder, name)
                report.save(path)
                self.assertTrue(path.read_bytes().startswith(start), name)

    @unittest.skipUnless(have("matplotlib"), "matplotlib is not installed")
    def test_the_plot_has_an_op_at_its_place(self):
        figure = bs.schedule("1f1b", pp=2, m=2).simulate().plot()
        spans = [path.get_extents() for each in figure.axes[0].collections for path in each.get_paths()]
        self.assertEqual(len(spans), 8)  # ops, without messages
        self.assertAlmostEqual(max(span.x1 for span in spans), 9)


class Process(unittest.TestCase):
    def test_nothing_optional_is_imported(self):
        script = ("import sys, bubblescope as bs; bs.schedule('1f1b', pp=4, m=8).simulate().bubble.ratio; "
                  "bs.compare('1f1b,zb-h1', pp=4, m=8); "
                  "print([m for m in ('numpy', 'pandas', 'matplotlib', 'torch') if m in sys.modules])")
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(ast.literal_eval(done.stdout), [])

    def test_other_threads_run_meanwhile(self):
        ran = []
        thread = threading.Thread(target=lambda: ran.append(bs.schedule("1f1b", pp=32, m=512).simulate().makespan))
        thread.start()
        bs.schedule("zb-h1", pp=32, m=512).simulate()
        thread.join()
        self.assertEqual(ran, [(512 + 31) * 3_000_000])

    def test_an_interrupt_ends_a_plan(self):
        script = ("import bubblescope as bs, signal\n"
                  "signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it\n"
                  "print('ready', flush=True)\n"
                  "try:\n  bs.plan(pp='2..64', m='8..512:8', threads=1)\n"
                  "except KeyboardInterrupt:\n  print('interrupted')")
        process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        timer = threading.Timer(0.5, lambda: process.send_signal(signal.SIGINT))
        timer.start()
        self.assertEqual(process.communicate(timeout=60)[0], "interrupted\n")

    def test_names_are_listed(self):
        self.assertLessEqual(set(bs.__all__) | {"torch"}, set(dir(bs)))
        self.assertNotIn("annotations", dir(bs))

    def test_the_module_runs_the_program(self):
        done = subprocess.run([sys.executable, "-m", "bubblescope", "--version"], capture_output=True, text=True,
                              check=True)
        self.assertEqual(done.stdout, f"bubblescope {bs.__version__}\n")


if __name__ == "__main__":
    unittest.main()

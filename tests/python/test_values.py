"""Schedules and reports as values: copied, pickled, compared; and what empty results say."""
import ast
import copy
import multiprocessing
import pathlib
import pickle
import tempfile
import unittest
import warnings

from optional_packages import have

import bubblescope as bs

COPIES = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "deepcopy": copy.deepcopy, "copy": copy.copy}
OWN = ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]


def same_schedule(case, one, other):
    case.assertEqual(one, other)
    case.assertEqual(one._order, other._order)
    case.assertEqual((one.name, one.rows, one.rank_of_stage, one.is_legal, one._options, one._named),
                     (other.name, other.rows, other.rank_of_stage, other.is_legal, other._options, other._named))


class Copies(unittest.TestCase):
    def test_schedules_come_back(self):
        made = [bs.Schedule(OWN, name="mine"), bs.Schedule(["0F0 0B0 0F1 0B1", "1F1 1B1 1F0 1B0"]),
                bs.Schedule(["0F0 0B0", "1B0 1F0"]), bs.schedule("1f1b", pp=2, m=4, f=3, p2p="20us"),
                bs.schedule("zb-v", pp=4, m=8, profile="pytorch-2.15"), bs.schedule(lambda pp, m: OWN, pp=2, m=2, f=4)]
        for name in bs.schedules():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    made.append(bs.schedule(name, pp=4, m=8))
                except bs.Error:
                    continue
        for schedule in made:
            for way, copied in COPIES.items():
                with self.subTest(schedule=schedule, way=way):
                    same_schedule(self, copied(schedule), schedule)

    def test_a_copy_keeps_its_options(self):
        schedule = bs.schedule("zb-auto", pp=4, m=8, f=3, cap=5)
        again = pickle.loads(pickle.dumps(schedule))
        self.assertEqual(again.simulate().json, schedule.simulate().json)
        self.assertEqual(again.simulate(f=1, i=4, w=4).json, schedule.simulate(f=1, i=4, w=4).json)

    def test_a_copy_of_a_file_with_times_asks_for_costs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.json")
            bs.schedule("1f1b", pp=2, m=2).simulate(f=7).save(path)
            again = pickle.loads(pickle.dumps(bs.read(path)))
        with self.assertRaisesRegex(bs.UsageError, "step.json"):
            again.simulate()

    def test_reports_come_back(self):
        costs = {"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 2}] * 4}
        reports = [bs.Schedule(OWN).simulate(f=3), bs.simulate("zb-v", pp=4, m=8, p2p=.2, jitter="5%", seeds=9),
                   bs.simulate("zb-auto", pp=4, m=8, f=2, cap=6), bs.simulate("1f1b", pp=4, m=400),
                   bs.simulate("1f1b", pp=4, m=8, costs=costs), *bs.compare("1f1b,zb-h1", pp=4, m=8, f=2)]
        for report in reports:
            for way, copied in COPIES.items():
                with self.subTest(report=report, way=way):
                    again = copied(report)
                    self.assertEqual(again.json, report.json)
                    self.assertEqual((again.bubble, again.ranks), (report.bubble, report.ranks))
                    self.assertEqual(again.schedule, report.schedule)

    def test_values_of_reports_come_back(self):
        entry = {"forward": 1, "backward": 2, "activation_bytes": {"saved": 3}, "weight_bytes": 7}
        costs = {"format": "bubblescope-costs/1", "stages": [entry] * 4}
        reports = [bs.simulate("zb-h1", pp=4, m=8), bs.simulate("zb-v", pp=4, m=8, p2p=.2),
                   bs.simulate("1f1b", pp=4, m=8, costs=costs, send_budget=1),
                   bs.simulate("pipedream", pp=4, m=8, costs=costs)]
        for report in reports:
            for value in (report.bubble, *report.ranks):
                for way, copied in COPIES.items():
                    with self.subTest(report=report, value=value, way=way):
                        again = copied(value)
                        self.assertIsNot(again, value)
                        self.assertEqual(again, value)
                        self.assertEqual(repr(again), repr(value))

    @unittest.skipUnless(have("numpy"), "numpy is not installed")
    def test_timelines_come_back(self):
        timeline = bs.schedule("zb-h1", pp=4, m=8).simulate(p2p=0.3).timeline
        self.assertEqual(list(pickle.loads(pickle.dumps(timeline))), list(timeline))
        self.assertEqual(timeline[0:2], [timeline[0], timeline[1]])
        self.assertEqual(timeline[-1:], [timeline[len(timeline) - 1]])

    def test_processes_simulate(self):
        schedules = [bs.schedule("1f1b", pp=2, m=m) for m in (2, 4)]
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            reports = pool.map(bs.Schedule.simulate, schedules)
        self.assertEqual([report.makespan for report in reports], [9_000_000, 15_000_000])


class Equality(unittest.TestCase):
    def test_numbers_of_a_report_compare_by_value(self):
        one, same, other = (bs.schedule("1f1b", pp=2, m=4).simulate(f=f) for f in (1, 1, 2))
        self.assertEqual(one.bubble, one.bubble)
        self.assertEqual(one.bubble, same.bubble)
        self.assertEqual(hash(one.bubble), hash(same.bubble))
        self.assertNotEqual(one.bubble, other.bubble)
        self.assertNotEqual(one.bubble, 3)
        self.assertEqual(one.ranks, same.ranks)
        self.assertEqual(hash(one.ranks[0]), hash(same.ranks[0]))
        self.assertNotEqual(one.ranks[0], one.ranks[1])
        self.assertNotEqual(one.ranks[0], None)


class Shapes(unittest.TestCase):
    def test_a_schedule_keeps_its_shape(self):
        for schedule in (bs.schedule("zb-h1", pp=4, m=8), bs.schedule("zb-auto", pp=4, m=8), bs.Schedule(
                bs.schedule("zb-h1", pp=4, m=8).rows, name="zb-h1")):
            for keyword, value, has in (("pp", 8, "4 ranks"), ("m", 4, "8 micro-batches"), ("vpp", 2, "1 chunk per rank")):
                for call in (schedule.simulate, lambda **shape: bs.simulate(schedule, **shape),
                             lambda **shape: bs.schedule(schedule, **shape)):
                    with self.assertRaisesRegex(bs.UsageError, f"has {has}, not {value}; leave {keyword} out"):
                        call(**{keyword: value})
            self.assertEqual(schedule.simulate(pp=4, m=8).schedule.pp, 4)

    def test_options_hold_for_a_schedule_that_is_given(self):
        schedule = bs.schedule("1f1b", pp=2, m=2)
        expected = schedule.simulate(f=5).makespan
        self.assertEqual(bs.simulate(schedule, f=5).makespan, expected)
        self.assertEqual(bs.schedule(schedule, f=5).simulate().makespan, expected)
        self.assertEqual(bs.compare([schedule, "1f1b"], pp=2, m=2, f=5)[0].makespan, expected)
        self.assertEqual(bs.check(schedule, cap=1).over_cap, schedule.check(cap=1).over_cap)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "mine.csv")
            schedule.save(path, "pytorch-csv")
            self.assertEqual(bs.simulate(path, f=5).makespan, expected)

    def test_options_of_steps_do_not_hinder_checks_and_files(self):
        for options in ({"policy": "ready"}, {"jitter": "5%"}, {"model": "llama3-8b"}, {"send_budget": 2, "f": 3}):
            schedule = bs.schedule("1f1b", pp=2, m=2, **options)
            self.assertTrue(schedule.check().legal)
            self.assertEqual(schedule.convert("pytorch-csv"), bs.schedule("1f1b", pp=2, m=2).convert("pytorch-csv"))
        self.assertFalse(bs.schedule("1f1b", pp=2, m=2, cap=1).check())

    def test_a_text_has_a_line_per_rank(self):
        self.assertEqual(bs.Schedule("\n".join(OWN)), bs.Schedule(OWN))
        self.assertEqual(bs.Schedule("0F0 0B0").rows, [["0F0", "0B0"]])
        self.assertEqual(bs.Schedule(OWN, name=None).name, "schedule")
        with self.assertRaisesRegex(bs.UsageError, "^name: int is not a text"):
            bs.Schedule(OWN, name=3)

    def test_a_profile_does_not_reorder_a_list(self):
        schedule = bs.schedule("zb-v", pp=4, m=8)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            profiled = bs.schedule("zb-v", pp=4, m=8, profile="pytorch")
            profiled.convert("pytorch-csv", profile="pytorch")
            schedule.convert("pytorch-csv-comms", profile="pytorch-2.15")
        with self.assertWarnsRegex(UserWarning, "^profile changes nothing: the order of zb-v"):
            schedule.convert("pytorch-csv", profile="pytorch")


class Counts(unittest.TestCase):
    def test_nouns_agree_with_their_numbers(self):
        one = bs.schedule("1f1b", pp=1, m=1)
        self.assertEqual(repr(one), "<Schedule 1f1b: 1 rank, 1 micro-batch>")
        self.assertEqual(repr(bs.schedule("1f1b", pp=2, m=3)), "<Schedule 1f1b: 2 ranks, 3 micro-batches>")
        self.assertRegex(repr(bs.plan(pp=2, m=2, schedules="1f1b")), "^<Plan: 1 configuration, ")
        self.assertRegex(repr(bs.schedule("forward-only", pp=1, m=1).simulate().timeline), ": 1 op>$")
        self.assertRegex(repr(one.simulate().timeline), ": 2 ops and messages>$")

    def test_plurals_are_written_where_the_number_is_known(self):
        nouns = "chunk|configuration|iteration|loss|message|micro-batch|op|problem|rank|row|schedule|slice|stage|step|stream"
        found = 0
        for path in pathlib.Path(bs.__file__).parent.glob("*.py"):
            tree = ast.parse(path.read_text())
            found += path.read_text().count("counted(")
            chosen = {part for node in ast.walk(tree) if isinstance(node, ast.IfExp) for part in (node.body, node.orelse)}
            for node in ast.walk(tree):
                parts = node.values if isinstance(node, ast.JoinedStr) and node not in chosen else []
                for value, text in zip(parts, parts[1:]):
                    if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                        self.assertNotRegex(text.value, f"^ (equal )?({nouns})e?s", f"{path.name}:{node.lineno}: use counted()")
        self.assertGreater(found, 5)


class Empty(unittest.TestCase):
    def test_wrong_options_are_no_refusals(self):
        for options in ({"p2pp": 3}, {"f": "ten"}, {"pp": 0}, {"m": 0}, {"pp": None}, {"m": None}):
            with self.subTest(options=options), self.assertRaises(bs.UsageError):
                bs.compare("1f1b,zb-h1", **{"pp": 4, "m": 8, **options})

    def test_empty_results_say_why(self):
        for none in ([], "", ","):
            with self.assertRaisesRegex(bs.UsageError, "compare needs schedules"):
                bs.compare(none, pp=4, m=8)
        compared = bs.compare("chimera", pp=3, m=4)
        self.assertIn("chimera", repr(compared))
        with self.assertRaisesRegex(bs.ProblemError, "^chimera: "):
            compared.best
        plan = bs.plan(pp=4, m=8, schedules="gpipe", cap=2)
        with self.assertRaisesRegex(bs.ProblemError, "no configuration fits: gpipe: rank 0 holds 8 at its peak, over cap 2"):
            plan.best

    def test_a_check_says_what_is_over_its_cap(self):
        found = bs.schedule("1f1b", pp=4, m=8).check(cap=1)
        self.assertFalse(found)
        self.assertIn("legal, cannot deadlock, over its cap on 3 ranks: rank 0 holds", repr(found))
        self.assertNotIn("over", repr(bs.schedule("1f1b", pp=4, m=8).check(cap=4)))


if __name__ == "__main__":
    unittest.main()

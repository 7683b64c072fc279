"""Wrong calls end in exceptions of ours, in Python's words; what numpy, pandas and pathlib give is taken."""
import os
import pathlib
import pickle
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from optional_packages import have

import bubblescope as bs

NAN, HUGE, LONE = float("nan"), 10**400, "\udcff"  # the last is what os.listdir() returns for a byte that is no text
SHAPE = {"pp": 2, "m": 4}
INTERNAL = ("std::", "incompatible function arguments", "_core", "basic_string", "vector", "nanobind")


class Given(unittest.TestCase):
    """A schedule, its report and a trace of it, in a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.simplefilter("ignore")
        self.schedule = bs.schedule("1f1b", **SHAPE)
        self.report = self.schedule.simulate()
        self.report.save("run.trace.json")
        self.analysis = bs.analyze("run.trace.json")

    def refuse(self, error, call, *words, **options):
        with self.subTest(call=getattr(call, "__qualname__", call), words=ascii(words), options=ascii(options)):
            with self.assertRaises(error) as raised:
                call(*words, **options)
            for internal in INTERNAL:
                self.assertNotIn(internal, str(raised.exception))

    def refuse_each(self, error, call, values, **options):
        for value in values:
            self.refuse(error, call, value, **options)


class Types(Given):
    def test_other_types_than_texts_paths_and_schedules(self):
        wrong = bs.errors.WrongTypeError
        self.assertTrue(issubclass(wrong, bs.UsageError) and issubclass(wrong, TypeError))
        for call in (bs.read, bs.analyze, self.schedule.save, self.report.save, self.analysis.save):
            self.refuse_each(wrong, call, (5, None, b"x.svg", 1.5))
        self.refuse_each(wrong, bs.Schedule, (5, None, b"0F0 0B0", {}, [[1, 2]], [None], [b"0F0 0B0"], pathlib.Path("x.csv")))
        for call in (bs.schedule, bs.simulate, bs.check, bs.compare):
            self.refuse_each(wrong, call, (5, None, b"1f1b"), **SHAPE)
        self.refuse_each(wrong, bs.compare, ([5], [self.schedule, None], {"1f1b": 1}, [["0F0"]]), **SHAPE)
        self.refuse_each(wrong, self.analysis.try_, (5, None, b"gpipe", {"gpipe": 1}))
        self.refuse_each(wrong, self.schedule.convert, (5, None, b"text"))
        self.refuse(wrong, self.report.save, "x.svg", 5)
        self.refuse(wrong, bs.Schedule, ["0F0 0B0"], name=3)
        self.refuse_each(wrong, bs.schedule, (lambda pp, m: 5, lambda pp, m: None), **SHAPE)

    def test_texts_that_no_file_can_hold(self):
        for text in (LONE, "a\0b"):
            for call in (bs.read, bs.analyze, bs.Schedule, bs.schedule, bs.check, bs.compare, self.schedule.save,
                         self.schedule.convert, self.report.save, self.analysis.save, self.analysis.try_):
                self.refuse(bs.UsageError, call, text)
            self.refuse(bs.UsageError, bs.simulate, "1f1b", **SHAPE, f=text)
            self.refuse(bs.UsageError, bs.simulate, "1f1b", **SHAPE, **{text: 3})
            self.refuse(bs.UsageError, bs.Schedule, ["0F0 0B0"], name=text)
            self.refuse(bs.UsageError, bs.analyze, [pathlib.Path(text)])

    def test_numbers_that_no_option_has(self):
        for value in (NAN, float("inf"), -1, 0, 1.5, 10**30, HUGE, "four", "٤", 1j, [2, 4], {"a": 1}):
            self.refuse(bs.UsageError, bs.simulate, "1f1b", pp=value, m=4)
            self.refuse(bs.UsageError, bs.plan, model="llama3-8b", gpus=value)
        for value in (NAN, float("inf"), -1, 1e300, HUGE, "x", 1j, [1, 2, 3]):
            self.refuse(bs.UsageError, self.schedule.simulate, f=value)
            self.refuse(bs.UsageError, bs.search, **SHAPE, f=value)
            self.refuse(bs.UsageError, self.analysis.try_, "gpipe", split_b=value)
        self.refuse(bs.Error, bs.schedule, "1f1b", pp=65536, m=65536)

    def test_positions(self):
        if not have("numpy"):
            self.skipTest("numpy is not installed")
        self.refuse(TypeError, self.report.timeline.__getitem__, "x")
        self.refuse(TypeError, self.report.timeline.__getitem__, 1.5)
        self.refuse_each(IndexError, self.report.timeline.__getitem__, (10**9, -(10**9), 10**30))
        self.refuse_each(bs.UsageError, lambda costs: self.schedule.simulate(costs=costs), ([{"forward": 1}], 5, b"x"))

    def test_examples_are_calls(self):
        with self.assertRaisesRegex(bs.UsageError, r"for example bs\.search\(pp=4, m=8\)$"):
            bs.search()

    def test_files_that_cannot_be_read_or_written(self):
        self.refuse_each(bs.UsageError, bs.read, ("", "gone.csv", os.curdir, "run.trace.json"))
        self.refuse_each(bs.UsageError, bs.analyze, ("", [], "gone", [""]))
        for call in (self.schedule.save, self.analysis.save):
            self.refuse_each(bs.Error, call, ("", "gone/x.svg", os.curdir))
        self.refuse_each(bs.Error, self.report.save, ("", "x", "x.doc", "gone/x.svg", "gone/x.png" if have("matplotlib") else "x", "run.svg/"))
        self.refuse(bs.UsageError, self.report.save, "x.svg", "nope")
        self.assertEqual(os.listdir(), ["run.trace.json"])

    @unittest.skipUnless(have("matplotlib"), "matplotlib is not installed")
    def test_widths_of_figures(self):
        self.refuse_each(bs.UsageError, self.report.plot, ("x", None, -1, 0, NAN, 1e9, HUGE))
        self.assertEqual(self.report.plot(3).get_size_inches()[0], 3)


@unittest.skipUnless(have("numpy"), "numpy is not installed")
class Numbers(Given):
    def test_scenarios_that_are_no_numbers(self):
        import numpy

        for value in ([[]], numpy.zeros((3, 0)), numpy.zeros((2, 2, 1)), ["a", "b"], [[1], [2, 3]],
                      [None], [1j], [True], [HUGE], [1e30], numpy.array([3], "m8[ms]"),
                      numpy.ma.array([1.0, 2.0], mask=[False, True]), {"a": 1}):
            self.refuse(bs.UsageError, self.schedule.simulate_many, f=value)

    def test_numbers_of_other_packages_are_numbers(self):
        import numpy

        expected = bs.simulate("1f1b", pp=2, m=4, f=2.5).makespan
        for number in (numpy.int64, numpy.uint8, numpy.array):
            self.assertEqual(bs.simulate("1f1b", pp=number(2), m=number(4), f=numpy.float32(2.5)).makespan, expected)
        for name in (numpy.str_("1f1b"), numpy.array(["1f1b"])):
            compared = bs.compare(name, pp=2, m=4, f=2.5)
            self.assertEqual(compared[numpy.int64(0)].makespan, expected)
        self.assertEqual(bs.Schedule(numpy.array([["0F0", "0B0"], ["1F0", "1B0"]])).rows, [["0F0", "0B0"], ["1F0", "1B0"]])
        timeline = self.report.timeline
        self.assertEqual(timeline[numpy.int64(1)], timeline[1])
        self.assertEqual([row["microbatches"] for row in self.analysis.try_("gpipe", m=numpy.array([4, 8]))][1:], [4, 8])
        self.assertEqual(self.analysis.try_("gpipe", m=numpy.int64(8)).best["microbatches"], 8)
        costs = {"format": "bubblescope-costs/1", "stages": [{"forward": numpy.float32(1), "backward": numpy.int64(2)}] * 2}
        self.assertEqual(bs.simulate("1f1b", **SHAPE, costs=costs).makespan, self.report.makespan)

    @unittest.skipUnless(have("pandas"), "pandas is not installed")
    def test_columns_of_frames_are_arrays(self):
        import pandas

        frame = pandas.DataFrame({"f": [1.0, 2.0], "name": ["1f1b", "gpipe"], "m": [4, 8]})
        many = self.schedule.simulate_many(f=frame.f).tolist()
        self.assertEqual(many, self.schedule.simulate_many(f=[1, 2]).tolist())
        self.assertEqual([each.name for each in bs.compare(frame.name, **SHAPE)], ["1f1b", "gpipe"])
        self.assertEqual({each["microbatches"] for each in bs.plan(pp=2, m=frame.m, schedules=frame.name)}, {4, 8})
        self.refuse(bs.UsageError, self.schedule.simulate_many, f=pandas.Series([1.0, None]))
        self.refuse(bs.UsageError, self.schedule.simulate, f=pandas.NA)


class Packages(Given):
    def test_what_is_not_installed_is_named(self):
        calls = {"pandas": [self.report.df, self.analysis.df, bs.compare("1f1b", **SHAPE).df, bs.plan(**SHAPE).df],
                 "matplotlib": [self.report.plot], "numpy": [lambda: self.schedule.simulate_many(f=[1])]}
        for package, missing in calls.items():
            if package == "matplotlib" and not have("numpy"):
                continue
            # Python's importer treats a name that stands for None as not found.
            hidden = {name: None for name in [package, *sys.modules] if name.partition(".")[0] == package}
            with mock.patch.dict(sys.modules, hidden):
                sys.modules.pop("bubblescope._figure", None)
                for call in missing:
                    with self.assertRaisesRegex(bs.errors.MissingPackageError, f"needs {package}; .*pip install {package}"):
                        call()


class Files(Given):
    def test_names_may_be_in_any_script(self):
        path = pathlib.Path("schéma-схема-図.csv")
        self.schedule.save(path, "pytorch-csv")
        self.assertEqual(bs.read(path).rows, self.schedule.rows)
        self.assertEqual(bs.Schedule(self.schedule.rows, name="схема").simulate().name, "схема")
        self.report.save("図.svg")
        self.assertTrue(pathlib.Path("図.svg").is_file())

    def test_limits_of_files_are_those_of_a_call(self):
        with self.assertRaisesRegex(bs.UsageError, "which is the limit; max_input SIZE raises it"):
            bs.analyze("run.trace.json", max_input="1KiB")
        self.assertEqual(bs.analyze("run.trace.json", max_input="1MiB").makespan, self.report.makespan)
        self.assertEqual(bs.analyze("run.trace.json").makespan, self.report.makespan)
        with self.assertRaisesRegex(bs.UsageError, "^max_input needs a size"):
            bs.analyze("run.trace.json", max_input=True)


@unittest.skipUnless(have("matplotlib"), "matplotlib is not installed")
class Figures(Given):
    def test_a_notebook_shows_a_figure_without_pyplot(self):
        figure = self.report.plot()
        self.assertTrue(figure._repr_png_().startswith(b"\x89PNG"))
        self.assertTrue(pickle.loads(pickle.dumps(figure))._repr_png_().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()

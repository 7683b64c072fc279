"""Keyword arguments: each becomes one argument of the program, and wrong ones are refused by their own names."""
import os
import pathlib
import re
import subprocess
import sysconfig
import tempfile
import unittest
import warnings

import bubblescope as bs

PROGRAM = pathlib.Path(sysconfig.get_path("scripts"), "bubblescope")


def flags_of(command):
    """The flags of a command, from its help."""
    printed = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (?:-\w,)?--([a-z0-9-]+)", printed, re.MULTILINE)


class Values(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def refuse(self, message, call, *words, **options):
        with self.assertRaisesRegex(bs.UsageError, message):
            call(*words, **options)
        self.assertEqual(os.listdir(), [])

    def test_no_flag_takes_the_next_one_for_its_value(self):
        for empty in (True, [], "", ()):
            self.refuse("^svg needs a value", bs.plan, pp=2, m=2, schedules="1f1b", svg=empty, cap=.1)
            self.refuse("^pp needs a value", bs.schedule, "1f1b", pp=empty, m=2)
            self.refuse("^m needs a value", bs.schedule, "1f1b", pp=2, m=empty, f=3)
            self.refuse("^assume needs a value", bs.simulate, "1f1b", pp=2, m=2, assume=empty, f=5)
            self.refuse("^cap needs a value", bs.check, "1f1b", pp=2, m=2, cap=empty, f=5)
            self.refuse("^cap needs a value", bs.search, pp=2, m=2, cap=empty, f=5)
            self.refuse("^schedules needs a value", bs.plan, pp=2, m=2, schedules=empty, f=5)
        self.refuse("^pp needs a value", bs.plan, pp=[], m=[])

    def test_no_file_is_named_like_a_flag(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "q.trace.json")
            bs.schedule("1f1b", pp=2, m=2).simulate().save(path)
            self.refuse("^save needs a value", bs.analyze, path, save=True, steps=5)

    def test_flags_without_a_value_are_set(self):
        self.assertTrue(bs.simulate("1f1b", pp=2, m=2, sensitivity=True, f=3).json["sensitivity"])
        self.assertNotIn("sensitivity", bs.simulate("1f1b", pp=2, m=2, sensitivity=False, f=3).json)

        self.refuse("^fsdp: 'yes' is a text", bs.simulate, "1f1b", pp=2, m=2, fsdp="yes")
        self.refuse("^fsdp takes no value", bs.simulate, "1f1b", pp=2, m=2, fsdp=[])

    def test_help_is_asked_of_python(self):
        for call, words in ((bs.plan, ()), (bs.search, ()), (bs.analyze, ("x",)), (bs.check, ("1f1b",)),
                            (bs.simulate, ("1f1b",)), (bs.schedule, ("1f1b",)), (bs.compare, ("1f1b",))):
            self.refuse(r"help\(bubblescope", call, *words, pp=2, m=2, help=True)
        self.refuse("^no schedule is called", bs.check, "--help")
        self.refuse("--help", bs.analyze, "--help")

    def test_other_types_are_refused(self):
        self.refuse("^f: bytes is not a type of a value", bs.simulate, "1f1b", pp=2, m=2, f=b"10")
        self.refuse("^f: function is not a type", bs.simulate, "1f1b", pp=2, m=2, f=flags_of)
        for schedules in ([bs.schedule("1f1b", pp=2, m=2)], bs.schedule("1f1b", pp=2, m=2), [flags_of], flags_of):
            self.refuse("^schedules: .* by its name", bs.plan, pp=2, m=2, schedules=schedules)

    def test_errors_have_the_words_of_the_caller(self):
        self.refuse("^no flag is called 'F'", bs.simulate, "1f1b", pp=2, m=2, F=1)
        self.refuse(r"for example bs\.simulate\(\"1f1b\", pp=4, m=8\)", bs.schedule, "1f1b")
        costs = {"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 1}] * 2}
        self.assertEqual(bs.simulate("1f1b", pp=2, m=2, costs=costs).json["made_with"]["costs"], "costs")
        self.refuse("^costs: /stages/1: lacks", bs.simulate, "1f1b", pp=2, m=2,
                    costs={"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 1}, {"forward": 1}]})

    def test_errors_have_the_keyword_that_was_given(self):
        self.refuse(r"^pp: '4\.5' is not a list", bs.plan, pp=[4.5], m=8)
        self.refuse(r"^m: '8\.5' is not a list", bs.plan, pp=4, m=[4, 8.5])
        self.refuse(r"^pp: '4\.5' is not a whole number", bs.schedule, "1f1b", pp=4.5, m=8)
        self.refuse("^top 0 shows no plan", bs.plan, pp=4, m=8, schedules="1f1b", top=0)

    def test_keys_may_have_underscores(self):
        network = {"bytes": "64MiB", "link": 3600, "per_node": 2, "nic": 400}
        text = "bytes=64MiB,link=3600,per-node=2,nic=400"
        self.assertEqual(bs.simulate("1f1b", pp=4, m=4, network=network).makespan,
                         bs.simulate("1f1b", pp=4, m=4, network=text).makespan)

    def test_arrays_are_lists(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        plan = bs.plan(pp=numpy.array([2, 4]), m=numpy.array([4, 8]), schedules="1f1b", f=numpy.float64(2))
        self.assertEqual({(each["pp"], each["microbatches"]) for each in plan}, {(2, 4), (2, 8), (4, 4), (4, 8)})


class Flags(unittest.TestCase):
    FILES = {"dot", "html", "perfetto", "save", "svg", "timeline", "trace"}
    NOT_KEYWORDS = {"help": "help() of Python", "format": "results are values", "fail-if": "results are values",
                    "all-ranks": "of printed text", "wide": "of printed text", "each": "one call per trace"}

    def refused_flags(self, command, call, *words):
        """The flags of a command that a function does not know. An empty value is refused after the name is known."""
        unknown = set()
        for flag in flags_of(command):
            keyword = {"try": "try_"}.get(flag, flag.replace("-", "_"))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(*words, **{"pp": 2, "m": 2, keyword: ""})
            except bs.Error as error:
                if "no flag is called" in str(error) or "is not a keyword here: " in str(error):
                    unknown.add(flag)
        return unknown

    def test_functions_take_the_flags_of_their_commands(self):
        files = {flag for flag in flags_of("simulate") if flag in self.FILES}  # Report.save writes them
        known = set(self.NOT_KEYWORDS) | files
        own = bs.Schedule(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])

        def convert(to="text", **options):
            own.convert(to or "text", **options)

        for call, words in ((bs.simulate, ("1f1b",)), (bs.schedule, ("1f1b",)), (bs.simulate, (own,)),
                            (bs.compare, ("1f1b",))):
            self.assertLessEqual(self.refused_flags("simulate", call, *words), known)
        self.assertLessEqual(self.refused_flags("convert", convert), {"output", *self.NOT_KEYWORDS})
        for call, command, words in ((bs.plan, "plan", ()), (bs.search, "search", ()), (bs.check, "check", ("1f1b",))):
            self.assertLessEqual(self.refused_flags(command, call, *words), {"output", *self.NOT_KEYWORDS})

    def test_a_flag_that_is_no_keyword_is_answered_by_what_does_it(self):
        schedule = bs.schedule("1f1b", pp=2, m=2)
        calls = {"simulate": (bs.simulate, "1f1b"), "check": (bs.check, "1f1b"), "compare": (bs.compare, "1f1b"),
                 "plan": (bs.plan,), "search": (bs.search,), "convert": (schedule.convert, "text")}
        answered = 0
        for command, (call, *words) in calls.items():
            others = ["csv", "json", "df", "plot", "png", "pdf", *sorted(self.FILES)]
            for keyword in [flag.replace("-", "_") for flag in flags_of(command) if flag in self.NOT_KEYWORDS] + others:
                if keyword == "help" or keyword in ("svg", *self.FILES) and command in ("plan", "search"):
                    continue
                with self.subTest(command=command, keyword=keyword), self.assertRaises(bs.UsageError) as raised:
                    call(*words, **{keyword: "x"})
                self.assertRegex(str(raised.exception), rf"^{keyword} is not a keyword here: .*(\.\w+|save\(|call |bs\.)")
                self.assertNotIn("here '--", str(raised.exception))
                answered += 1
        self.assertGreater(answered, 60)
        self.refuse_both("html is not a keyword here: .*; svg is not a keyword here", html="x", svg="y")
        self.refuse_both("html is not a keyword here: .*; no keyword is called 'p2pmodes'", html="x", p2pmodes="y")
        self.refuse_both("^no flag is called 'p2p_mod'; did you mean 'p2p_mode'", p2p_mod="fifo")

    def refuse_both(self, message, **options):
        for call in (bs.simulate, bs.compare):
            with self.assertRaisesRegex(bs.UsageError, message):
                call("1f1b", pp=2, m=2, **options)

    def test_a_trace_takes_the_flags_of_analyze(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "step.trace.json")
            bs.schedule("1f1b", pp=2, m=2).simulate().save(path)
            refused = self.refused_flags("analyze", lambda words, **options: bs.analyze(
                words, **{key: value for key, value in options.items() if key not in ("pp", "m")}), path)
        self.assertLessEqual(refused, set(self.NOT_KEYWORDS))

    def test_they_have_their_effect(self):
        options = {"f": 1, "b": 3, "p2p": 0.5}
        for name, value in (("policy", "ready:path"), ("send_budget", 1)):
            printed = subprocess.run([PROGRAM, "simulate", "gpipe", "--pp=4", "-m", "8", "--f=1", "--b=3", "--p2p=0.5",
                                      f"--{name.replace('_', '-')}={value}", "--format=csv"],
                                     capture_output=True, text=True, check=True).stdout
            report = bs.simulate("gpipe", pp=4, m=8, **options, **{name: value})
            self.assertIn(str(report.makespan), printed)
            self.assertEqual(bs.schedule("gpipe", pp=4, m=8, **options, **{name: value}).simulate().makespan,
                             report.makespan)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "arrivals.csv")
            path.write_text("0\n50\n")
            late = bs.simulate("1f1b", pp=2, m=2, arrivals=path)
            self.assertGreater(late.makespan, 50_000_000)
            own = bs.Schedule(["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"])
            self.assertEqual(own.simulate(arrivals=path).makespan, late.makespan)

    def test_scenarios_refuse_what_they_do_not_time(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        with self.assertRaisesRegex(bs.UsageError, "^policy: scenarios"):
            bs.schedule("1f1b", pp=2, m=2).simulate_many(f=numpy.array([1, 2]), policy="ready")


class Notes(unittest.TestCase):
    def notes_of(self, name, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            bs.simulate(name, **options)
        return {str(each.message) for each in caught}

    def test_notes_of_the_program_are_warnings(self):
        for name, options in (("1f1b-vocab", {}), ("interleaved", {}), ("zb-h1", {"optimizer_step": 3}),
                              ("1f1b", {"noise_seed": 3}), ("1f1b", {"mem": "1,0,-1"}), ("1f1b", {"release": "start"}),
                              ("1f1b", {"model": "llama3-8b", "explain": True})):
            words = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}") for key, value in options.items()]
            printed = subprocess.run([PROGRAM, "simulate", name, "--pp=4", "-m", "8", *words], capture_output=True,
                                     text=True, check=False)
            if printed.returncode == 2:
                continue
            said = {bs.errors.in_keywords(line.removeprefix("bubblescope: ")) for line in printed.stderr.splitlines()}
            with self.subTest(name=name, options=options):
                self.assertEqual(self.notes_of(name, pp=4, m=8, **options), said)
        self.assertIn("1f1b-vocab splits an output layer that takes no time here; give output_layer",
                      self.notes_of("1f1b-vocab", pp=4, m=8))


if __name__ == "__main__":
    unittest.main()

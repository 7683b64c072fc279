"""The examples in docstrings, in docs/python.md and in README.md are run, and their types are checked."""
import doctest
import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys
import tempfile
import unittest
import warnings

import bubblescope

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "docs" / "python.md"]
NEEDS = {"df()": "pandas", "simulate_many": "numpy", ".start": "numpy", ".timeline": "numpy", "plot(": "matplotlib"}


def have(module):
    return importlib.util.find_spec(module) is not None


def runnable(test):
    """Whether the packages that an example uses are installed."""
    source = "".join(example.source for example in test.examples)
    return all(have(module) for word, module in NEEDS.items() if word in source)


def run_doctest(case, test, flags=0):
    out = []
    runner = doctest.DocTestRunner(optionflags=flags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.run(test, out=out.append)
    case.assertEqual(runner.failures, 0, "".join(out))


class Examples(unittest.TestCase):
    def test_docstrings(self):
        finder = doctest.DocTestFinder(exclude_empty=True)
        names = [name for _, name, _ in pkgutil.iter_modules(bubblescope.__path__)]
        modules = [bubblescope, *(importlib.import_module(f"bubblescope.{name}") for name in names
                                  if name not in ("torch", "_figure", "__main__"))]
        count = 0
        for module in modules:
            for test in finder.find(module):
                if test.examples and runnable(test):
                    with self.subTest(test.name):
                        run_doctest(self, test, doctest.NORMALIZE_WHITESPACE)
                    count += 1
        self.assertGreater(count, 10)

    def test_documents(self):
        folder = tempfile.TemporaryDirectory()  # for what the examples save
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        parser = doctest.DocTestParser()
        for document in DOCUMENTS:
            blocks = document.read_text().split("```python\n")[1:]
            source = "\n".join(block.split("```")[0] for block in blocks if block.startswith(">>>"))
            test = parser.get_doctest(source, {}, document.name, str(document), 0)
            self.assertTrue(test.examples, document)
            if runnable(test):
                with self.subTest(document.name):
                    run_doctest(self, test)


@unittest.skipUnless(have("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def check(self, *words):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", *words],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_package(self):
        self.check(ROOT / "tools" / "python" / "bubblescope")

    def test_the_examples(self):
        parser = doctest.DocTestParser()
        with tempfile.TemporaryDirectory() as folder:
            for document in DOCUMENTS:
                blocks = document.read_text().split("```python\n")[1:]
                text = "\n".join(block.split("```")[0] for block in blocks if block.startswith(">>>"))
                path = pathlib.Path(folder, document.stem.lower() + "_examples.py")
                path.write_text("".join(example.source for example in parser.get_examples(text)))
                self.check(path)

    def test_wrong_keywords_are_found(self):
        calls = ['bs.simulate("1f1b", pp=2, mb=2)', 'bs.plan(pp=[2, 4], schedule="1f1b")', "bs.plan(layout=3)",
                 "bs.search(pp=2, m=2, caps=3)", "bs.search(pp=[2], m=2)", 'bs.analyze("trace", split_backward=0.5)']
        right = ["bs.plan(pp=[2, 4], m=8)", "bs.search(pp=2, m=2, cap=3)", 'bs.analyze("trace", split_b=0.5)']
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "calls.py")
            path.write_text("\n".join(["import bubblescope as bs", *calls, *right]))
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", path.name], cwd=folder, capture_output=True,
                                  text=True, check=False)
        lines = [line.split(":") for line in done.stdout.splitlines() if line.startswith(path.name) and ": error:" in line]
        wrong = {int(line[1]) for line in lines}
        self.assertEqual(wrong, set(range(2, 2 + len(calls))), done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

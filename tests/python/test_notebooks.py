"""The notebooks in docs/notebooks/ run from top to bottom.

Where Jupyter is installed, nbconvert runs them as a user would. Elsewhere their cells run in one namespace, which finds
everything but what only a notebook shows; the test says which it was.
"""
import ast
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
JUPYTER = importlib.util.find_spec("nbconvert") is not None and importlib.util.find_spec("ipykernel") is not None
PACKAGES = [module for module in ("pandas", "matplotlib") if importlib.util.find_spec(module) is None]


def run_cells(path):
    """Runs the cells, and shows the value of each as a notebook does."""
    namespace = {"__name__": "__main__"}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(path), "exec"), namespace)
        if shown is not None:
            value = eval(compile(ast.Expression(shown.value), str(path), "eval"), namespace)
            getattr(value, "_repr_html_", value.__repr__)()


@unittest.skipIf(PACKAGES, f"not installed: {', '.join(PACKAGES)}")
class Notebooks(unittest.TestCase):
    def test_there_are_five(self):
        self.assertEqual(len(NOTEBOOKS), 5)

    def test_their_cells_run(self):
        for path in NOTEBOOKS:
            with self.subTest(path.name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run_cells(path)

    @unittest.skipUnless(JUPYTER, "nbconvert and ipykernel are not installed")
    def test_they_run_headless(self):
        for path in NOTEBOOKS:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir",
                                       folder, path], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr[-2000:])
                cells = json.loads(pathlib.Path(folder, path.name).read_text())["cells"]
                shown = [output.get("data", {}) for cell in cells for output in cell.get("outputs", [])]
                for data in shown:  # no picture as a text alone
                    self.assertFalse("<Figure" in "".join(data.get("text/plain", "")) and "image/png" not in data)


if __name__ == "__main__":
    unittest.main()

"""Serves predictions of published measurements: the program that predicts, and the cells of a source."""

import json
import re
import statistics
import subprocess
import tempfile

# median, worst; ab initio: from a model's and a device's published numbers alone, with nothing fitted to the source;
# layers: the same for networks other than transformers, from a count of what their layers compute, with one fitted
# speed; single: runs with a single known number, so that nothing can be fitted
LIMITS = {
    'time': (0.05, 0.12),
    'memory': (0.05, 0.12),
    'exact': (1e-3, 1e-3),
    'ab initio': (0.10, 0.20),
    'layers': (0.05, 0.30),
    'single': (0.20, 0.30),
}


class Program:
    """The program under test, asked through its command line."""

    def __init__(self, binary):
        self.binary = binary
        self.answers = {}

    def run(self, *words):
        return subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True, check=True)

    def simulate(self, *words):
        key = tuple(map(str, words))
        if key not in self.answers:
            self.answers[key] = json.loads(self.run('simulate', *words, '--format', 'json').stdout)
        return self.answers[key]

    def simulate_config(self, config, *words):
        """The report of a model file, which the first word's schedule runs."""
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump(config, file)
            file.flush()
            return self.simulate(*words, '--model', file.name)

    def phases_of(self, config, *words):
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump(config, file)
            file.flush()
            return stage_phases(self, *words, '--model', file.name)

    def billions(self, config):
        """Billions of parameters of a model file."""
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump(config, file)
            file.flush()
            words = ['simulate', '1f1b', '--pp', 1, '-m', 1, '--model', file.name, '--explain']
            return float(re.search(r'([\d.]+) billion parameters', self.run(*words).stderr)[1])


def ms(report, key='makespan_ns'):
    return report[key] / 1e6


class Source:
    """The cells of one source: name, predicted, measured."""

    def __init__(self, title, kind, calibration):
        self.title, self.kind, self.calibration = title, kind, calibration
        self.cells = []
        self.remark = ''

    def add(self, name, predicted, measured):
        self.cells.append((name, predicted, measured, predicted / measured - 1))

    def errors(self):
        return [abs(error) for *_, error in self.cells]

    def within(self):
        median, worst = LIMITS[self.kind]
        return statistics.median(self.errors()) <= median and max(self.errors()) <= worst


def least_squares(rows):
    """x, y >= 0 that minimise the sum of (a x + b y - c)^2 over rows (a, b, c)."""
    aa, bb = sum(a * a for a, _, _ in rows), sum(b * b for _, b, _ in rows)
    ab = sum(a * b for a, b, _ in rows)
    ac, bc = sum(a * c for a, _, c in rows), sum(b * c for _, b, c in rows)
    determinant = aa * bb - ab * ab
    x, y = (ac * bb - bc * ab) / determinant, (aa * bc - ab * ac) / determinant
    if y < 0:
        return ac / aa, 0
    return (0, bc / bb) if x < 0 else (x, y)


def fit_slowdown(rate, measured):
    """The slowdown at which a rate that falls with it is the measured one."""
    low, high = 0.5, 3.0
    for _ in range(20):
        middle = round((low + high) / 2, 6)
        low, high = (middle, high) if rate(middle) > measured else (low, middle)
    return low


def stage_phases(program, *words):
    """Milliseconds of F, I and W of one micro-batch on a middle rank of zb-h1."""
    report = program.simulate('zb-h1', *words, '--optimizer', 'none')
    busy = report['ranks'][report['pp'] // 2]['busy_by_kind_ns']
    return {kind: busy[kind] / report['microbatches'] / 1e6 for kind in 'FIW'}


def bisect(value, target, low, high):
    """Where a value that grows with its argument is the target."""
    for _ in range(18):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) < target else (low, middle)
    return low

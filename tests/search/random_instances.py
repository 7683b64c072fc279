#!/usr/bin/env python3
"""Fresh random steps: what `search` claims, compared with a model of its own, known schedules and smaller caps.

  random_instances.py BINARY [--count 500] [--seed 1] [--solve 1]

For every instance: the schedule is legal, keeps its caps and takes the time that is printed; CP-SAT finds no order
below the bound or below what is called optimal; no schedule of the catalogue that keeps the caps is shorter; a larger
cap gives no longer schedule. Exit status 1 if anything differs, 77 if ortools is missing.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / 'build' / 'ortools'

try:
    from exact_model import StepModel
except ModuleNotFoundError:
    if (VENV / 'bin' / 'python').exists() and Path(sys.prefix) != VENV:
        os.execv(VENV / 'bin' / 'python', [str(VENV / 'bin' / 'python'), *sys.argv])
    print(f'skipped: no ortools here; python3 -m venv {VENV} && {VENV}/bin/pip install ortools')
    sys.exit(77)

from instance import UNIT, draw, find_fault, measure, parse_order

KNOWN = {
    'linear': ['1f1b', 'eager-1f1b', 'gpipe', 'naive', 'zb-h1', 'zb-h2', 'zb-1p', 'zb-2p', 'zb-auto'],
    'v': ['zb-v', 'v-min', 'v-half', 'v-auto', '1f1b-v', 'hanayo'],
    'interleaved': ['interleaved', 'interleaved-zb', 'bfs', 'group-interleaved'],
}


class Search:
    """One run of `search`."""

    def __init__(self, driver, instance, cap='own'):
        path = driver.folder / 'found.json'
        words = ['search', '--placement', instance.placement, '--objective', instance.objective]
        words += ['--vpp', str(instance.chunks)] if instance.placement == 'interleaved' else []
        words += ['--effort', str(driver.options.effort), '--format', 'json', '-o', str(path)]
        done = driver.run(words + instance.words(driver.costs, cap))
        self.refusal = done.stderr.strip() if done.returncode else None
        if self.refusal:
            return
        report = json.loads(done.stdout)
        self.value, self.bound = report['value_ns'] / UNIT, report['bound_ns'] / UNIT
        self.proved = report['proved_optimal']
        self.order = [parse_order(ops) for ops in json.loads(path.read_text())['order']]


class Driver:
    def __init__(self, options, folder):
        self.options, self.folder = options, Path(folder)
        self.costs = str(self.folder / 'costs.json')
        self.faults = []
        self.counts = dict.fromkeys(
            ['proved', 'decided', 'optimal', 'beaten', 'undecided', 'known', 'larger caps'], 0
        )
        self.gaps = []

    def run(self, words):
        words = [self.options.binary, *map(str, words)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def fault(self, instance, text):
        self.faults.append(f'{instance}\n    {text}')
        print(self.faults[-1], flush=True)

    def summary(self, instances):
        counts = ', '.join(f'{count} {name}' for name, count in self.counts.items())
        gap = f' (by at most {100 * max(self.gaps):.1f} %)' if self.gaps else ''
        return f'{instances} instances: {counts}{gap}; {len(self.faults)} faults'

    def check(self, instance):
        Path(self.costs).write_text(instance.costs())
        found = Search(self, instance)
        if found.refusal:
            self.fault(instance, f'refused: {found.refusal}')
            return
        self.counts['proved'] += found.proved
        self.check_order(instance, found)
        self.check_known(instance, found)
        self.check_larger_caps(instance, found)
        self.check_exactly(instance, found)

    def check_order(self, instance, found):
        fault = find_fault(instance, found.order)
        times = None if fault else measure(instance, found.order)
        if fault or times is None:
            self.fault(instance, f'the schedule is not legal: {fault or "it deadlocks"}')
        elif times[instance.objective == 'span'] != found.value:
            self.fault(instance, f'{found.value} is printed, {times} measured')
        if found.bound > found.value or found.proved != (found.bound == found.value):
            self.fault(instance, f'value {found.value}, bound {found.bound}, proved {found.proved}')

    def check_known(self, instance, found):
        for name in KNOWN[instance.placement]:
            words = ['simulate', name, '--format', 'json', *instance.words(self.costs)]
            words += ['--vpp', str(instance.chunks)] if instance.placement == 'interleaved' else []
            done = self.run(words)
            if done.returncode:
                continue  # the shape is refused, or the cap is too small
            report = json.loads(done.stdout)
            peaks = [rank['peak_units'] for rank in report['ranks']]
            if instance.cap is not None and any(peak > cap for peak, cap in zip(peaks, instance.cap)):
                continue
            self.counts['known'] += 1
            value = report['max_span_ns' if instance.objective == 'span' else 'makespan_ns'] / UNIT
            if value < found.value:
                self.fault(instance, f'{name} takes {value}, the search found {found.value}')
            if value < found.bound:
                self.fault(instance, f'{name} takes {value}, below the bound {found.bound}')

    def larger_caps(self, instance):
        """Caps that allow everything that the instance's own allow."""
        if instance.cap is None:
            return []
        dice = random.Random(instance.seed)
        more = dice.randint(1, 2 * instance.memory[0])
        one = list(instance.cap)
        one[dice.randrange(len(one))] += more
        caps = [[cap + more for cap in instance.cap], one]
        if len(set(instance.cap)) > 1:
            caps.append([max(instance.cap)] * len(instance.cap))
        return [dice.choice(caps[1:]), caps[0], None][: self.options.caps]

    def check_larger_caps(self, instance, found):
        for cap in self.larger_caps(instance):
            larger = Search(self, instance, cap)
            if larger.refusal:
                self.fault(instance, f'cap {cap} is refused: {larger.refusal}')
                continue
            self.counts['larger caps'] += 1
            if larger.value > found.value:
                self.fault(instance, f'cap {cap} takes {larger.value}, its own cap {found.value}')
            if larger.bound > found.value:
                self.fault(instance, f'cap {cap} has the bound {larger.bound}, above {found.value}')

    def check_exactly(self, instance, found):
        answer, order = StepModel(instance, int(found.value)).solve(self.options.solve)
        if order is None:
            decided = answer == 'none'
            self.counts['decided' if decided else 'undecided'] += 1
            self.counts['optimal'] += decided
            return
        times = None if find_fault(instance, order) else measure(instance, order)
        if times is None:
            sys.exit(f'{instance}: the model is wrong: its order is not legal')
        value = times[instance.objective == 'span']
        self.counts['decided' if answer == 'best' else 'undecided'] += 1
        self.counts['beaten'] += 1
        self.gaps.append((found.value - value) / value)
        if found.proved or value < found.bound:
            claim = 'called optimal' if found.proved else f'with the bound {found.bound}'
            self.fault(instance, f'{found.value} is {claim}, but an order takes {value}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--count', type=int, default=500)
    parser.add_argument('--seed', type=int, default=1, help='of the first instance')
    parser.add_argument('--solve', type=float, default=1, help='effort of CP-SAT per instance, about seconds')
    parser.add_argument('--effort', type=int, default=1_000_000, help='of a search')
    parser.add_argument('--caps', type=int, default=2, help='larger caps per instance, at most 3')
    parser.add_argument('--max-ops', type=int, default=400, help='three of four instances have at most a quarter')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(options, folder)
        for seed in range(options.seed, options.seed + options.count):
            dice = random.Random(seed)
            most = options.max_ops // 4 if dice.random() < 0.75 else options.max_ops
            driver.check(draw(dice, seed, most))
            if (seed - options.seed) % 10 == 9:
                print(driver.summary(seed - options.seed + 1), flush=True)
    print(driver.summary(options.count))
    return 1 if driver.faults else 0


if __name__ == '__main__':
    sys.exit(main())

#!/usr/bin/env python3
"""Random plan spaces by brute force: every configuration is simulated by itself.

  random_plans.py BINARY [--count 500] [--seed 1]

For every space: the plans are the configurations that `simulate` accepts under the cap, with its step and peak; they
are ranked by time per sample; a break-even point is where another schedule gets ahead, the named one first, and
neither just before it nor at any tried value up to it is any schedule ahead. Exit status 1 if anything differs.
"""

import argparse
import json
import random
import subprocess
import sys
from fractions import Fraction

QUANTUM = 96  # nanoseconds; divides by the chunks
OF_CHUNKS = ['interleaved', 'bfs', 'interleaved-zb', 'hanayo']  # these take --vpp
SEARCHED = ['v-half', 'v-min']  # every cost gives them another order, so they have no break-even points
NAMES = ['1f1b', 'gpipe', 'zb-h1', 'zb-h2', 'eager-1f1b', 'zb-v', 'naive', 'dualpipev', *SEARCHED]
MAX_CALLS = 4  # values tried on each side of the current one


class Space:
    def __init__(self, seed):
        dice = random.Random(seed)
        self.seed, self.dice = seed, dice
        self.schedules = dice.sample(NAMES + OF_CHUNKS, dice.randint(2, 5))
        self.ranks = sorted(dice.sample([2, 3, 4, 6], dice.randint(1, 2)))
        self.chunks = sorted(dice.sample([2, 3, 4], dice.randint(1, 2)))
        self.microbatches = sorted(dice.sample([4, 6, 8, 12, 16], dice.randint(1, 2)))
        self.is_total = dice.random() < 0.2  # costs of the whole model instead of a rank's share
        self.costs = {
            'f': dice.randint(1, 30) * QUANTUM,
            'i': dice.randint(1, 30) * QUANTUM,
            'w': dice.randint(1, 30) * QUANTUM,
            'p2p': dice.choice([0, dice.randint(0, 12)]) * QUANTUM,
        }
        if dice.random() < 0.2:
            self.costs['b'] = self.costs['i'] + self.costs['w'] - dice.randint(0, 3) * QUANTUM
            self.costs['b'] = max(self.costs['b'], QUANTUM)
        self.cap = None if self.is_total else dice.choice([None, None, None, 2, 3, 4, 6])

    def flags(self, costs, ranks=None):
        """With `ranks`: a rank's share, for simulate. Without: as plan takes them."""
        words = []
        for name, time in costs.items():
            of_model = self.is_total and name != 'p2p'
            if ranks and of_model:
                time //= ranks
            words += [f'--total-{name}' if of_model and not ranks else f'--{name}', f'{time}ns']
        return words

    def plan_words(self, costs):
        words = ['plan', '--format', 'json', '--threads', '1', '--schedules', ','.join(self.schedules)]
        for flag, values in (('--pp', self.ranks), ('--vpp', self.chunks), ('-m', self.microbatches)):
            words += [flag, ','.join(map(str, values))]
        return words + self.flags(costs) + (['--cap', str(self.cap)] if self.cap else [])

    def configurations(self):
        for name in self.schedules:
            for ranks in self.ranks:
                for microbatches in self.microbatches:
                    for chunks in self.chunks_of(name):
                        yield name, ranks, chunks, microbatches

    def chunks_of(self, name):
        if name not in OF_CHUNKS:
            return [None]
        # Waves have two chunks each; where no --vpp is even, plan takes the default.
        return self.chunks if name != 'hanayo' else [each for each in self.chunks if each % 2 == 0] or [2]

    def scale(self):
        """Costs are multiples of this, so that every share is a whole number of nanoseconds."""
        return 12 if self.is_total else 1


class Checker:
    def __init__(self, binary):
        self.binary = binary
        self.faults = []
        self.plans = self.points = self.unaffected = 0

    def run(self, words):
        done = subprocess.run([self.binary, *words], capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def fault(self, space, text):
        self.faults.append(f'seed {space.seed}: {text}\n    {" ".join(space.plan_words(space.costs))}')
        print(self.faults[-1], flush=True)

    def simulate(self, space, which, costs):
        """The step and the largest peak of a configuration; None if it is refused or above the cap."""
        name, ranks, chunks, microbatches = which
        words = ['simulate', name, '--pp', str(ranks), '-m', str(microbatches), '--format', 'json']
        words += ['--vpp', str(chunks)] if chunks else []
        if name == 'interleaved' and chunks and microbatches > ranks and microbatches % ranks:
            words += ['--microbatch-group-size', str(full_groups(ranks, microbatches))]
        report = self.run(words + space.flags(costs, ranks))
        if report is None:
            return None
        peak = max(rank['peak_units'] for rank in report['ranks'])
        peak = round(peak / (ranks if space.is_total else 1), 6)  # memory is the whole model's, too
        if space.cap and peak > space.cap:
            return None
        return report['makespan_ns'], peak

    def per_sample(self, space, costs):
        """[schedule]: time per sample of its best plan."""
        answer = self.run(space.plan_words(costs))
        best = {}
        for plan in answer['plans']:
            if plan['schedule'] in SEARCHED:
                continue
            time = Fraction(plan['step_ns'], plan['microbatches'])
            best[plan['schedule']] = min(time, best.get(plan['schedule'], time))
        return best

    def check(self, space):
        if space.is_total:
            space.costs = {name: time * (space.scale() if name != 'p2p' else 1) for name, time in space.costs.items()}
        figures = {which: self.simulate(space, which, space.costs) for which in space.configurations()}
        allowed = {which: figure for which, figure in figures.items() if figure}
        answer = self.run(space.plan_words(space.costs))
        if answer is None or not allowed:
            if answer is not None or allowed:
                self.fault(space, f'{len(allowed)} configurations can be simulated, plan says {answer}')
            return
        self.check_plans(space, allowed, answer)
        self.check_front(space, answer)
        self.check_break_evens(space, answer)

    def check_plans(self, space, allowed, answer):
        seen = {}
        for plan in answer['plans']:
            chunks = plan['vpp'] if plan['schedule'] in OF_CHUNKS else None
            seen[plan['schedule'], plan['pp'], chunks, plan['microbatches']] = (plan['step_ns'], round(plan['peak_units'], 6))
        self.plans += len(seen)
        if seen != allowed or len(seen) != len(answer['plans']):
            differ = [(which, seen.get(which), allowed.get(which)) for which in {*seen, *allowed}
                      if seen.get(which) != allowed.get(which)]
            self.fault(space, f'configuration, planned, simulated: {differ}')
        times = [Fraction(plan['step_ns'], plan['microbatches']) for plan in answer['plans']]
        if times != sorted(times):
            self.fault(space, f'not the best first: {[str(time) for time in times]}')

    def check_front(self, space, answer):
        """The front holds every plan than which none is faster in no more memory, or as fast in less."""
        points = [(Fraction(plan['step_ns'], plan['microbatches']), plan['peak_units']) for plan in answer['plans']]
        want = {a for a in points if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in points)}
        if {points[at] for at in answer['pareto']} != want:
            self.fault(space, f'the front is {answer["pareto"]}, not {sorted(want)}')

    def check_break_evens(self, space, answer):
        best = answer['plans'][0]['schedule']
        most = 8 * (space.costs['f'] + space.costs.get('b', space.costs['i'] + space.costs['w']))
        found = {}
        for point in answer['break_even']:
            found[point['parameter'].replace('total-', ''), point['at_ns'] > point['now_ns']] = point
        if best in SEARCHED:
            if found:
                self.fault(space, f'break-even points of {best}, which searches: {found}')
            return
        if len({plan['schedule'] for plan in answer['plans']} - set(SEARCHED)) < 2:
            return
        for name in ('p2p', 'i', 'w'):
            if 'b' in space.costs and name != 'p2p':
                continue  # a full backward of its own does not follow its halves
            for rises in (False, True):
                limit = most if rises else 0
                if space.is_total and name == 'p2p':
                    limit //= max(space.ranks) if rises else 1
                point = found.get((name, rises))
                self.check_values(space, best, (name, limit), point)
                if point:
                    self.check_point(space, best, name, point)

    def with_cost(self, space, name, value):
        return {**space.costs, name: value}

    def check_values(self, space, best, parameter, point):
        """No schedule is ahead at any of a few values on the way to the point, or to the limit."""
        name, limit = parameter
        now = space.costs[name]
        end = point['at_ns'] if point else limit
        self.unaffected += point is None
        step = space.scale() if name != 'p2p' else 1
        values = {now + (end - now) * part // (MAX_CALLS * step) * step for part in range(1, MAX_CALLS)}
        for value in sorted(value for value in values if min(now, end) < value < max(now, end)):
            times = self.per_sample(space, self.with_cost(space, name, value))
            ahead = [schedule for schedule, time in times.items() if time < times[best]]
            if ahead:
                self.fault(space, f'{best} at --{name} {value}: {ahead} ahead; break-even {point and point["at_ns"]}')

    def check_point(self, space, best, name, point):
        self.points += 1
        at, runner_up = point['at_ns'], point['runner_up']
        times = self.per_sample(space, self.with_cost(space, name, at))
        if times[best] <= min(times.values()):
            self.fault(space, f'{best} is still best at --{name} {at}: {times}')
        elif times[runner_up['schedule']] > min(times.values()):
            self.fault(space, f'{runner_up["schedule"]} is not the best at --{name} {at}: {times}')
        before = at - 1 if at > point['now_ns'] else at + 1
        times = self.per_sample(space, self.with_cost(space, name, before))
        if times[best] > min(times.values()):
            self.fault(space, f'{best} is behind at --{name} {before} already: {times}')
        chunks = runner_up['vpp'] if runner_up['schedule'] in OF_CHUNKS else None
        which = (runner_up['schedule'], runner_up['pp'], chunks, runner_up['microbatches'])
        if self.simulate(space, which, space.costs) is None:
            self.fault(space, f'the runner_up {which} cannot be simulated')


def full_groups(ranks, microbatches):
    """The smallest groups whose last one has a micro-batch for every rank: plans take those."""
    return next(size for size in range(ranks, microbatches + 1)
                if microbatches % size == 0 or microbatches % size >= ranks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('--count', type=int, default=500)
    parser.add_argument('--seed', type=int, default=1, help='of the first space')
    options = parser.parse_args()
    checker = Checker(options.binary)
    for seed in range(options.seed, options.seed + options.count):
        checker.check(Space(seed))
    print(f'{options.count} spaces, {checker.plans} plans, {checker.points} break-even points, '
          f'{checker.unaffected} directions without one, {len(checker.faults)} faults')
    return 1 if checker.faults else 0


if __name__ == '__main__':
    sys.exit(main())

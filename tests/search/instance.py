"""Random problems for `search`, and the exact rules of a step, written apart from the program.

A step has `microbatches` micro-batches. Each runs F on every stage from first to last, then a backward on every stage
back to the first: I and later W, or one full backward B. A rank runs one op at a time.
"""

import json
import re
from dataclasses import dataclass, field

UNIT = 1000  # nanoseconds of one unit of time


@dataclass
class Instance:
    seed: int
    placement: str
    ranks: int
    chunks: int
    microbatches: int
    forward: list  # [stage]: times in units
    input_grad: list
    weight_grad: list
    full: list  # of full backwards; where they are not cheaper, the sum of the halves
    message: int
    links: dict = field(default_factory=dict)  # (from rank, to rank): latency, where it differs
    memory: tuple = (1, 0, -1)  # what F, I and W add to their rank
    cap: list = None  # [rank]; None: no limit
    objective: str = 'makespan'
    gap: int = 0  # between two ops of a rank

    @property
    def stages(self):
        return self.ranks * self.chunks

    def rank_of(self, stage):
        turn, place = divmod(stage, self.ranks)
        back = self.placement != 'interleaved' and turn % 2 == 1
        return self.ranks - 1 - place if back else place

    def latency(self, sender, receiver):
        """Returns the time of a message between the ranks of two stages; 0 if they are the same."""
        ranks = self.rank_of(sender), self.rank_of(receiver)
        return 0 if ranks[0] == ranks[1] else self.links.get(ranks, self.message)

    def full_can_pay(self, stage):
        halves = self.input_grad[stage] + self.weight_grad[stage]
        return self.full[stage] < halves + self.gap or self.memory[1] > 0

    def ops(self):
        return 3 * self.stages * self.microbatches

    def costs(self):
        """The content of a cost file."""
        stages = [
            {'forward': f * UNIT, 'input_grad': i * UNIT, 'weight_grad': w * UNIT, 'backward': b * UNIT}
            for f, i, w, b in zip(self.forward, self.input_grad, self.weight_grad, self.full)
        ]
        for stage in stages:
            stage.update({key: f'{time}ns' for key, time in stage.items()})
        links = [{'from': a, 'to': b, 'latency': f'{time * UNIT}ns'} for (a, b), time in self.links.items()]
        content = {'format': 'bubblescope-costs/1', 'stages': stages}
        content['message'] = {'latency': f'{self.message * UNIT}ns'}
        if links:
            content['links'] = links
        if self.gap:
            content['op_gap'] = f'{self.gap * UNIT}ns'
        return json.dumps(content)

    def words(self, costs_file, cap='own'):
        """Flags for shape, costs and memory."""
        cap = self.cap if cap == 'own' else cap
        words = ['--pp', self.ranks, '-m', self.microbatches, '--costs', costs_file]
        words += ['--mem', ','.join(str(change * self.chunks) for change in self.memory)]  # of a rank's whole share
        if cap is not None:
            words += ['--cap', ','.join(map(str, cap))]
        return list(map(str, words))

    def __str__(self):
        uneven = len(set(self.forward)) > 1
        cap = 'none' if self.cap is None else ','.join(map(str, self.cap))
        return (
            f'seed {self.seed}: {self.placement} p={self.ranks} v={self.chunks} m={self.microbatches} '
            f'F={self.forward if uneven else self.forward[0]} I={self.input_grad if uneven else self.input_grad[0]} '
            f'W={self.weight_grad if uneven else self.weight_grad[0]} B={self.full if uneven else self.full[0]} '
            f'p2p={self.message}{"+links" if self.links else ""} gap={self.gap} mem={self.memory} cap={cap} {self.objective}'
        )


def draw_cap(random, ranks, chunks, memory):
    """No limit, one for all ranks, or one for each."""
    least = chunks * memory[0] + max(memory[1], 0)
    most = least + 2 * ranks * chunks * memory[0]
    kind = random.choice(['none', 'one', 'one', 'one', 'each', 'each'])
    if kind == 'none':
        return None
    if kind == 'one':
        return [random.randint(least, random.randint(least, most))] * ranks
    return [random.randint(least, random.randint(least, most)) for _ in range(ranks)]


def draw(random, seed, max_ops):
    """An instance of at most so many ops."""
    while True:
        placement = random.choice(['linear', 'linear', 'v', 'v', 'interleaved'])
        ranks, microbatches = random.randint(2, 8), random.randint(2, 16)
        chunks = {'linear': 1, 'v': 2}.get(placement) or random.choice([2, 2, 3])
        if 3 * ranks * chunks * microbatches <= max_ops:
            break
    stages = ranks * chunks
    uneven = random.random() < 0.4

    def times(low, high):
        one = random.randint(low, high)
        return [random.randint(low, high) if uneven else one for _ in range(stages)]

    forward, input_grad, weight_grad = times(1, 9), times(1, 9), times(1, 9)
    full = [i + w for i, w in zip(input_grad, weight_grad)]
    if random.random() < 0.4:
        saved = random.random() * 0.5
        full = [max(1, round(b * (1 - saved))) for b in full]
    message = random.choice([0, 0, 1, 2, random.randint(0, 9)])
    links = {}
    if uneven and random.random() < 0.3:
        links = {(a, b): random.randint(0, 9) for a in range(ranks) for b in range(ranks) if abs(a - b) == 1}
    memory = random.choice([(1, 0, -1), (1, 0, -1), (2, -1, -1), (3, -1, -2), (1, -1, 0), (3, 1, -4)])
    cap = draw_cap(random, ranks, chunks, memory)
    objective = random.choice(['makespan', 'makespan', 'makespan', 'span'])
    gap = random.choice([0, 0, 0, 1, 2, random.randint(1, 6)])
    return Instance(
        seed, placement, ranks, chunks, microbatches, forward, input_grad, weight_grad, full, message, links, memory,
        cap, objective, gap,
    )


def parse_order(text):
    """The (stage, kind, micro-batch) of a rank's ops."""
    ops = re.fullmatch(r'(\d+)([FIWB])(\d+)(?: (\d+)([FIWB])(\d+))*', text) and re.findall(r'(\d+)([FIWB])(\d+)', text)
    return [(int(stage), kind, int(microbatch)) for stage, kind, microbatch in ops]


def find_fault(instance, order):
    """Why an order is not one of this step; None if it is. Memory is counted op by op."""
    want = {(s, n) for s in range(instance.stages) for n in range(instance.microbatches)}
    done = {kind: [] for kind in 'FIWB'}
    adds = dict(zip('FIW', instance.memory), B=instance.memory[1] + instance.memory[2])
    for rank, ops in enumerate(order):
        held = 0
        for stage, kind, microbatch in ops:
            if instance.rank_of(stage) != rank:
                return f'stage {stage} runs on rank {rank}'
            done[kind].append((stage, microbatch))
            held += adds[kind]
            if instance.cap is not None and held > instance.cap[rank]:
                return f'rank {rank} holds {held} at {stage}{kind}{microbatch}'
    if sorted(done['F']) != sorted(want) or sorted(done['I'] + done['B']) != sorted(want):
        return 'not every micro-batch runs F and one backward on every stage'
    return None if sorted(done['I']) == sorted(done['W']) else 'the I and the W differ'


def inputs_of(instance, op):
    """The ops that an op waits for, each with the latency of its message; a backward has the key (stage, 'G', n)."""
    stage, kind, n = op
    if kind == 'F':
        return [((stage - 1, 'F', n), instance.latency(stage - 1, stage))] if stage > 0 else []
    if kind == 'W':
        return [((stage, 'G', n), 0)]
    inputs = [((stage, 'F', n), 0)]
    if stage + 1 < instance.stages:
        inputs.append(((stage + 1, 'G', n), instance.latency(stage + 1, stage)))
    return inputs


def measure(instance, order):
    """(makespan, longest span) of an order in units, every op as early as possible; None if it deadlocks."""
    times = {'F': instance.forward, 'I': instance.input_grad, 'W': instance.weight_grad, 'B': instance.full}
    ends, first = {}, [None] * instance.ranks
    free, position = [0] * instance.ranks, [0] * instance.ranks
    moved = True
    while moved:
        moved = False
        for rank, ops in enumerate(order):
            while position[rank] < len(ops):
                op = ops[position[rank]]
                inputs = inputs_of(instance, op)
                if any(key not in ends for key, _ in inputs):
                    break
                rested = free[rank] + (instance.gap if position[rank] > 0 else 0)
                start = max([rested] + [ends[key] + latency for key, latency in inputs])
                free[rank] = start + times[op[1]][op[0]]
                ends[op[0], 'G' if op[1] in 'IB' else op[1], op[2]] = free[rank]
                first[rank] = start if first[rank] is None else first[rank]
                position[rank] += 1
                moved = True
    if any(at < len(ops) for at, ops in zip(position, order)):
        return None
    return max(free), max(end - start for end, start in zip(free, first))

#!/usr/bin/env python3
"""Every rank of small jobs is lost, and what the program makes of it is checked by a plain interpreter.

  lose_ranks.py BINARY [--large]

The orders with the lost rank's micro-batches at its peers are read from the native file: every op is there once, on
the rank where it belongs; a run of them, op by op, never blocks and takes as long as the program says; no rank holds
more than it did and its part of the lost rank's; the step is within its bounds. Steps in which the rank dies are
compared with closed forms and bounds. Some jobs are trained, whose gradients must be those of one rank. Exit status 1
if anything differs.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

F, I, W = 3, 2, 4  # ms; a full backward takes I + W
TIMES = {'F': F, 'I': I, 'W': W, 'B': I + W}
SCHEDULES = ['1f1b', 'gpipe', 'zb-h1']
OF_SHAPE = {  # further schedules: ranks, chunks, micro-batches
    'interleaved': [(2, 2, 2), (2, 2, 4), (3, 2, 3)],
    'zb-v': [(2, 2, 4), (3, 2, 6)],
    'dualpipev': [(2, 2, 4)],
    'chimera': [(2, 2, 2), (4, 2, 4)],
    'forward-only': [(3, 1, 4)],
    'seq1f1b': [(2, 1, 3)],
    'hanayo': [(2, 2, 2)],
}
CELL = re.compile(r'(\d+)([FIWB])(\d+)(?:\.(\d+))?')


class Wrong(Exception):
    pass


def expect(holds, what):
    if not holds:
        raise Wrong(what)


def run(binary, *words, status=0):
    done = subprocess.run([binary, *map(str, words)], capture_output=True, text=True)
    expect(done.returncode == status, f'{" ".join(map(str, words))}: exit status {done.returncode}, not {status}\n'
           f'{done.stdout[-400:]}{done.stderr[-800:]}')
    return done.stdout if status == 0 else done.stdout + done.stderr


class Job:
    """The flags of a job and what they mean."""

    def __init__(self, binary, schedule, ranks, chunks, microbatches, replicas, lost, times=(F, I, W), p2p=0):
        self.binary, self.schedule = binary, schedule
        self.ranks, self.chunks, self.microbatches = ranks, chunks, microbatches
        self.replicas, self.lost, self.p2p = replicas, lost, p2p
        self.shape = ['--pp', ranks, '-m', microbatches] + (['--vpp', chunks] if schedule == 'interleaved' else [])
        f, i, w = times
        self.times = dict(F=f, I=i, W=w, B=i + w)
        self.costs = ['--f', f, '--i', i, '--w', w, '--p2p', p2p, '--costs-per', 'slice']

    def __str__(self):
        return (f'{self.schedule} p={self.ranks} v={self.chunks} m={self.microbatches} D={self.replicas} '
                f'lost {self.lost}')

    def lose(self, more=''):
        return ['--replicas', self.replicas, '--lose', f'rank={self.lost}{more}']

    def report(self, more='', lose=True):
        words = ['simulate', self.schedule, *self.shape, *self.costs, *(self.lose(more) if lose else [])]
        return json.loads(run(self.binary, *words, '--format', 'json'))

    def convert(self):
        words = ['convert', self.schedule, *self.shape, *self.costs, *self.lose(), '--to', 'native']
        return json.loads(run(self.binary, *words))

    def first(self, rank):
        return rank * self.replicas - (1 if rank > self.lost else 0)

    def place(self, rank, microbatch):
        """The rank of the job that should run a micro-batch of a rank of the pipeline."""
        replica = microbatch % self.replicas
        if rank == self.lost and replica == self.replicas - 1:
            replica = microbatch // self.replicas % (self.replicas - 1)
        return self.first(rank) + replica


def parse(text):
    """Ops with the other half of their pair, which runs directly after the first."""
    ops = []
    for cell in text.split():
        found = [(int(s), kind, int(m), int(slice_ or 0)) for s, kind, m, slice_ in CELL.findall(cell)]
        expect(found, f'{cell} is not an op')
        for at, op in enumerate(found):
            ops.append((op, found[1] if len(found) == 2 and at == 0 else None))
    return ops


class Interpreter:
    """Runs orders: an op starts when its rank is free and its inputs are there."""

    def __init__(self, job, native):
        self.job, self.native = job, native
        self.orders = [parse(text) for text in native['order']]
        self.placement = native['placement']
        self.stages = len(self.placement) // native['pipelines']
        self.rank_of = {}
        for rank, order in enumerate(self.orders):
            for op, _ in order:
                expect(op not in self.rank_of, f'{op} is there twice')
                self.rank_of[op] = rank
        self.slices = native['shape']['slices']
        self.end, self.start = {}, {}

    def stage_first(self, stage):
        return stage % self.stages == 0

    def stage_last(self, stage):
        return (stage + 1) % self.stages == 0

    def gradient(self, stage, microbatch, slice_):
        for kind in 'BI':
            if (stage, kind, microbatch, slice_) in self.rank_of:
                return (stage, kind, microbatch, slice_)
        return None

    def inputs(self, op):
        stage, kind, microbatch, slice_ = op
        if kind == 'F':
            awaited = [] if self.stage_first(stage) else [(stage - 1, 'F', microbatch, slice_)]
            return awaited + ([(stage, 'F', microbatch, slice_ - 1)] if slice_ else [])
        if kind == 'W':
            return [(stage, 'I', microbatch, slice_)]
        awaited = [(stage, 'F', microbatch, slice_)]
        if not self.stage_last(stage):
            awaited.append(self.gradient(stage + 1, microbatch, slice_))
        if slice_ + 1 < self.slices:
            awaited.append(self.gradient(stage, microbatch, slice_ + 1))
        return awaited

    def ready(self, op, rank):
        """When all inputs are there; None if one is not known."""
        at = 0
        for awaited in self.inputs(op):
            if awaited not in self.end:
                return None
            at = max(at, self.end[awaited] + (self.job.p2p if self.rank_of[awaited] != rank else 0))
        return at

    def run(self):
        free, next_ = [0] * len(self.orders), [0] * len(self.orders)
        left = sum(map(len, self.orders))
        while left:
            before = left
            for rank, order in enumerate(self.orders):
                while next_[rank] < len(order):
                    op, partner = order[next_[rank]]
                    inputs = [self.ready(op, rank)]
                    if partner:  # the first of a pair also waits for the second's inputs
                        inputs.append(self.ready(partner, rank))
                    if None in inputs:
                        break
                    self.start[op] = max(free[rank], *inputs) if len(inputs) > 1 else max(free[rank], inputs[0])
                    self.end[op] = free[rank] = self.start[op] + self.job.times[op[1]]
                    next_[rank] += 1
                    left -= 1
            expect(left < before, 'the orders block')
        return max(self.end.values())

    def peaks(self):
        """The forwards that each rank holds at most, from F until B or W has ended."""
        peaks = []
        for order in self.orders:
            held = peak = 0
            for (_, kind, _, _), _ in order:
                held += kind == 'F'
                peak = max(peak, held)
                held -= kind in 'BW'
            peaks.append(peak)
        return peaks


def check_orders(job, native, pipeline):
    """Every op of every replica is there once, where it belongs."""
    interpreter = Interpreter(job, native)
    expected = {}
    for rank, order in enumerate(map(parse, pipeline['order'])):
        for (stage, kind, microbatch, slice_), _ in order:
            for replica in range(job.replicas):
                moved = microbatch * job.replicas + replica
                expected[stage, kind, moved, slice_] = job.place(rank, moved)
    expect(interpreter.rank_of == expected, 'ops are missing, or on other ranks than they should be')
    return interpreter


def check_next_steps(job):
    report, native = job.report(), job.convert()
    loss = report['loss']
    pipeline = json.loads(run(job.binary, 'convert', job.schedule, *job.shape, *job.costs, '--to', 'native'))
    healthy = job.report(lose=False)
    interpreter = check_orders(job, native, pipeline)
    step = interpreter.run() * 1_000_000
    expect(step == report['makespan_ns'], f'the step takes {step}, not {report["makespan_ns"]}')
    expect(step == loss['next_steps']['step_ns'], 'the table has another step than the report')
    expect(loss['healthy']['step_ns'] == healthy['makespan_ns'], 'the step without a loss differs')
    # Bounds: no rank is faster than its work, no order than the bound, and no loss a gain for work on one rank.
    work = [sum(job.times[op[1]] for op, _ in order) for order in interpreter.orders]
    expect(max(work) * 1_000_000 <= loss['bound_ns'] <= step, f'the bound {loss["bound_ns"]} is none')
    share = -(-job.microbatches // (job.replicas - 1))
    peer_work = sum(job.times[op[1]] for op, _ in parse(pipeline['order'][job.lost]))
    expect(max(work) >= peer_work * (job.microbatches + share) // job.microbatches or job.schedule == 'chimera',
           'the busiest peer has too little work')
    check_memory(job, interpreter, Interpreter(job, pipeline))
    check_without_replica(job, loss)
    return report, healthy


def check_memory(job, interpreter, pipeline):
    """No rank holds more than in its pipeline; a peer, than that and what its part of the lost rank's ops holds."""
    own, now = pipeline.peaks(), interpreter.peaks()
    for rank in range(job.ranks):
        for replica in range(job.replicas - (rank == job.lost)):
            bound = own[rank]
            if rank == job.lost:
                taken = [op for op, _ in pipeline.orders[rank] if op[2] % (job.replicas - 1) == replica]
                held = peak = 0
                for _, kind, _, _ in taken:
                    held += kind == 'F'
                    peak = max(peak, held)
                    held -= kind in 'BW'
                bound += peak
            held = now[job.first(rank) + replica]
            expect(held <= bound or job.schedule == 'forward-only', f'a peer of rank {rank} holds {held} > {bound}')


def check_without_replica(job, loss):
    left = -(-job.microbatches * job.replicas // (job.replicas - 1))
    expect(loss['left_microbatches'] == left, 'the other replicas have another number of micro-batches')
    if loss['without_replica'] is None:
        return
    other = Job(job.binary, job.schedule, job.ranks, job.chunks, left, job.replicas, job.lost, p2p=job.p2p)
    expect(loss['without_replica']['step_ns'] == other.report(lose=False)['makespan_ns'],
           'the step without the replica differs')


def check_this_step(job, report, healthy):
    """Lost at any time: at 0 as if lost before; else never faster than the work that is left."""
    span = healthy['makespan_ns']
    for part in (0, 0.3, 0.6, 0.95):
        at = int(span * part)
        for detection in (0, 5_000_000):
            loss = job.report(f',at={at}ns,detect={detection}ns')['loss']
            step = loss['this_step']['step_ns']
            where = f'lost at {at}, known {detection} later: {step}'
            if at == 0 and detection == 0:
                expect(step == loss['next_steps']['step_ns'], f'{where}, not as the next steps')
            expect(step >= span or job.schedule != '1f1b', f'{where} is a gain')
            share = -(-job.microbatches // (job.replicas - 1))
            busy = report['loss']['healthy_busy'][job.lost]
            least = at + detection + busy * share // job.microbatches
            expect(step >= least or job.schedule == 'chimera', f'{where}, but the share alone ends at {least}')
            expect(loss['lost_work_ns'] <= min(at, busy), f'{where}: more work is lost than there was')
            if job.ranks == 1:  # without a pipeline peers never wait
                own = job.microbatches * sum(job.times[k] for k in 'FIW') * 1_000_000
                exact = max(own, at + detection) + busy * share // job.microbatches
                expect(step == exact, f'{where}, not {exact}')
                expect(loss['lost_work_ns'] == at, f'{where}: {loss["lost_work_ns"]} of {at} ns are lost')


def check_closed_forms(binary):
    """One micro-batch each, 1F1B, b > f. Before the last stage, the two forwards of the peer delay the damaged replica
    by f, and the peer's own backward its backward by b - f more; on the last one, the peer has f + b more to do
    before the last backward leaves it."""
    for ranks in range(1, 5):
        for replicas in range(2, 5):
            for lost in range(ranks):
                for f, i, w in ((3, 2, 4), (2, 3, 5)):
                    job = Job(binary, '1f1b', ranks, 1, 1, replicas, lost, (f, i, w))
                    more = f + i + w if lost == ranks - 1 else i + w
                    step = (ranks * (f + i + w) + more) * 1_000_000
                    loss = job.report()['loss']
                    expect(loss['next_steps']['step_ns'] == step, f'{job}: {loss["next_steps"]}, not {step}')


def check_training(binary):
    jobs = 0
    for schedule, ranks, chunks, microbatches in [('1f1b', 1, 1, 2), ('1f1b', 2, 1, 1), ('1f1b', 2, 1, 3),
                                                  ('1f1b', 3, 1, 4), ('gpipe', 2, 1, 3), ('zb-h1', 3, 1, 3),
                                                  ('interleaved', 2, 2, 2), ('zb-v', 2, 2, 4), ('chimera', 2, 2, 2),
                                                  ('dualpipev', 2, 2, 4)]:
        for replicas in (2, 3):
            for lost in range(ranks):
                job = Job(binary, schedule, ranks, chunks, microbatches, replicas, lost)
                words = ['run', schedule, *job.shape, *job.lose(), '--backend', 'cpu', '--work', 'transformer',
                         '--hidden-size', 8, '--steps', 2, '--format', 'json']
                expect(json.loads(run(binary, *words))['gradients_match'] is True, f'{job}: gradients differ')
                jobs += 1
    words = ['run', '1f1b', '--pp', 2, '-m', 3, '--replicas', 3, '--lose', 'rank=0', '--backend', 'cpu', '--work',
             'transformer', '--hidden-size', 8, '--format', 'json', '--optimizer', 'local']
    expect(json.loads(run(binary, *words))['gradients_match'] is True, 'gradients differ with optimizer steps')
    return jobs + 1


def check_wrong_turns(binary):
    """A file whose turns name another peer than its order has is refused, and one without them too."""
    job = Job(binary, '1f1b', 2, 1, 2, 3, 1)
    native = job.convert()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'job.json')
        path.write_text(json.dumps(native))
        run(binary, 'check', path)
        expect(json.loads(run(binary, 'convert', path, '--to', 'native')) == native, 'reading it back changes it')
        native['turns'][1].reverse()
        path.write_text(json.dumps(native))
        expect('move it there' in run(binary, 'check', path, status=1), 'an op on another rank than its turn is accepted')
        native['turns'][1][0] = 7
        path.write_text(json.dumps(native))
        expect('/turns/1/0' in run(binary, 'check', path, status=2), 'a turn of no replica is accepted')


REFUSED = [  # flags, exit status, a part of the message
    ('--lose rank=1', 2, '--replicas'),
    ('--replicas 1 --lose rank=1', 2, 'at least 2'),
    ('--replicas 2,2 --lose rank=1', 2, 'one number'),
    ('--replicas 2 --lose rank=4', 2, 'ranks are 0..3'),
    ('--replicas 2 --lose rank=-1', 2, 'rank'),
    ('--replicas 2 --lose 1', 2, ''),
    ('--replicas 2 --lose rank=1,at=24ms', 2, 'the step ends at 24 ms'),
    ('--replicas 2 --lose rank=1,detect=1s', 2, 'give at='),
    ('--replicas 2 --lose rank=1 --model llama3-8b --gpu h100', 2, 'leave out --b, --f'),
    ('--replicas 2 --lose rank=1 --slow rank=1,factor=2', 2, '--slow'),
    ('--replicas 2 --lose rank=1 --policy ready', 2, '--policy'),
    ('--replicas 2 --lose rank=1 --fsdp', 2, 'combined with --fsdp'),
    ('--replicas 2 --lose rank=1 --offload 1', 2, 'combined with --offload'),
    ('--replicas 20000 --lose rank=1', 2, '80000 ranks, the limit is 65536'),
]


def check_refusals(binary):
    for flags, status, part in REFUSED:
        words = ['simulate', '1f1b', '--pp', 4, '-m', 5, '--f', 1, '--b', 2, *flags.split()]
        message = run(binary, *words, status=status)
        expect(part in message, f'{flags}: "{part}" is not in: {message}')
    message = run(binary, 'run', '1f1b', '--pp', 2, '-m', 2, '--replicas', 2, '--lose', 'rank=1,at=1ms', status=2)
    expect('simulate' in message, f'run accepts a time: {message}')
    run(binary, 'simulate', 'pipedream', '--pp', 2, '-m', 2, '--replicas', 2, '--lose', 'rank=1', status=1)
    message = run(binary, 'simulate', 'gems', '--pp', 2, '-m', 3, '--replicas', 2, '--lose', 'rank=1', status=1)
    expect('a multiple of 2 as -m' in message, f'gems with an odd number of micro-batches: {message}')
    for more, part in (('rank=1,at=3ms', 'at='), ('rank=1', '--slow')):
        words = ['compare', '1f1b,gpipe', '--pp', 2, '-m', 4, '--replicas', 2, '--lose', more, '--slow', 'rank=1,factor=2']
        message = run(binary, *words, status=2)
        expect(message.count('--lose') == 1 and part in message, f'compare refuses flags row by row: {message}')


def check_files(binary):
    """The report says why the other replicas alone are not timed: a file cannot be rebuilt, chimera needs even numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'pipeline.json')
        path.write_text(run(binary, 'convert', '1f1b', '--pp', 2, '-m', 4, '--to', 'native'))
        text = run(binary, 'simulate', path, '--replicas', 2, '--lose', 'rank=1')
        expect('8 micro-batches on each of the others; not timed: a schedule file' in text, text)
    text = run(binary, 'simulate', 'chimera', '--pp', 2, '-m', 2, '--replicas', 3, '--lose', 'rank=1')
    expect('3 micro-batches on each of the others; not timed: chimera cannot have so many' in text, text)


def list_jobs(binary, is_large):
    replicas, ranks, microbatches = ((2, 3, 4), range(1, 5), range(1, 7)) if is_large else ((2, 3), (1, 2, 3), (1, 3))
    for schedule in SCHEDULES:
        for p in ranks:
            for m in microbatches:
                for d in replicas:
                    for lost in range(p):
                        yield Job(binary, schedule, p, 1, m, d, lost)
    for schedule, shapes in OF_SHAPE.items():
        for p, v, m in shapes:
            for lost in range(p):
                yield Job(binary, schedule, p, v, m, 3, lost)
    for d in replicas:
        yield Job(binary, '1f1b', 4, 1, 6, d, 1, p2p=1)


def main():
    binary, is_large = sys.argv[1], '--large' in sys.argv[2:]
    jobs = 0
    slower = []
    for job in list_jobs(binary, is_large):
        try:
            report, healthy = check_next_steps(job)
            report['loss']['healthy_busy'] = [rank['busy_ns'] for rank in healthy['ranks']]
            if job.schedule in ('1f1b', 'zb-h1', 'dualpipev', 'interleaved'):
                check_this_step(job, report, healthy)
        except Wrong as wrong:
            sys.exit(f'{job}: {wrong}')
        other = report['loss']['without_replica']
        if other and other['step_ns'] < report['loss']['next_steps']['step_ns']:
            slower.append(str(job))
        jobs += 1
    try:
        check_closed_forms(binary)
        check_wrong_turns(binary)
        check_refusals(binary)
        check_files(binary)
        trained = check_training(binary)
    except Wrong as wrong:
        sys.exit(str(wrong))
    print(f'{jobs} jobs, {trained} trained; in {len(slower)} the others alone, without the replica, are faster')


main()

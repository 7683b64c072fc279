"""Zero Bubble Pipeline Parallelism (arXiv 2401.10241), predicted."""

from published_source import Source, bisect, least_squares, ms, stage_phases

ZERO_BUBBLE = {'1F1B': '1f1b', '1F1B-I': 'interleaved', 'ZB-1p': 'zb-1p', 'ZB-2p': 'zb-2p'}
PRESET = {
    '1.5B': 'zero-bubble-1.5b',
    '6.2B': 'zero-bubble-6.2b',
    '14.6B': 'zero-bubble-14.6b',
    '28.3B': 'zero-bubble-28.3b',
}


class ZeroBubble:
    """Zero Bubble Pipeline Parallelism: profiled times in table 9, measured steps in table 4."""

    def __init__(self, program, published):
        self.program = program
        self.models = {row['model']: row for row in published['zb_table3_models']['values']}
        self.times = {(row['model'], row['m']): row for row in published['zb_table9_profiled_times_ms']['values']}
        self.measured = published['zb_table4_measured']['values']
        self.rates = published['zb_table5_bubble_rates']['values']

    def chunks(self, column, model, ranks):
        return (self.models[model]['layers'] + 2) // ranks if column == '1F1B-I' else 1

    def span(self, column, row, hop=0.0):
        """The longest rank's span: with post-validation, steps follow each other at that distance.

        Megatron's interleaved schedule makes one call for the messages of a forward and a backward, where 1F1B makes two
        (core/pipeline_parallel/schedules.py, send_forward_backward_recv_forward_backward): half a hop's overhead per op.
        """
        times = self.times[row['model'], row['m']]
        chunks = self.chunks(column, row['model'], row['p'])
        hop = hop / 2 if column == '1F1B-I' else hop
        words = [
            ZERO_BUBBLE.get(column, column.lower()),
            '--pp',
            row['p'],
            '-m',
            row['m'],
            '--p2p',
            times['T_comm'],
            '--f',
            round(times['T_F'] + chunks * hop, 6),
            '--i',
            round(times['T_B'] + chunks * hop, 6),
            '--w',
            times['T_W'],
        ]
        return ms(self.program.simulate(*words, *(['--vpp', chunks] if chunks > 1 else [])), 'max_span_ns')

    def step(self, column, row):
        return row['m'] * self.models[row['model']]['mbs'] / (row[column]['samples_per_gpu_s'] * row['p']) * 1e3

    def work(self, row):
        times = self.times[row['model'], row['m']]
        return row['m'] * (times['T_F'] + times['T_B'] + times['T_W'])

    def bubble_rates(self):
        source = Source(
            'Zero bubble, table 5: bubble rates (as spans)',
            'exact',
            'none: table 9 gives the times; interleaved is compared with the missing wrap-around messages added',
        )
        for row in self.rates:
            work = self.work(row)
            for column in ('1F1B', '1F1B-I', 'ZB-H1', 'ZB-H2', 'ZB-1p'):
                wrap = row['p'] * self.times[row['model'], row['m']]['T_comm'] if column == '1F1B-I' else 0
                source.add(
                    f"{row['model']} m={row['m']} {column}", self.span(column, row), work / (1 - row[column]) + wrap
                )
        return source

    def searched_rates(self):
        source = Source(
            'Zero bubble, table 5: bubble rates of ZB-2p (as spans)',
            'time',
            'none: table 9 gives the times; what is compared is one search for an order with another',
        )
        for row in self.rates:
            published = self.work(row) / (1 - row['ZB-2p'])
            source.add(f"{row['model']} m={row['m']} ZB-2p", self.span('ZB-2p', row), published)
        source.remark = 'Below 0 is a better order than the published one.'
        return source

    def v_rates(self, rows):
        source = Source(
            'Zero bubble, table 8: bubble rates of ZB-V and others (as spans)',
            'time',
            "per model: a message's and W's share of F + I + W, on 1F1B and ZB-H1 of the first row (the times are not published), with F = I",
        )
        for model in PRESET:
            of_model = [row for row in rows if row['model'] == model]
            if of_model:
                self.add_v_rates(source, of_model)
        return source

    def add_v_rates(self, source, rows):
        work = 30.0

        def span(schedule, row, message, weight, *more):
            forward = (1 - weight) / 2 * work
            words = [
                '--pp',
                row['p'],
                '-m',
                row['m'],
                '--f',
                f'{forward:.6f}',
                '--i',
                f'{forward:.6f}',
                '--w',
                f'{weight * work:.6f}',
                '--p2p',
                f'{message * work:.6f}',
            ]
            return ms(self.program.simulate(schedule, *words, *more), 'max_span_ns')

        def published(row, column):
            return row['m'] * work / (1 - row[column])

        first = rows[0]
        message = bisect(lambda share: span('1f1b', first, share, 0.3), published(first, '1F1B'), 0, 0.2)
        weight = -bisect(lambda share: span('zb-h1', first, message, -share), published(first, 'ZB-H1'), -0.34, -0.1)
        for row in rows:
            wrap = row['p'] * message * work  # as in table 5
            for column, schedule, more in (
                ('1F1B', '1f1b', []),
                ('1F1B-I', 'interleaved', ['--vpp', 2]),
                ('ZB-H1', 'zb-h1', []),
                ('ZB-H2', 'zb-h2', []),
                ('ZB-V', 'zb-v', []),
            ):
                if row is not first or column not in ('1F1B', 'ZB-H1'):
                    source.add(
                        f"{row['model']} m={row['m']} {column}",
                        span(schedule, row, message, weight, *more),
                        published(row, column) + (wrap if column == '1F1B-I' else 0),
                    )

    def synchronisation(self, rows):
        source = Source(
            'Zero bubble, table 10: what a barrier at the end of ZB-2p costs', 'time', 'none: table 9 gives the times'
        )
        for row in rows:
            times = self.times[row['model'], row['m']]
            report = self.program.simulate(
                'zb-2p',
                '--pp',
                row['p'],
                '-m',
                row['m'],
                '--p2p',
                times['T_comm'],
                '--f',
                times['T_F'],
                '--i',
                times['T_B'],
                '--w',
                times['T_W'],
            )
            source.add(
                f"{row['model']}, times slower",
                ms(report) / ms(report, 'max_span_ns'),
                row['post_validation'] / row['allreduce_sync'],
            )
        return source

    def steps(self):
        source = Source(
            'Zero bubble, table 4: measured steps',
            'time',
            'per model: one overhead per hop and one constant per step, on its 1F1B rows; interleaved has half the calls',
        )
        ordered = 0
        for model in self.models:
            rows = [row for row in self.measured if row['model'] == model]
            fit = []
            for row in rows:
                step, free = self.step('1F1B', row), self.span('1F1B', row)
                fit.append(((self.span('1F1B', row, 1.0) - free) / step, 1 / step, 1 - free / step))
            hop, constant = least_squares(fit)
            for row in rows:
                predicted = {column: self.span(column, row, hop) + constant for column in ZERO_BUBBLE}
                ordered += sum(
                    (predicted[a] < predicted[b]) == (self.step(a, row) < self.step(b, row))
                    for a in ZERO_BUBBLE
                    for b in ZERO_BUBBLE
                    if a < b
                )
                for column in ('1F1B-I', 'ZB-1p', 'ZB-2p'):
                    source.add(f"{model} m={row['m']} {column}", predicted[column], self.step(column, row))
        pairs = 6 * len(self.measured)
        self.pairs_in_order = (ordered, pairs)
        source.remark = f'{ordered} of {pairs} pairs of schedules in the measured order.'
        return source

    def memory(self):
        source = Source(
            'Zero bubble, table 4: memory',
            'memory',
            "per model: one constant (driver, allocator) on its 1F1B row; scores kept",
        )
        for model, preset in PRESET.items():
            row = next(row for row in self.measured if row['model'] == model)

            def gib(column):
                chunks = self.chunks(column, model, row['p'])
                report = self.program.simulate(
                    ZERO_BUBBLE[column],
                    '--pp',
                    row['p'],
                    '-m',
                    row['m'],
                    '--model',
                    preset,
                    '--gpu',
                    'a100',
                    '--save-scores',
                    '--micro-batch-size',
                    self.models[model]['mbs'],
                    '--embedding-layers',
                    1,
                    '--head-layers',
                    1,
                    *(['--vpp', chunks] if chunks > 1 else []),
                )
                return max(rank['peak_memory_bytes'] for rank in report['ranks']) / 2**30

            constant = row['1F1B']['mem_GB'] - gib('1F1B')
            for column in ('1F1B-I', 'ZB-1p', 'ZB-2p'):
                source.add(f'{model} {column}', gib(column) + constant, row[column]['mem_GB'])
        return source


def zero_bubble_phases(program, published):
    source = Source(
        'Zero bubble, table 9: F, I and W of a stage',
        'time',
        'three assumptions of every model: how fast GEMMs are (sustained_teraflops, half_size, on W) and how fast elementwise kernels are (elementwise_efficiency, on F and I and on the next table)',
    )
    models = {row['model']: row for row in published['zb_table3_models']['values']}
    for row in published['zb_table9_profiled_times_ms']['values']:
        model = models[row['model']]
        if row['m'] != model['m'][0]:
            continue  # the same ops again
        phases = stage_phases(
            program,
            '--pp',
            row['p'],
            '-m',
            row['m'],
            '--model',
            PRESET[row['model']],
            '--gpu',
            'a100',
            '--save-scores',
            '--micro-batch-size',
            model['mbs'],
            '--embedding-layers',
            1,
            '--head-layers',
            1,
        )
        for kind, name in (('F', 'T_F'), ('I', 'T_B'), ('W', 'T_W')):
            source.add(f"{row['model']} {name}", phases[kind], row[name])
    return source

"""Predicts what papers measured, and says how far off the predictions are.

    published_accuracy.py BINARY PUBLISHED.json                 checks the limits, exit 1 above one
    published_accuracy.py BINARY PUBLISHED.json --write FILE    writes the table of docs/

Every case states what was calibrated on; cells that a calibration used are not counted.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

# median, worst; ab initio: from a model's and a device's published numbers alone, nothing fitted to the source
LIMITS = {'time': (0.05, 0.12), 'memory': (0.05, 0.12), 'exact': (1e-3, 1e-3), 'ab initio': (0.10, 0.20)}
INTRODUCTION = """# Published measurements, predicted

How far predictions are from what papers measured, with the calibration that each source allows. Cells
that a calibration used are not counted. This file is written by

```sh
python3 tests/golden/published_accuracy.py build/release/bubblescope published.json --write docs/accuracy_published.md
```

from a file of the published numbers, each with its source; the limits (median 5 %, worst 12 %) are a test. Where
nothing at all is fitted to a source (`none: ab initio`) they are 10 % and 20 %.
"""


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


ZERO_BUBBLE = {'1F1B': '1f1b', '1F1B-I': 'interleaved', 'ZB-1p': 'zb-1p', 'ZB-2p': 'zb-2p'}
PRESET = {'1.5B': 'zero-bubble-1.5b', '6.2B': 'zero-bubble-6.2b', '14.6B': 'zero-bubble-14.6b', '28.3B': 'zero-bubble-28.3b'}


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
        """The longest rank's span: with post-validation, steps follow each other at that distance."""
        times = self.times[row['model'], row['m']]
        chunks = self.chunks(column, row['model'], row['p'])
        words = [ZERO_BUBBLE.get(column, column.lower()), '--pp', row['p'], '-m', row['m'], '--p2p', times['T_comm'],
                 '--f', round(times['T_F'] + chunks * hop, 6), '--i', round(times['T_B'] + chunks * hop, 6), '--w', times['T_W']]
        return ms(self.program.simulate(*words, *(['--vpp', chunks] if chunks > 1 else [])), 'max_span_ns')

    def step(self, column, row):
        return row['m'] * self.models[row['model']]['mbs'] / (row[column]['samples_per_gpu_s'] * row['p']) * 1e3

    def bubble_rates(self):
        source = Source('Zero bubble, table 5: bubble rates (as spans)', 'exact', 'none: table 9 gives the times; interleaved is compared with the missing wrap-around messages added')
        for row in self.rates:
            times = self.times[row['model'], row['m']]
            work = row['m'] * (times['T_F'] + times['T_B'] + times['T_W'])
            for column in ('1F1B', '1F1B-I', 'ZB-H1', 'ZB-H2'):
                wrap = row['p'] * times['T_comm'] if column == '1F1B-I' else 0
                source.add(f"{row['model']} m={row['m']} {column}", self.span(column, row), work / (1 - row[column]) + wrap)
        return source

    def steps(self):
        source = Source('Zero bubble, table 4: measured steps', 'time', 'per model: one overhead per hop and one constant per step, on its 1F1B rows')
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
                ordered += sum((predicted[a] < predicted[b]) == (self.step(a, row) < self.step(b, row))
                               for a in ZERO_BUBBLE for b in ZERO_BUBBLE if a < b)
                for column in ('1F1B-I', 'ZB-1p', 'ZB-2p'):
                    source.add(f"{model} m={row['m']} {column}", predicted[column], self.step(column, row))
        pairs = 6 * len(self.measured)
        source.remark = f'{ordered} of {pairs} pairs of schedules in the measured order.'
        return source

    def memory(self):
        source = Source('Zero bubble, table 4: memory', 'memory', "per model: one constant (driver, allocator) on its 1F1B row; scores kept")
        for model, preset in PRESET.items():
            row = next(row for row in self.measured if row['model'] == model)

            def gib(column):
                chunks = self.chunks(column, model, row['p'])
                report = self.program.simulate(
                    ZERO_BUBBLE[column], '--pp', row['p'], '-m', row['m'], '--model', preset, '--gpu', 'a100', '--keep-scores',
                    '--micro-batch-size', self.models[model]['mbs'], '--embedding-layers', 1, '--head-layers', 1,
                    *(['--vpp', chunks] if chunks > 1 else []))
                return max(rank['peak_memory_bytes'] for rank in report['ranks']) / 2**30

            constant = row['1F1B']['mem_GB'] - gib('1F1B')
            for column in ('1F1B-I', 'ZB-1p', 'ZB-2p'):
                source.add(f'{model} {column}', gib(column) + constant, row[column]['mem_GB'])
        return source


def stage_phases(program, *words):
    """Milliseconds of F, I and W of one micro-batch on a middle rank of zb-h1."""
    report = program.simulate('zb-h1', *words, '--optimizer', 'none')
    busy = report['ranks'][report['pp'] // 2]['busy_by_kind_ns']
    return {kind: busy[kind] / report['microbatches'] / 1e6 for kind in 'FIW'}


def zero_bubble_phases(program, published):
    source = Source('Zero bubble, table 9: F, I and W of a stage', 'ab initio', "none: ab initio; but how fast products are was fitted to W (product_rate, half_rate_size)")
    models = {row['model']: row for row in published['zb_table3_models']['values']}
    for row in published['zb_table9_profiled_times_ms']['values']:
        model = models[row['model']]
        if row['m'] != model['m'][0]:
            continue  # the same ops again
        phases = stage_phases(program, '--pp', row['p'], '-m', row['m'], '--model', PRESET[row['model']], '--gpu', 'a100', '--keep-scores',
                              '--micro-batch-size', model['mbs'], '--embedding-layers', 1, '--head-layers', 1)
        for kind, name in (('F', 'T_F'), ('I', 'T_B'), ('W', 'T_W')):
            source.add(f"{row['model']} {name}", phases[kind], row[name])
    return source


LAYER_FLAGS = {'baseline no recompute': ['--no-sequence-parallel'], 'sequence parallel': [],
               'full recompute': ['--no-sequence-parallel', '--recompute', 'full'],
               'selective': ['--no-sequence-parallel', '--recompute', 'selective'], 'selective+seq': ['--recompute', 'selective']}


def korthikanti_layer(program, published):
    source = Source('Reducing activation recomputation, table 4: one layer of 22B', 'ab initio', 'none: ab initio')
    for row in published['korthikanti_table4_layer_ms']['values']:
        # Three stages of one layer each and the tables elsewhere: the middle one is the layer.
        config = dict(GPT_KEYS, n_embd=6144, n_layer=1, n_head=64, n_inner=4 * 6144)
        phases = program.phases_of(config, '--pp', 3, '-m', 3, '--layout', 'E|t|L', '--gpu', 'a100', '--keep-scores', '--tp', 8,
                                   '--micro-batch-size', 4, *LAYER_FLAGS[row['exp']])
        source.add(f"{row['exp']}, forward", phases['F'], row['fwd'])
        source.add(f"{row['exp']}, backward", phases['I'] + phases['W'], row['bwd'])
    return source


# arXiv 2205.05198, tables 3 and 5: preset, pipeline ranks, chunks, micro-batches, their size, seconds of a step with full
# recomputation and with sequence parallelism and selective recomputation.
KORTHIKANTI_STEPS = [('megatron-22b', 1, 1, 1, 4, 1.42, 1.10), ('megatron-175b', 8, 3, 64, 1, 18.13, 13.75),
                     ('megatron-530b', 35, 3, 280, 1, 49.05, 37.83), ('megatron-1t', 64, 1, 512, 1, 94.42, 71.49)]
# What Megatron-LM of the time did: layers shared out evenly, scores kept, no sharded optimizer.
MEGATRON = ['--gpu', 'a100', '--tp', 8, '--keep-scores', '--zero', 0, '--embedding-layers', 0, '--head-layers', 0]


def megatron_schedule(ranks, chunks, microbatches):
    return ['interleaved' if chunks > 1 else '1f1b', '--pp', ranks, '-m', microbatches, *(['--vpp', chunks] if chunks > 1 else [])]


def korthikanti_steps(program, published):
    source = Source('Reducing activation recomputation, table 5: steps of 22B to 1T', 'ab initio', 'none: ab initio')
    for preset, ranks, chunks, microbatches, size, full, selective in KORTHIKANTI_STEPS:
        words = [*megatron_schedule(ranks, chunks, microbatches), '--model', preset, '--micro-batch-size', size, *MEGATRON]
        source.add(f'{preset}, full', ms(program.simulate(*words, '--no-sequence-parallel', '--recompute', 'full')) / 1e3, full)
        source.add(f'{preset}, selective and sequence parallel', ms(program.simulate(*words, '--recompute', 'selective')) / 1e3, selective)
    return source


# arXiv 2104.04473, table 1, with micro-batch sizes and chunks of its scripts (Megatron-LM, examples/sc21/run_table_1.sh):
# billions of parameters, heads, hidden size, layers, tensor ranks, pipeline ranks, chunks, devices, batch, micro-batch size, TFLOP/s.
SC21_TABLE1 = [(1.7, 24, 2304, 24, 1, 1, 1, 32, 512, 16, 137), (3.6, 32, 3072, 30, 2, 1, 1, 64, 512, 16, 138), (7.5, 32, 4096, 36, 4, 1, 1, 128, 512, 16, 142),
               (18.4, 48, 6144, 40, 8, 1, 1, 256, 1024, 8, 135), (39.1, 64, 8192, 48, 8, 2, 1, 512, 1536, 4, 138), (76.1, 80, 10240, 60, 8, 4, 3, 1024, 1792, 2, 140),
               (145.6, 96, 12288, 80, 8, 8, 2, 1536, 2304, 2, 148), (310.1, 128, 16384, 96, 8, 16, 2, 1920, 2160, 1, 155),
               (529.6, 128, 20480, 105, 8, 35, 3, 2520, 2520, 1, 163), (1008.0, 160, 25600, 128, 8, 64, 1, 3072, 3072, 1, 163)]
GPT_KEYS = {'n_positions': 2048, 'vocab_size': 51200, 'resid_pdrop': 0.1}


def sc21_teraflops(program, row, slowdown=1.0):
    _, heads, hidden, layers, tensor, ranks, chunks, devices, batch, size, _ = row
    config = dict(GPT_KEYS, n_embd=hidden, n_layer=layers, n_head=heads, n_inner=4 * hidden)
    data = devices // (tensor * ranks)
    words = [*megatron_schedule(ranks, chunks, batch // (data * size)), '--micro-batch-size', size, '--dp', data, *MEGATRON[:3], tensor, *MEGATRON[4:],
             '--no-sequence-parallel', '--recompute', 'full', '--slowdown', slowdown]
    flops = 96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))  # its equation 3
    return flops / (ms(program.simulate_config(config, *words)) / 1e3) / devices / 1e12


def add_sc21(program, source, rows):
    slowdown = fit_slowdown(lambda slowdown: sc21_teraflops(program, rows[0], slowdown), rows[0][-1])
    for row in rows[1:]:
        source.add(f'{row[0]}B on {row[7]} GPUs', sc21_teraflops(program, row, slowdown), row[-1])
    free = [sc21_teraflops(program, row) / row[-1] - 1 for row in rows]
    source.remark = (f'The slowdown is {slowdown:.3f}. Without it, ab initio, all {len(rows)} cells: median {100 * statistics.median(free):+.1f} %, '
                     f'from {100 * min(free):+.1f} to {100 * max(free):+.1f} %.')
    return source


def sc21_table1(program, published):
    source = Source('Megatron-LM (SC21), table 1: TFLOP/s per GPU, 1.7B to 1T', 'time', 'one slowdown of all products, on the first row')
    return add_sc21(program, source, SC21_TABLE1)


def sc21_table2(program, published):
    source = Source('Megatron-LM (SC21), table 2: TFLOP/s per GPU at fixed batches', 'time',
                    'one slowdown of all products, on the first row; interleaved with one chunk per 2 layers (175B) and per layer (530B)')
    rows = []
    shapes = {96: (96, 12288, 96, 12, 4), 280: (128, 20480, 105, 35, 3)}  # heads, hidden size, layers, pipeline ranks, chunks
    for row in published['megatron_sc21_table2']['values']:
        heads, hidden, layers, ranks, chunks = shapes[row['M']]
        rows.append((row['params_B'], heads, hidden, layers, 8, ranks, chunks, row['gpus'], row['batch'], row['mbs'], row['tflops']))
    return add_sc21(program, source, rows)


def aceso_links(program, published):
    source = Source('Aceso: point-to-point bandwidth of V100s', 'time', 'per link: latency and bandwidth from the first and the last size')
    values = published['aceso_p2p_bandwidth']
    sizes = [size * 10**6 for size in values['parameters']['size_MB']]
    for link, measured in values['values'].items():
        times = [size / (rate * 1e9) for size, rate in zip(sizes, measured)]
        bandwidth = (sizes[-1] - sizes[0]) / (times[-1] - times[0])
        latency = times[0] - sizes[0] / bandwidth
        for size, rate in list(zip(sizes, measured))[1:-1]:
            # A forward of no time on each of two ranks: what remains is the message.
            report = program.simulate('forward-only', '--pp', 2, '-m', 1, '--f', '1ns', '--p2p', f'{latency * 1e9:.0f}ns',
                                      '--network', f'bytes={size}B,link={bandwidth * 8 / 1e9:.4f}')
            source.add(f'{link[:5]}, {size // 10**6} MB', size / report['makespan_ns'], rate)
    return source


def llama3(program, published):
    source = Source('Llama 3 405B, table 4: TFLOP/s per GPU', 'time', 'one slowdown of all compute, on the first row; interleaved with one layer per chunk')
    rows = published['llama3_table4']['values']

    def teraflops(row, slowdown):
        report = program.simulate(
            'interleaved', '--pp', row['pp'], '--vpp', 8, '-m', row['batch_per_dp'], '--model', 'llama3-405b', '--gpu', 'h100', '--tp', row['tp'],
            '--cp', row['cp'], '--dp', row['dp'], '--zero', 2, '--seq-length', row['seq'], '--slowdown', slowdown)
        tokens = row['seq'] * row['batch_per_dp'] * row['dp']
        parameters, attention = 405.85e9, 6 * 126 * 16384 * row['seq']  # causal: 2 s h per token and layer in F, three times with B
        return tokens * (6 * parameters + attention) / (report['makespan_ns'] / 1e9) / row['gpus'] / 1e12

    slowdown = fit_slowdown(lambda slowdown: teraflops(rows[0], slowdown), rows[0]['tflops'])
    for row in rows[1:]:
        source.add(f"{row['gpus']} GPUs, {row['seq']} tokens", teraflops(row, slowdown), row['tflops'])
    free = [teraflops(row, 1.0) / row['tflops'] - 1 for row in rows]
    source.remark = f'The slowdown is {slowdown:.3f}. Without it, ab initio, the three cells are {", ".join(f"{100 * error:+.0f} %" for error in free)} off.'
    return source


def gpipe(program, published):
    source = Source('GPipe, tables 2 and 3: Transformer, 32 micro-batches', 'time',
                    'the cell of 2 partitions; rows with fewer micro-batches change their size by an unpublished amount and are left out')
    rows = {'TPU': published['gpipe_table2']['values']['Transformer']['M32'], 'GPU': published['gpipe_table3']['values']['Transformer']}
    for device, row in rows.items():
        per_partition = {ranks: ms(program.simulate('gpipe', '--pp', ranks, '-m', 32, '--f', 1, '--b', 3)) * ranks for ranks in (2, 4, 8)}
        for ranks, measured in zip((4, 8), row[1:]):
            # The whole model is cut into `ranks` equal parts: a part is 1/ranks of the work.
            speed_up = per_partition[2] / per_partition[ranks] * (ranks / 2) ** 2
            source.add(f'{device}, {ranks} partitions', row[0] * speed_up, measured)
    return source


def gpipe_parameters(program, published):
    source = Source('GPipe, table 1: parameter memory of Transformer-L', 'memory', 'none: 12 bytes per parameter; the column of one device without a pipeline contradicts its own parameters and is left out')
    values = published['gpipe_table1']['values']['Transformer-L']
    for layers, gib in list(zip(values['L'], values['param_mem_G']))[1:]:
        config = {'n_embd': 2048, 'n_layer': layers, 'n_head': 32, 'n_inner': 8192, 'vocab_size': 32000, 'n_positions': 1024, 'tie_word_embeddings': False}
        source.add(f'{layers} layers', program.billions(config) * 1e9 * 12 / 2**30, gib)
    return source


def torchgpipe(program, published):
    source = Source('torchgpipe: AmoebaNet-D (18, 256) on P40', 'time', "per number of devices: the whole and the largest stage's time, fitted to all three "
                    'cells, because the size of a micro-batch changes from cell to cell: the errors are what two numbers cannot explain')
    rows = {(row['n'], row['m']): row['samples_per_s'] for row in published['torchgpipe_amoebanet_speed']['values']}
    for ranks in (2, 4, 8):
        # A step of m micro-batches: through all stages once, and m - 1 times the largest.
        speeds = {m: rows[ranks, m] for m in (1, 4, 32)}
        relative = {m: 1.0 for m in speeds}  # predicted over measured speed: what is squared is its distance from 1
        for _ in range(20):
            whole, largest = least_squares([(k * speed / m, k * (m - 1) * speed / m, k) for (m, speed), k in zip(speeds.items(), relative.values())])
            relative = {m: m / speed / (whole + (m - 1) * largest) for m, speed in speeds.items()}
        others = (whole - largest) / (ranks - 1)
        stages = [{'forward': f'{round(time * 1e9 / 4)}ns', 'backward': f'{round(time * 1e9 * 3 / 4)}ns'} for time in [largest] + [others] * (ranks - 1)]
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump({'format': 'bubblescope-costs/1', 'stages': stages}, file)
            file.flush()
            for m, speed in speeds.items():
                step = ms(program.simulate('gpipe', '--pp', ranks, '-m', m, '--costs', file.name))
                source.add(f'{ranks} devices, {m} micro-batches', m / (step / 1e3), speed)
    return source


def dualpipe(program, published):
    source = Source("DualPipe's table: bubbles", 'exact', 'none')
    for ranks in (4, 8, 16):
        f, i, w = 3, 4, 2
        b, m = i + w, 2 * ranks
        words = ['--pp', ranks, '-m', m, '--f', f, '--i', i, '--w', w, '--b', b]
        dual = ['--f', 2 * f, '--i', 2 * i, '--w', 2 * w, '--b', 2 * b, '--costs-per', 'chunk']
        measured = lambda name, extra=(): program.simulate(name, *words[:4], *(extra or words[4:]))
        source.add(f'1f1b, {ranks} ranks', measured('1f1b')['bubble']['time_ns'] / 1e6, (ranks - 1) * (f + b))
        source.add(f'zb-h1, {ranks} ranks', measured('zb-h1')['bubble']['time_ns'] / 1e6, (ranks - 1) * (f + b - 2 * w))
        peak = max(rank['peak_activations'] for rank in measured('dualpipe', dual)['ranks'])
        source.add(f'dualpipe, {ranks} ranks, activations', peak, ranks + 1)
    return source


def collect(program, published):
    zero_bubble = ZeroBubble(program, published)
    others = [llama3, gpipe, gpipe_parameters, torchgpipe, dualpipe, aceso_links, zero_bubble_phases, korthikanti_layer, korthikanti_steps,
              sc21_table1, sc21_table2]
    return [zero_bubble.bubble_rates(), zero_bubble.steps(), zero_bubble.memory(), *(source(program, published) for source in others)]


def percent(error):
    return f'{100 * error:+.1f} %'


def document(sources):
    text = INTRODUCTION + '\n| source | calibrated on | cells | median error | worst |\n|---|---|---|---|---|\n'
    for source in sources:
        errors = source.errors()
        text += f'| {source.title} | {source.calibration} | {len(errors)} | {100 * statistics.median(errors):.1f} % | {100 * max(errors):.1f} % |\n'
    for source in sources:
        text += f'\n## {source.title}\n\n' + (source.remark + '\n\n' if source.remark else '')
        text += '| case | predicted | published | error |\n|---|---|---|---|\n'
        for name, predicted, measured, error in source.cells:
            text += f'| {name} | {predicted:.4g} | {measured:.4g} | {percent(error)} |\n'
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('published')
    parser.add_argument('--write', metavar='FILE')
    args = parser.parse_args()
    if not os.path.exists(args.published):
        print(f'skipped: {args.published} is not there')
        return 77
    with open(args.published) as file:
        published = {entry['id']: entry for entry in json.load(file)}
    sources = collect(Program(args.binary), published)
    if args.write:
        with open(args.write, 'w') as file:
            file.write(document(sources))
    for source in sources:
        errors = source.errors()
        verdict = 'within' if source.within() else 'ABOVE'
        print(f'{verdict} its limits: {source.title}: median {100 * statistics.median(errors):.2f} %, worst {100 * max(errors):.2f} %, {len(errors)} cells')
    return 0 if all(source.within() for source in sources) else 1


if __name__ == '__main__':
    sys.exit(main())

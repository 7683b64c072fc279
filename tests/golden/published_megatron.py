"""Steps of transformers that Megatron-LM and its like trained, predicted."""

import statistics

from published_source import Source, fit_slowdown, ms

LAYER_FLAGS = {
    'baseline no recompute': ['--no-sequence-parallel'],
    'sequence parallel': [],
    'full recompute': ['--no-sequence-parallel', '--recompute', 'full'],
    'selective': ['--no-sequence-parallel', '--recompute', 'selective'],
    'selective+seq': ['--recompute', 'selective'],
}


def korthikanti_layer(program, published):
    source = Source(
        'Reducing activation recomputation, table 4: one layer of 22B',
        'time',
        'elementwise_efficiency, an assumption of every model, was chosen between this table and the one before',
    )
    for row in published['korthikanti_table4_layer_ms']['values']:
        # Three stages of one layer each, with the tables elsewhere: the middle one is the layer.
        config = dict(GPT_KEYS, n_embd=6144, n_layer=1, n_head=64, n_inner=4 * 6144)
        phases = program.phases_of(
            config,
            '--pp',
            3,
            '-m',
            3,
            '--layout',
            'E|t|L',
            '--gpu',
            'a100',
            '--save-scores',
            '--tp',
            8,
            '--micro-batch-size',
            4,
            *LAYER_FLAGS[row['exp']],
        )
        source.add(f"{row['exp']}, forward", phases['F'], row['fwd'])
        source.add(f"{row['exp']}, backward", phases['I'] + phases['W'], row['bwd'])
    return source


# arXiv 2205.05198, tables 3 and 5: preset, pipeline ranks, chunks, micro-batches, their size, seconds of a step with full
# recomputation and with sequence parallelism and selective recomputation.
KORTHIKANTI_STEPS = [
    ('megatron-22b', 1, 1, 1, 4, 1.42, 1.10),
    ('megatron-175b', 8, 3, 64, 1, 18.13, 13.75),
    ('megatron-530b', 35, 3, 280, 1, 49.05, 37.83),
    ('megatron-1t', 64, 1, 512, 1, 94.42, 71.49),
]
# Megatron-LM's defaults at the time: layers divided evenly, scores saved, no sharded optimizer, blocking sends, 16-bit
# gradients added to 32-bit ones by a kernel of their own.
OF_ITS_TIME = 'Megatron-LM of its time, whose sends are waited for and whose gradients a kernel of its own adds up (12 bytes per weight)'
MEGATRON = [
    '--gpu',
    'a100',
    '--tp',
    8,
    '--save-scores',
    '--zero',
    0,
    '--embedding-layers',
    0,
    '--head-layers',
    0,
    '--message-exposed',
    1,
    '--accumulation-bytes',
    12,
]


def megatron_schedule(ranks, chunks, microbatches):
    return [
        'interleaved' if chunks > 1 else '1f1b',
        '--pp',
        ranks,
        '-m',
        microbatches,
        *(['--vpp', chunks] if chunks > 1 else []),
    ]


def korthikanti_steps(program, published):
    source = Source(
        'Reducing activation recomputation, table 5: steps of 22B to 1T', 'ab initio', f'none: ab initio; {OF_ITS_TIME}'
    )
    for preset, ranks, chunks, microbatches, size, full, selective in KORTHIKANTI_STEPS:
        words = [
            *megatron_schedule(ranks, chunks, microbatches),
            '--model',
            preset,
            '--micro-batch-size',
            size,
            *MEGATRON,
        ]
        source.add(
            f'{preset}, full', ms(program.simulate(*words, '--no-sequence-parallel', '--recompute', 'full')) / 1e3, full
        )
        source.add(
            f'{preset}, selective and sequence parallel',
            ms(program.simulate(*words, '--recompute', 'selective')) / 1e3,
            selective,
        )
    return source


# arXiv 2104.04473, table 1, with micro-batch sizes and chunks of its scripts (Megatron-LM, examples/sc21/run_table_1.sh):
# billions of parameters, heads, hidden size, layers, tensor ranks, pipeline ranks, chunks, devices, batch, micro-batch size, TFLOP/s.
SC21_TABLE1 = [
    (1.7, 24, 2304, 24, 1, 1, 1, 32, 512, 16, 137),
    (3.6, 32, 3072, 30, 2, 1, 1, 64, 512, 16, 138),
    (7.5, 32, 4096, 36, 4, 1, 1, 128, 512, 16, 142),
    (18.4, 48, 6144, 40, 8, 1, 1, 256, 1024, 8, 135),
    (39.1, 64, 8192, 48, 8, 2, 1, 512, 1536, 4, 138),
    (76.1, 80, 10240, 60, 8, 4, 3, 1024, 1792, 2, 140),
    (145.6, 96, 12288, 80, 8, 8, 2, 1536, 2304, 2, 148),
    (310.1, 128, 16384, 96, 8, 16, 2, 1920, 2160, 1, 155),
    (529.6, 128, 20480, 105, 8, 35, 3, 2520, 2520, 1, 163),
    (1008.0, 160, 25600, 128, 8, 64, 1, 3072, 3072, 1, 163),
]
GPT_KEYS = {'n_positions': 2048, 'vocab_size': 51200, 'resid_pdrop': 0.1}


def sc21_teraflops(program, row, slowdown=1.0):
    _, heads, hidden, layers, tensor, ranks, chunks, devices, batch, size, _ = row
    config = dict(GPT_KEYS, n_embd=hidden, n_layer=layers, n_head=heads, n_inner=4 * hidden)
    data = devices // (tensor * ranks)
    words = [
        *megatron_schedule(ranks, chunks, batch // (data * size)),
        '--micro-batch-size',
        size,
        '--dp',
        data,
        *MEGATRON[:3],
        tensor,
        *MEGATRON[4:],
        '--no-sequence-parallel',
        '--recompute',
        'full',
        '--slowdown',
        slowdown,
    ]
    flops = (
        96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
    )  # its equation 3
    return flops / (ms(program.simulate_config(config, *words)) / 1e3) / devices / 1e12


def add_sc21(program, source, rows):
    fitted = next(row for row in rows if row[4] == 8)
    slowdown = fit_slowdown(lambda slowdown: sc21_teraflops(program, fitted, slowdown), fitted[-1])
    for row in rows:
        if row is fitted:
            continue
        source.add(f'{row[0]}B on {row[7]} GPUs', sc21_teraflops(program, row, slowdown), row[-1])
    free = [sc21_teraflops(program, row) / row[-1] - 1 for row in rows]
    source.remark = (
        f'The slowdown is {slowdown:.3f}. Without it, ab initio, all {len(rows)} cells: median {100 * statistics.median(free):+.1f} %, '
        f'from {100 * min(free):+.1f} to {100 * max(free):+.1f} %.'
    )
    return source


def sc21_table1(program, published):
    source = Source(
        'Megatron-LM (SC21), table 1: TFLOP/s per GPU, 1.7B to 1T',
        'time',
        f'one slowdown of all GEMMs, on the smallest model with 8 tensor ranks, which all larger ones have; {OF_ITS_TIME}',
    )
    return add_sc21(program, source, SC21_TABLE1)


def sc21_table2(program, published):
    source = Source(
        'Megatron-LM (SC21), table 2: TFLOP/s per GPU at fixed batches',
        'time',
        f'one slowdown of all GEMMs, on the first row; interleaved with one chunk per 2 layers (175B) and per layer (530B); {OF_ITS_TIME}',
    )
    rows = []
    shapes = {
        96: (96, 12288, 96, 12, 4),
        280: (128, 20480, 105, 35, 3),
    }  # heads, hidden size, layers, pipeline ranks, chunks
    for row in published['megatron_sc21_table2']['values']:
        heads, hidden, layers, ranks, chunks = shapes[row['M']]
        rows.append(
            (
                row['params_B'],
                heads,
                hidden,
                layers,
                8,
                ranks,
                chunks,
                row['gpus'],
                row['batch'],
                row['mbs'],
                row['tflops'],
            )
        )
    return add_sc21(program, source, rows)


def llama3(program, published):
    source = Source(
        'Llama 3 405B, table 4: TFLOP/s per GPU',
        'time',
        'one slowdown of all compute, on the first row; interleaved with one layer per chunk',
    )
    rows = published['llama3_table4']['values']

    def teraflops(row, slowdown):
        report = program.simulate(
            'interleaved',
            '--pp',
            row['pp'],
            '--vpp',
            8,
            '-m',
            row['batch_per_dp'],
            '--model',
            'llama3-405b',
            '--gpu',
            'h100',
            '--tp',
            row['tp'],
            '--cp',
            row['cp'],
            '--dp',
            row['dp'],
            '--zero',
            1,  # gradients are added up over the micro-batches, in 32 bits (section 3.3.2)
            '--seq-length',
            row['seq'],
            '--slowdown',
            slowdown,
        )
        tokens = row['seq'] * row['batch_per_dp'] * row['dp']
        parameters, attention = (
            405.85e9,
            6 * 126 * 16384 * row['seq'],
        )  # causal: 2 s h per token and layer in F, three times with B
        return tokens * (6 * parameters + attention) / (report['makespan_ns'] / 1e9) / row['gpus'] / 1e12

    slowdown = fit_slowdown(lambda slowdown: teraflops(rows[0], slowdown), rows[0]['tflops'])
    for row in rows[1:]:
        source.add(f"{row['gpus']} GPUs, {row['seq']} tokens", teraflops(row, slowdown), row['tflops'])
    free = [teraflops(row, 1.0) / row['tflops'] - 1 for row in rows]
    source.remark = f'The slowdown is {slowdown:.3f}. Without it, ab initio, the three cells are {", ".join(f"{100 * error:+.0f} %" for error in free)} off.'
    return source


def fit_steps(source, seconds, rows):
    """One slowdown on the first row; rows are (name, what `seconds` takes, measured seconds)."""
    _, first, fitted = rows[0]
    slowdown = fit_slowdown(lambda slowdown: 1 / seconds(first, slowdown), 1 / fitted)
    for name, what, measured in rows[1:]:
        source.add(name, seconds(what, slowdown), measured)
    free = seconds(first, 1.0) / fitted - 1
    source.remark = f'The slowdown is {slowdown:.3f}; without it the first row is {100 * free:+.0f} % off.'
    return source


# arXiv 2201.11990, section 2.3: 530B in pipelines of 35 stages of 8 GPUs, a batch of 1,920; pipelines and seconds of a step.
MT_NLG = [(8, 60.1), (10, 50.2), (12, 44.4)]


def mt_nlg(program, published):
    source = Source(
        'MT-NLG 530B: seconds of a step on 280 to 420 nodes',
        'time',
        f'one slowdown of all compute, on the first row; {OF_ITS_TIME}',
    )

    def seconds(data, slowdown):
        words = [
            '1f1b',
            '--pp',
            35,
            '-m',
            1920 // data,
            '--dp',
            data,
            '--model',
            'megatron-530b',
            *MEGATRON,
            '--no-sequence-parallel',
            '--recompute',
            'full',
            '--slowdown',
            slowdown,
        ]
        return ms(program.simulate(*words)) / 1e3

    return fit_steps(source, seconds, [(f'{35 * data} nodes', data, measured) for data, measured in MT_NLG])


# arXiv 1909.08053, table 1 and figure 5: hidden size, layers, heads and tensor ranks on V100s, 8 sequences of 1,024 tokens; and the
# share of one GPU's 39 TFLOP/s that each of them reaches.
MEGATRON_2019 = [(1536, 40, 16, 1, 1.0), (1920, 54, 20, 2, 0.95), (2304, 64, 24, 4, 0.82), (3072, 72, 32, 8, 0.77)]


def megatron_2019(program, published):
    source = Source(
        'Megatron-LM (2019), figure 5: seconds of a step of 1.2B to 8.3B on 1 to 8 V100s',
        'time',
        'one slowdown of all compute, on one GPU',
    )

    def seconds(row, slowdown):
        hidden, layers, heads, tensor, _ = row
        config = dict(GPT_KEYS, n_positions=1024, n_embd=hidden, n_layer=layers, n_head=heads, n_inner=4 * hidden)
        report = program.simulate_config(
            config,
            '1f1b',
            '--pp',
            1,
            '-m',
            1,
            '--micro-batch-size',
            8,
            '--gpu',
            'v100',
            '--gpus-per-node',
            16,
            '--tp',
            tensor,
            '--save-scores',
            '--zero',
            0,
            '--no-sequence-parallel',
            '--recompute',
            'full',
            '--slowdown',
            slowdown,
        )
        return ms(report) / 1e3

    def measured(row):
        hidden, layers, _, tensor, share = row
        flops = 72 * 8 * 1024 * layers * hidden**2 * (1 + 1024 / (6 * hidden) + 51200 / (12 * layers * hidden))
        return flops / (tensor * share * 39e12)

    return fit_steps(
        source, seconds, [(f'hidden size {row[0]}, {row[3]} GPUs', row, measured(row)) for row in MEGATRON_2019]
    )


def single_runs(program, published):
    source = Source('Runs of which one number is known: TFLOP/s per GPU', 'single', 'none: ab initio')
    # arXiv 2211.05100, section 3.4: tensor 4, pipeline 12, data 8, 2,048 sequences of 2,048 tokens in micro-batches of 2.
    config = {
        'model_type': 'bloom',
        'n_embed': 14336,
        'n_layer': 70,
        'num_attention_heads': 112,
        'vocab_size': 250880,
        'seq_length': 2048,
    }
    report = program.simulate_config(
        config,
        '1f1b',
        '--pp',
        12,
        '-m',
        128,
        '--micro-batch-size',
        2,
        '--dp',
        8,
        '--gpu',
        'a100',
        '--tp',
        4,
        '--save-scores',
        '--embedding-layers',
        1,
        '--head-layers',
        1,
        '--message-exposed',
        1,
        '--accumulation-bytes',
        12,
        '--no-sequence-parallel',
        '--recompute',
        'full',
    )
    flops = 96 * 2048 * 2048 * 70 * 14336**2 * (1 + 2048 / (6 * 14336) + 250880 / (16 * 70 * 14336))
    source.add('BLOOM 176B, 384 A100, all recomputed', flops / (ms(report) / 1e3) / 384 / 1e12, 156)
    # NVIDIA/Megatron-LM, README: 175B with 131,072 tokens, 1,152 sequences of 4,096 on 96 H100s at an MFU of 47 %. How it was spread
    # is not said: tensor 8, pipeline 12 with a layer per chunk.
    config = dict(GPT_KEYS, n_positions=4096, vocab_size=131072, n_embd=12288, n_layer=96, n_head=96, n_inner=49152)
    report = program.simulate_config(
        config, 'interleaved', '--pp', 12, '--vpp', 8, '--tp', 8, '-m', 1152, '--gpu', 'h100'
    )
    flops = 1152 * 4096 * 6 * (96 * 12 * 12288**2 + 131072 * 12288 + 96 * 12288 * 4096)
    source.add('Megatron-Core 175B, 96 H100', flops / (ms(report) / 1e3) / 96 / 1e12, 0.47 * 989)
    return source

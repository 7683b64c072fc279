"""GPipe and torchgpipe, predicted: Transformer, and convolutional networks from their layers."""

import json
import tempfile

import convolutional
from published_source import Source, fit_slowdown, least_squares, ms


def gpipe(program, published):
    source = Source(
        'GPipe, tables 2 and 3: Transformer, 32 micro-batches',
        'time',
        'the cell of 2 partitions; rows with fewer micro-batches change their size by an unpublished amount and are left out',
    )
    rows = {
        'TPU': published['gpipe_table2']['values']['Transformer']['M32'],
        'GPU': published['gpipe_table3']['values']['Transformer'],
    }
    for device, row in rows.items():
        per_partition = {
            ranks: ms(program.simulate('gpipe', '--pp', ranks, '-m', 32, '--f', 1, '--b', 3)) * ranks
            for ranks in (2, 4, 8)
        }
        for ranks, measured in zip((4, 8), row[1:]):
            # The whole model is cut into `ranks` equal parts: a part is 1/ranks of the work.
            speed_up = per_partition[2] / per_partition[ranks] * (ranks / 2) ** 2
            source.add(f'{device}, {ranks} partitions', row[0] * speed_up, measured)
    return source


def gpipe_activations(program, published):
    source = Source(
        'GPipe, table 1: peak activation memory of Transformer-L',
        'memory',
        'bytes per layer, on the 13 layers of one device; inputs of 32 sequences in 32 bits',
    )
    values = published['gpipe_table1']['values']['Transformer-L']
    entries = list(zip((1, 8, 32, 128), values['L'][1:], values['peak_act_G'][1:]))
    inputs = 32 * 1024 * 2048 * 4 / 2**30

    def gib(devices, layers, per_layer):
        """Sums over all devices: each keeps the inputs of the whole batch, and one micro-batch (of 32) of its layers."""
        kept = round(per_layer * layers / devices * 2**30)
        stage = {
            'forward': '2ms',
            'backward': '4ms',
            'activation_bytes': {'kept': kept, 'checkpoint': round(inputs / 32 * 2**30)},
        }
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump({'format': 'bubblescope-costs/1', 'stages': [stage] * devices}, file)
            file.flush()
            report = program.simulate('gpipe', '--pp', devices, '-m', 32, '--recompute', 'full', '--costs', file.name)
        return sum(rank['peak_memory_bytes'] for rank in report['ranks']) / 2**30

    devices, layers, measured = entries[0]
    per_layer = (measured - gib(devices, layers, 1.0) + 1.0 * layers) / layers
    for devices, layers, measured in entries[1:]:
        source.add(f'{layers} layers on {devices} devices', gib(devices, layers, per_layer), measured)
    return source


def gpipe_parameters(program, published):
    source = Source(
        'GPipe, table 1: parameter memory of Transformer-L',
        'memory',
        'none: 12 bytes per parameter; the column of one device without a pipeline contradicts its own parameters and is left out',
    )
    values = published['gpipe_table1']['values']['Transformer-L']
    for layers, gib in list(zip(values['L'], values['param_mem_G']))[1:]:
        config = {
            'n_embd': 2048,
            'n_layer': layers,
            'n_head': 32,
            'n_inner': 8192,
            'vocab_size': 32000,
            'n_positions': 1024,
            'tie_word_embeddings': False,
        }
        source.add(f'{layers} layers', program.billions(config) * 1e9 * 12 / 2**30, gib)
    return source


def torchgpipe(program, published):
    source = Source(
        'torchgpipe: AmoebaNet-D (18, 256) on P40',
        'time',
        "per number of devices: the whole and the largest stage's time, fitted to all three "
        'cells, because the size of a micro-batch changes from cell to cell: the errors are what two numbers cannot explain',
    )
    rows = {(row['n'], row['m']): row['samples_per_s'] for row in published['torchgpipe_amoebanet_speed']['values']}
    for ranks in (2, 4, 8):
        # A step of m micro-batches: through all stages once, and m - 1 times the largest.
        speeds = {m: rows[ranks, m] for m in (1, 4, 32)}
        relative = {m: 1.0 for m in speeds}  # predicted over measured speed: what is squared is its distance from 1
        for _ in range(20):
            whole, largest = least_squares(
                [
                    (k * speed / m, k * (m - 1) * speed / m, k)
                    for (m, speed), k in zip(speeds.items(), relative.values())
                ]
            )
            relative = {m: m / speed / (whole + (m - 1) * largest) for m, speed in speeds.items()}
        others = (whole - largest) / (ranks - 1)
        stages = [
            {'forward': f'{round(time * 1e9 / 4)}ns', 'backward': f'{round(time * 1e9 * 3 / 4)}ns'}
            for time in [largest] + [others] * (ranks - 1)
        ]
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            json.dump({'format': 'bubblescope-costs/1', 'stages': stages}, file)
            file.flush()
            for m, speed in speeds.items():
                step = ms(program.simulate('gpipe', '--pp', ranks, '-m', m, '--costs', file.name))
                source.add(f'{ranks} devices, {m} micro-batches', m / (step / 1e3), speed)
    return source


# torchgpipe, benchmarks/*-speed/main.py: devices, batch, micro-batches, modules per device; and the published samples per second.
AMOEBANET = {
    (2, 1): (96, [7, 17]),
    (2, 4): (256, [9, 15]),
    (2, 32): (1280, [9, 15]),
    (4, 1): (160, [3, 4, 5, 12]),
    (4, 4): (360, [3, 6, 7, 8]),
    (4, 32): (1152, [3, 6, 7, 8]),
    (8, 1): (196, [2, 2, 2, 2, 2, 3, 4, 7]),
    (8, 4): (480, [2, 2, 2, 3, 3, 4, 4, 4]),
    (8, 32): (1280, [2, 2, 2, 3, 3, 4, 4, 4]),
}
UNET = {
    'pipeline-1': (80, 2, [241]),
    'pipeline-2': (512, 32, [104, 137]),
    'pipeline-4': (512, 16, [30, 66, 84, 61]),
    'pipeline-8': (640, 40, [16, 27, 31, 44, 22, 57, 27, 17]),
}
RESNET = {
    'pipeline-1': (220, 2, [370]),
    'pipeline-2': (25000, 1667, [135, 235]),
    'pipeline-4': (5632, 256, [44, 92, 124, 110]),
    'pipeline-8': (5400, 150, [26, 22, 33, 44, 44, 66, 66, 69]),
}
# A Tesla P40, as its data sheet says: 11.76 TFLOP/s in 32 bits, 346 GB/s. Between two of them PCI Express 3: 10 of 15.8 GB/s.
P40_FLOPS, P40_BYTES, P40_LINK = 11.76e12, 346e9, 10e9


def torchgpipe_order(ranks, microbatches):
    """All but the last micro-batch are recomputed ("except_last"); a single one is too ("always")."""
    rows = []
    for rank in range(ranks):
        ops = [f'{rank}F{at}' for at in range(microbatches)]
        for at in reversed(range(microbatches)):
            if microbatches == 1 or at < microbatches - 1:
                ops.append(f'{rank}R{at}')
            ops.append(f'{rank}B{at}')
        rows.append(' '.join(ops))
    return ' | '.join(rows)


def stages_of(modules, microbatch, balance, slowdown):
    """Costs of every device's modules and of what crosses to the next device, for a cost file."""
    stages, links, end = [], [], 0
    nanos = lambda seconds: f'{seconds * 1e9:.0f}ns'
    for rank, count in enumerate(balance):
        work = convolutional.joined(modules[end : end + count])
        end += count
        forward = (
            (work.flops / P40_FLOPS + work.forward_bytes / P40_BYTES) * microbatch + 4 * work.parameters / P40_BYTES
        ) * slowdown
        # Weights are read, and their gradients written and added up.
        backward = (
            (2 * work.flops / P40_FLOPS + work.backward_bytes / P40_BYTES) * microbatch
            + 16 * work.parameters / P40_BYTES
        ) * slowdown
        stages.append({'forward': nanos(forward), 'backward': nanos(backward), 'recompute': nanos(forward)})
        if rank + 1 < len(balance):
            message = nanos(modules[end - 1].handed_on * microbatch / P40_LINK)
            links += [
                {'from': rank, 'to': rank + 1, 'latency': message},
                {'from': rank + 1, 'to': rank, 'latency': message},
            ]
    return {'format': 'bubblescope-costs/1', 'stages': stages, 'links': links}


def samples_per_second(program, modules, batch, microbatches, balance, slowdown):
    config = stages_of(modules, batch / microbatches, balance, slowdown)
    with tempfile.NamedTemporaryFile('w', suffix='.json') as costs, tempfile.NamedTemporaryFile(
        'w', suffix='.txt'
    ) as order:
        json.dump(config, costs)
        costs.flush()
        order.write(torchgpipe_order(len(balance), microbatches))
        order.flush()
        return batch / (ms(program.simulate(order.name, '--costs', costs.name)) / 1e3)


def torchgpipe_layers(program, published):
    source = Source(
        'torchgpipe: AmoebaNet-D, U-Net and ResNet-101 on P40, from their layers',
        'layers',
        "per network: one slowdown of the device's stated rates, on the first cell",
    )
    tables = [
        (
            'AmoebaNet-D',
            convolutional.amoebanet_d(),
            [(key, batch, key[1], balance) for key, (batch, balance) in AMOEBANET.items()],
            {(row['n'], row['m']): row['samples_per_s'] for row in published['torchgpipe_amoebanet_speed']['values']},
        )
    ]
    for name, modules, cells, entry in (
        ('U-Net', convolutional.unet(), UNET, 'torchgpipe_unet_speed'),
        ('ResNet-101', convolutional.resnet101(), RESNET, 'torchgpipe_resnet101_speed'),
    ):
        tables.append((name, modules, [(key, *cell) for key, cell in cells.items()], published[entry]['values']))
    slowdowns = []
    for name, modules, cells, measured in tables:
        first = cells[0]
        slowdown = fit_slowdown(
            lambda slowdown: samples_per_second(program, modules, *first[1:], slowdown), measured[first[0]]
        )
        slowdowns.append(f'{name} {slowdown:.2f}')
        for key, *cell in cells[1:]:
            words = f'{len(cell[2])} devices, {cell[1]} micro-batches'
            source.add(f'{name}, {words}', samples_per_second(program, modules, *cell, slowdown), measured[key])
    source.remark = (
        f"Slowdowns: {', '.join(slowdowns)}. Nothing but the first cell of a network is fitted: FLOPs, bytes and messages follow from "
        'the networks, cuts and batches from the benchmarks. AmoebaNet on 4 devices with 4 micro-batches is the one far cell; with the '
        'same cut and 32 micro-batches, and with 4 micro-batches on 8 devices, there is no such gap.'
    )
    return source


def gpipe_amoebanet(program, published):
    source = Source(
        'GPipe, tables 2 and 3: AmoebaNet-D, 32 micro-batches',
        'ab initio',
        "the cell of 2 partitions; from its layers on a P40, cut as torchgpipe does (GPipe's own cuts and devices' rates are not published)",
    )
    rows = {
        ('TPU', 256): published['gpipe_table2']['values']['AmoebaNet']['M32'],
        ('GPU', 128): published['gpipe_table3']['values']['AmoebaNet'],
    }
    for (device, filters), row in rows.items():
        modules = convolutional.amoebanet_d(filters=filters)
        speeds = {
            ranks: samples_per_second(program, modules, AMOEBANET[ranks, 32][0], 32, AMOEBANET[ranks, 32][1], 2.0)
            for ranks in (2, 4, 8)
        }
        for ranks, measured in zip((4, 8), row[1:]):
            source.add(f'{device}, {ranks} partitions', row[0] * speeds[ranks] / speeds[2], measured)
    return source

"""Predicts what papers measured, and says how far off the predictions are.

    published_accuracy.py BINARY PUBLISHED.json                 checks, exit 1 above a limit
    published_accuracy.py BINARY PUBLISHED.json --write FILE    writes the table of docs/

Every case states what was calibrated on; cells that a calibration used are not counted.
"""

import argparse
import json
import os
import statistics
import sys

import published_fit
import published_intervals
import published_megatron
import published_networks
import published_peers
import published_ranking
import published_runs
import published_steps
from published_source import Program, Source
from published_zero_bubble import ZeroBubble, zero_bubble_phases

INTRODUCTION = """# Published measurements, predicted

How far predictions are from what papers measured, with the calibration that each source allows. Cells
that a calibration used are not counted. This file is written by

```sh
python3 tests/golden/published_accuracy.py build/release/bubblescope published.json --write docs/accuracy_published.md
```

from a file of the published numbers, each with its source; the limits (median 5 %, worst 12 %) are a test. Where
nothing at all is fitted to a source (`none: ab initio`) they are 10 % and 20 %; networks that are not transformers,
from a count of what their layers compute, may have one cell far off (30 %), and of runs of which one number is known
30 % is the limit. Steps of runs that no number was fitted to alone are in [Steps of published runs](accuracy_steps.md), with
what constants were before fitting and after.
"""


def aceso_links(program, published):
    source = Source(
        'Aceso: point-to-point bandwidth of V100s',
        'time',
        'per link: latency and bandwidth from the first and the last size',
    )
    values = published['aceso_p2p_bandwidth']
    sizes = [size * 10**6 for size in values['parameters']['size_MB']]
    for link, measured in values['values'].items():
        times = [size / (rate * 1e9) for size, rate in zip(sizes, measured)]
        bandwidth = (sizes[-1] - sizes[0]) / (times[-1] - times[0])
        latency = times[0] - sizes[0] / bandwidth
        for size, rate in list(zip(sizes, measured))[1:-1]:
            # A forward without duration on each of two ranks: the rest is the message.
            report = program.simulate(
                'forward-only',
                '--pp',
                2,
                '-m',
                1,
                '--f',
                '1ns',
                '--p2p',
                f'{latency * 1e9:.0f}ns',
                '--network',
                f'bytes={size}B,link={bandwidth * 8 / 1e9:.4f}',
            )
            source.add(f'{link[:5]}, {size // 10**6} MB', size / report['makespan_ns'], rate)
    return source


def dualpipe(program, published):
    source = Source("DualPipe's table: bubbles and activations", 'exact', 'none')
    forward, weight = 3, 2
    backward = forward + weight  # F = I, which the table's formulas take for granted
    words = ['--f', forward, '--i', forward, '--w', weight, '--b', backward, '--costs-per', 'chunk']
    overlapped = forward + backward + backward - 3 * weight  # F&B + B - 3W, where a pair takes as long as its parts
    for ranks in (4, 8, 16):
        run = lambda name, ranks: program.simulate(name, '--pp', ranks, '-m', 4 * ranks, *words)
        bubble = lambda report: report['bubble']['time_ns'] / 1e6
        source.add(f'1f1b, {ranks} ranks', bubble(run('1f1b', ranks)), (ranks - 1) * (forward + backward))
        source.add(
            f'zb-h1, {ranks} ranks', bubble(run('zb-h1', ranks)), (ranks - 1) * (forward + backward - 2 * weight)
        )
        source.add(f'dualpipe, {ranks} ranks', bubble(run('dualpipe', ranks)), (ranks / 2 - 1) * overlapped)
        source.add(f'dualpipev, {ranks // 2} ranks', bubble(run('dualpipev', ranks // 2)), (ranks / 2 - 1) * overlapped)
        peak = max(rank['peak_activations'] for rank in run('dualpipe', ranks)['ranks'])
        source.add(f'dualpipe, {ranks} ranks, activations', peak, ranks + 1)
    source.remark = (
        'The formula of DualPipe, (PP/2 - 1)(F&B + B - 3W), holds where F = I. Where they differ the order of its ops gives another bubble: '
        'with F = 3, I = 4 and W = 2 it is 8, 24 and 60 on 4, 8 and 16 ranks, where the formula says 9, 27 and 63.'
    )
    return source


def closed_forms(program, published):
    source = Source("Chimera's and zero bubble's closed forms (bubble ratios)", 'exact', 'none')
    for ranks in (4, 8):
        for microbatches in (ranks, 2 * ranks):
            report = program.simulate('chimera', '--pp', ranks, '-m', microbatches, '--f', 1, '--i', 0.5, '--w', 0.5)
            source.add(
                f'chimera, D = {ranks}, N = {microbatches}',
                report['bubble']['ratio'],
                (ranks - 2) / (2 * microbatches + ranks - 2),
            )
        plain = (ranks - 1) / (2 * ranks + ranks - 1)
        report = program.simulate('1f1b', '--pp', ranks, '-m', 2 * ranks)
        source.add(f'1f1b, p = {ranks}', report['bubble']['ratio'], plain)
        report = program.simulate('zb-h1', '--pp', ranks, '-m', 2 * ranks)
        source.add(f'zb-h1, p = {ranks}, overhead', report['bubble']['overhead'], plain / (1 - plain) / 3)
    return source


# Entries of the file of published numbers that are not predicted, each with the reason. Every entry is in a table
# above, or here.
NOT_PREDICTED = {
    'gpipe_table2': 'Transformer and AmoebaNet with 1 and 4 micro-batches: the batch was chosen anew per cell to fill the memory, and is not published',
    'gpipe_table1': "AmoebaNet's memory: its columns contradict its own 12 bytes per parameter (1.8 billion of them would be 21.6 GB, not 24.62)",
    'torchgpipe_unet_memory': "the peaks of PyTorch's caching allocator, which keeps what fragments",
    'torchgpipe_amoebanet_memory': 'the same; its model column is 12 bytes per parameter',
    'zb_table3_models': 'models, from which others are predicted',
    'megatron_sc21_figures': 'read off pictures by others, who disagree',
    'deepseek_train_trace': 'a trace, which analyze reads; see traces.md',
    'aceso_small': "the plans that were run (which layers are where, what is recomputed) are results of Aceso's search, and not published beside the times",
    'chimera_profiles': 'profiles, which partition reads',
    'pipedream_profiles': 'profiles, which partition reads',
    'pipedream_table1': 'remembered, not read: never compared with',
    'controllable_memory_tables': 'pictures: no numbers are known',
    'korthikanti_activation_formula': 'formulas, which unit tests hold exactly',
    'not_found': 'no numbers',
}

COVERED = {
    'gpipe_table1',
    'gpipe_table2',
    'gpipe_table3',
    'torchgpipe_amoebanet_speed',
    'torchgpipe_unet_speed',
    'torchgpipe_resnet101_speed',
    'zb_table4_measured',
    'zb_table5_bubble_rates',
    'zb_table8_zbv_bubble',
    'zb_table9_profiled_times_ms',
    'zb_table10_postvalidation',
    'zb_readme_table',
    'megatron_sc21_table2',
    'korthikanti_table4_layer_ms',
    'llama3_table4',
    'dualpipe_table',
    'aceso_p2p_bandwidth',
    'chimera_table2',
}


def expect_all_accounted(published):
    left = sorted(set(published) - COVERED - set(NOT_PREDICTED))
    if left:
        sys.exit(
            f"published_accuracy.py: {', '.join(left)}: neither predicted nor listed in NOT_PREDICTED; add a source or a reason"
        )


def collect(program, published, zero_bubble):
    networks, megatron = published_networks, published_megatron
    others = [
        megatron.llama3,
        networks.gpipe,
        networks.gpipe_amoebanet,
        networks.gpipe_parameters,
        networks.gpipe_activations,
        networks.torchgpipe,
        networks.torchgpipe_layers,
        dualpipe,
        closed_forms,
        aceso_links,
        zero_bubble_phases,
        megatron.korthikanti_layer,
        megatron.korthikanti_steps,
        megatron.sc21_table1,
        megatron.sc21_table2,
        megatron.mt_nlg,
        megatron.megatron_2019,
        megatron.single_runs,
    ]
    return [
        zero_bubble.bubble_rates(),
        zero_bubble.searched_rates(),
        zero_bubble.v_rates(published['zb_table8_zbv_bubble']['values']),
        zero_bubble.steps(),
        zero_bubble.memory(),
        zero_bubble.synchronisation(published['zb_table10_postvalidation']['values']),
        *(source(program, published) for source in others),
    ]


def percent(error):
    return f'{100 * error:+.1f} %'


def is_closed_form(source):
    """Whether a source states what its authors computed, not what they measured."""
    return source.kind == 'exact' or 'bubble rates' in source.title


def way_of(source):
    """How a source's numbers came to be compared: the column that its errors stand in."""
    if source.calibration.startswith('none'):
        return 'predicted'
    shared = any(words in source.calibration for words in ('an assumption of every model', 'assumptions of every model'))
    return 'fitted' if shared else 'calibrated'


def errors_text(source):
    errors = source.errors()
    return f'{100 * statistics.median(errors):.1f} %, {100 * max(errors):.1f} %'


def measured_table(sources):
    ways = ('fitted', 'calibrated', 'predicted')
    text = '\n## Measured\n\nMedian and worst error. *Fitted*: assumptions of every model were chosen on these numbers. *Calibrated*: one '
    text += 'or two numbers of the\nsource set a speed, and are not counted. *Predicted*: nothing comes from the source.\n\n'
    text += '| source | calibrated on | cells | fitted | calibrated | predicted |\n|---|---|---|---|---|---|\n'
    for source in sources:
        cells = [errors_text(source) if way_of(source) == way else '' for way in ways]
        text += f'| {source.title} | {source.calibration} | {len(source.cells)} | {" | ".join(cells)} |\n'
    return text


def closed_form_table(sources):
    text = '\n## Computed by their authors\n\nClosed forms and simulations, which a prediction should equal; no measurement is among them.\n\n'
    text += '| source | calibrated on | cells | median, worst error |\n|---|---|---|---|\n'
    for source in sources:
        text += f'| {source.title} | {source.calibration} | {len(source.cells)} | {errors_text(source)} |\n'
    return text


def document(sources):
    text = INTRODUCTION + measured_table([source for source in sources if not is_closed_form(source)])
    text += closed_form_table([source for source in sources if is_closed_form(source)])
    text += '\n## What is not predicted\n\n| numbers | why |\n|---|---|\n'
    for entry, why in NOT_PREDICTED.items():
        text += f'| `{entry}` | {why} |\n'
    for source in sources:
        text += f'\n## {source.title}\n\n' + (source.remark + '\n\n' if source.remark else '')
        text += '| case | predicted | published | error |\n|---|---|---|---|\n'
        for name, predicted, measured, error in source.cells:
            text += f'| {name} | {predicted:.4g} | {measured:.4g} | {percent(error)} |\n'
    return text


def left_out_steps(binary, folder, schedule_pairs):
    """Coverage of intervals and ranking of layouts, each source left out; empty without published_2.json."""
    if not os.path.exists(os.path.join(folder, 'published_2.json')):
        return ''
    known = published_fit.constants(os.path.join(os.path.dirname(__file__), 'published_constants.json'))
    runs = published_fit.find_some_runs(folder)
    results = published_fit.fit_all(binary, runs, known)
    shipped = published_steps.predict_all(binary, runs)
    held_out = [run for run in published_runs.held_out_runs() if 'bytes' in run]
    return (
        '\n## Steps inside their intervals\n\nOf each source, the runs whose measured step lies inside the interval that all '
        'other sources give: neither the\nconstants of the model nor the errors of the interval come from the source. How '
        'much a class borrows from wider\nones was chosen on all sources together: '
        '[Steps of published runs](accuracy_steps.md).\n\n'
        + published_intervals.coverage_table(published_intervals.coverage(results))
        + published_ranking.section(
            [dict(run, predicted=run['seconds'] * (1 + run['error'])) for run in results], schedule_pairs
        )
        + published_steps.memory_section(shipped + published_steps.predict_all(binary, held_out))
        + published_peers.section(shipped, results)
    )


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
    expect_all_accounted(published)
    program = Program(args.binary)
    zero_bubble = ZeroBubble(program, published)
    sources = collect(program, published, zero_bubble)
    if args.write:
        pairs = [('Zero bubble, table 4', *zero_bubble.pairs_in_order)]
        with open(args.write, 'w') as file:
            file.write(document(sources) + left_out_steps(args.binary, os.path.dirname(args.published), pairs))
    for source in sources:
        errors = source.errors()
        verdict = 'within' if source.within() else 'ABOVE'
        print(
            f'{verdict} its limits: {source.title}: median {100 * statistics.median(errors):.2f} %, worst {100 * max(errors):.2f} %, {len(errors)} cells'
        )
    return 0 if all(source.within() for source in sources) else 1


if __name__ == '__main__':
    sys.exit(main())

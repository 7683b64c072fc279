"""How far predictions without any calibration are from published steps, by device and kind of model.

What sim/model/known_errors.cc knows is this table, which stands in docs/accuracy_published.md.
"""

import json
import os
import re
import statistics

from published_source import ms

LLAMA = {'model_type': 'llama', 'hidden_size': 16384, 'num_attention_heads': 128, 'num_key_value_heads': 8}
# By the papers: arXiv 2402.16819 and 2406.11704 (squared ReLU, nothing gated, no dropout), xai-org/grok-1, openai/gpt-oss.
MODELS = {
    'gpt3-175b': 'gpt3-175b',
    'deepseek-v3': 'deepseek-v3',
    'llama3.1-405b': dict(LLAMA, intermediate_size=53248, num_hidden_layers=126, vocab_size=128256),
    'nemotron4-15b': {
        'model_type': 'gpt_neox',
        'hidden_size': 6144,
        'num_hidden_layers': 32,
        'num_attention_heads': 48,
        'num_key_value_heads': 8,
        'intermediate_size': 24576,
        'vocab_size': 256000,
    },
    'nemotron4-340b': {
        'model_type': 'gpt_neox',
        'hidden_size': 18432,
        'num_hidden_layers': 96,
        'num_attention_heads': 96,
        'num_key_value_heads': 8,
        'intermediate_size': 73728,
        'vocab_size': 256000,
    },
    'grok1-314b': {
        'model_type': 'mixtral',
        'hidden_size': 6144,
        'num_hidden_layers': 64,
        'num_attention_heads': 48,
        'num_key_value_heads': 8,
        'intermediate_size': 32768,
        'num_local_experts': 8,
        'num_experts_per_tok': 2,
        'vocab_size': 131072,
    },
    'gpt-oss-120b': {
        'model_type': 'mixtral',
        'hidden_size': 2880,
        'num_hidden_layers': 36,
        'num_attention_heads': 64,
        'head_dim': 64,
        'num_key_value_heads': 8,
        'intermediate_size': 2880,
        'num_local_experts': 128,
        'num_experts_per_tok': 4,
        'vocab_size': 201088,
    },
}
EXPERTS = {'deepseek-v3', 'grok1-314b', 'gpt-oss-120b'}
SOURCES = {
    ('a100', 'dense'): 'SC21, arXiv 2205.05198, 2201.11990 and 2211.05100',
    ('h100', 'dense'): 'NVIDIA DGX Cloud benchmarking 24.11.1 and arXiv 2407.21783',
    ('h100', 'expert'): 'NVIDIA DGX Cloud benchmarking 24.11.1, Megatron-Bridge',
    ('gb200', 'dense'): 'NVIDIA DGX Cloud benchmarking 25.05.05, Megatron-Bridge',
    ('gb200', 'expert'): 'NVIDIA DGX Cloud benchmarking 25.05.05, Megatron-Bridge',
}
HEADING = '## Without calibration, by device'


def flags_of(run, device):
    """Even stages, as the frameworks share layers out; the default optimizer; what is not published is left as it is."""
    data = run['gpus'] // (run['tp'] * run['pp'] * run['cp'])
    words = ['interleaved' if run['vp'] > 1 else '1f1b', '--pp', run['pp']]
    words += ['--vpp', run['vp']] if run['vp'] > 1 else []
    words += ['-m', run['gbs'] // (data * run['mbs']), '--micro-batch-size', run['mbs'], '--dp', data, '--tp', run['tp']]
    words += ['--cp', run['cp'], '--ep', run['ep'], '--seq-length', run['seq'], '--gpu', device]
    words += ['--embedding-layers', 0, '--head-layers', 0]
    return words + (['--recompute', run['recompute']] if 'recompute' in run else [])


def step_seconds(program, run, device):
    model = MODELS[run['model']]
    if isinstance(model, str):
        return ms(program.simulate(*flags_of(run, device), '--model', model)) / 1e3
    if 'layers' in run:
        model = dict(model, num_hidden_layers=run['layers'])
    return ms(program.simulate_config(model, *flags_of(run, device))) / 1e3


def runs_of(benchmarks):
    """(device, run) of all pipelines in 16 bits whose layout is published."""
    for source, device in (('dgxc_h100_v24.11.1', 'h100'), ('dgxc_gb200_v25.05.05', 'gb200')):
        for run in benchmarks[source]['values']:
            yield device, run
    for run in benchmarks['megatron_bridge_perf']['values']:
        if run['gpu'] in ('h100', 'gb200') and not run['fsdp']:
            yield run['gpu'], run


def benchmark_errors(program, path):
    """(device, kind of model, name, error) of the runs in the second file of published numbers."""
    with open(path) as file:
        benchmarks = {entry['id']: entry for entry in json.load(file)}
    errors = []
    for device, run in runs_of(benchmarks):
        if run['precision'] != 'bf16':
            continue
        kind = 'expert' if run['model'] in EXPERTS else 'dense'
        error = step_seconds(program, run, device) / run['step_s'] - 1
        errors.append((device, kind, f"{run['model']}, {run['gpus']} {device}", error))
    return errors


def device_rows(errors):
    """Per device and kind: runs, lowest, median, spread, highest error in whole percent."""
    rows = []
    for (device, kind), source in SOURCES.items():
        of_kind = [error for *key, _, error in errors if tuple(key) == (device, kind)]
        if not of_kind:
            continue
        median = statistics.median(of_kind)
        spread = statistics.median(abs(error - median) for error in of_kind)
        numbers = [round(100 * number) for number in (min(of_kind), median, spread, max(of_kind))]
        rows.append([device, kind, len(of_kind), *numbers, source])
    return rows


def device_document(errors):
    text = f'\n{HEADING}\n\nThe predicted step over the published one, less 1, with nothing fitted: below 0 where the run took longer than\n'
    text += 'predicted. `simulate` and `plan` say by these rows what to expect. The spread is the median distance from the median.\n\n'
    text += '| device | models | runs | lowest | median | spread | highest | source |\n|---|---|---|---|---|---|---|---|\n'
    for device, kind, runs, low, median, spread, high, source in device_rows(errors):
        text += f'| {device} | {kind} | {runs} | {low} % | {median} % | {spread} % | {high} % | {source} |\n'
    text += '\n| run | error |\n|---|---|\n'
    for _, _, name, error in errors:
        text += f'| {name} | {100 * error:+.1f} % |\n'
    return text


def documented_rows(document):
    pattern = r'^\| (\w+) \| (dense|expert) \| (\d+) \| (-?\d+) % \| (-?\d+) % \| (-?\d+) % \| (-?\d+) % \|'
    rows = re.findall(pattern, document, re.M)
    return {(row[0], row[1]): [int(number) for number in row[2:]] for row in rows}


def differences(errors, path):
    """Rows of the document that are no longer what is predicted, by more than rounding."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        documented = documented_rows(file.read())
    found = []
    for device, kind, *numbers, _ in device_rows(errors):
        said = documented.get((device, kind))
        if said is None or said[0] != numbers[0] or max(abs(a - b) for a, b in zip(said, numbers)) > 1:
            found.append(f'{device} {kind}: predicted {numbers}, documented {said}')
    return found

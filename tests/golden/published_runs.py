"""Published training runs as commands of the program: what a user of each framework would type.

A run is a dictionary: source, name, runtime, device, precision, kind ('dense' or 'expert'), model (a preset's name or
the contents of a config.json), flags, seconds of a step, and bytes of a device's peak where they are published.
"""

import csv
import json
import os

from published_megatron import SC21_TABLE1


# Boards on PCI Express have errors of their own (sim/model/presets/pcie_gpus.cc).
BOARDS = {
    'ga10x': ('a40', 'rtx-a6000', 'rtx-a5000', 'a10', 'a10g', 'rtx-3090'),
    'ada': ('l4', 'l40', 'l40s', 'rtx-6000-ada', 'rtx-4090'),
    'blackwell-rtx': ('rtx-5090', 'rtx-pro-6000'),
    'ampere-pcie': ('a100-pcie', 'a100-pcie-40'),
    'hopper-pcie': ('h100-pcie', 'h100-nvl', 'h200-nvl'),
}


def generation_of(device):
    """The generation of a device by its name; a GH200 is a Hopper device, and AMD's have two generations."""
    for generation, devices in BOARDS.items():
        if device in devices:
            return generation
    if device.startswith('gh'):
        return 'hopper'
    if device.startswith('mi'):
        return 'cdna4' if device == 'mi355x' else 'cdna3'
    return {'a': 'ampere', 'h': 'hopper', 'b': 'blackwell', 'g': 'blackwell'}[device[0]]


LLAMA = {'model_type': 'llama', 'num_key_value_heads': 8, 'vocab_size': 128256, 'head_dim': 128}
# By the papers: arXiv 2407.21783, 2307.09288, 2402.16819 and 2406.11704 (squared ReLU, nothing gated), xai-org/grok-1,
# openai/gpt-oss, Qwen/Qwen3-235B-A22B.
MODELS = {
    'gpt3-175b': 'gpt3-175b',
    'deepseek-v3': 'deepseek-v3',
    'llama2-7b': 'llama2-7b',
    'llama2-13b': 'llama2-13b',
    'llama2-70b': 'llama2-70b',
    'llama3-8b': 'llama3-8b',
    'llama3-70b': 'llama3-70b',
    'llama3.1-8b': 'llama3-8b',
    'llama3.1-70b': 'llama3-70b',
    'llama3.1-405b': dict(
        LLAMA, hidden_size=16384, num_attention_heads=128, intermediate_size=53248, num_hidden_layers=126
    ),
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
    'gpt-oss-120b': 'gpt-oss-120b',
    'qwen3-235b-a22b': {
        'model_type': 'qwen3_moe',
        'hidden_size': 4096,
        'num_hidden_layers': 94,
        'num_attention_heads': 64,
        'num_key_value_heads': 4,
        'head_dim': 128,
        'intermediate_size': 12288,
        'moe_intermediate_size': 1536,
        'num_experts': 128,
        'num_experts_per_tok': 8,
        'vocab_size': 151936,
    },
}
# deepseek-ai/DeepSeek-V3, config.json, without its multi-token prediction.
MODELS['deepseek-v3 without MTP'] = {
    'model_type': 'deepseek_v3',
    'hidden_size': 7168,
    'num_hidden_layers': 61,
    'num_attention_heads': 128,
    'num_key_value_heads': 128,
    'intermediate_size': 18432,
    'moe_intermediate_size': 2048,
    'n_routed_experts': 256,
    'n_shared_experts': 1,
    'num_experts_per_tok': 8,
    'topk_group': 4,
    'first_k_dense_replace': 3,
    'q_lora_rank': 1536,
    'kv_lora_rank': 512,
    'qk_rope_head_dim': 64,
    'qk_nope_head_dim': 128,
    'v_head_dim': 128,
    'vocab_size': 129280,
    'num_nextn_predict_layers': 0,
}
MODELS['nemotron-340b'] = MODELS['nemotron4-340b']
# The modules that Megatron-Bridge's recipes recompute (scripts/performance/configs, recompute_modules).
MODULES = {
    ('deepseek-v3', 'gb300'): 'mla_up_proj',
    ('gpt-oss-120b', 'gb200'): 'layernorm,moe_act',
    ('gpt-oss-120b', 'h100'): 'layernorm,moe_act',
}
EXPERTS = {'deepseek-v3', 'grok1-314b', 'gpt-oss-120b', 'qwen3-235b-a22b'}
# mosaicml/llm-foundry, scripts/train/yamls/pretrain: hidden size, heads, layers.
MPT = {
    '125m': (768, 12, 12),
    '350m': (1024, 16, 24),
    '760m': (1536, 12, 24),
    '1b': (2048, 16, 24),
    '3b': (2560, 20, 32),
    '7b': (4096, 32, 32),
    '13b': (5120, 40, 40),
    '30b': (7168, 56, 48),
    '70b': (8192, 64, 80),
}


def gpt(hidden, heads, layers, vocabulary, sequence):
    """A GPT with dropout and learned positions, as Megatron-LM trains it."""
    return {
        'n_embd': hidden,
        'n_head': heads,
        'n_layer': layers,
        'n_inner': 4 * hidden,
        'vocab_size': vocabulary,
        'n_positions': sequence,
        'resid_pdrop': 0.1,
    }


def mpt(size):
    hidden, heads, layers = MPT[size]
    return {
        'model_type': 'gpt_neox',
        'hidden_size': hidden,
        'num_attention_heads': heads,
        'num_hidden_layers': layers,
        'intermediate_size': 4 * hidden,
        'vocab_size': 50368,
        'tie_word_embeddings': True,
    }


def layered_model(run):
    bare = run.get('note') == 'without MTP'
    model = MODELS[run['model'] + (' without MTP' if bare else '')]
    return dict(model, num_hidden_layers=run['layers']) if 'layers' in run else model


def schedule_words(ranks, chunks, microbatches):
    if chunks > 1:
        return ['interleaved', '--pp', ranks, '--vpp', chunks, '-m', microbatches]
    return ['1f1b', '--pp', ranks, '-m', microbatches]


def nvidia_flags(run):
    """Megatron's layout: even stages, data ranks from what is left of the devices."""
    sharded = run.get('fsdp', 0) > 0
    data = run['gpus'] // (run['tp'] * run['pp'] * run['cp'])
    words = schedule_words(run['pp'], run['vp'], run['gbs'] // (data * run['mbs']))
    words += ['--micro-batch-size', run['mbs'], '--dp', data, '--tp', run['tp'], '--cp', run['cp']]
    words += ['--ep', run.get('ep', 1), '--seq-length', run['seq']]
    if run['pp'] > 1:
        words += ['--embedding-layers', 0, '--head-layers', 0]
    words += ['--zero', 3] if sharded else []
    return words + (['--recompute', run['recompute']] if 'recompute' in run else [])


def bridge_flags(run, gpu):
    """Megatron-Bridge's recipes reduce gradients in 16 bits (scripts/performance/configs, grad_reduce_in_fp32 off)."""
    modules = MODULES.get((run['model'], gpu))
    return ['--gradients', 'bf16'] + (['--recompute-modules', modules] if modules else [])


def nvidia_runs(entry, source, device):
    for run in entry['values']:
        gpu = run.get('gpu', device)
        yield {
            'source': source,
            'name': f"{run['model']}, {run['gpus']} {gpu}, {run['precision']}, {run['gbs']} x {run['seq']}",
            'runtime': 'nemo',
            'device': gpu,
            'precision': run['precision'],
            'kind': 'expert' if run['model'] in EXPERTS else 'dense',
            'model': layered_model(run),
            'work': f"{run['model']}, {run.get('layers', 'all')} layers, {run['gpus']} {gpu}, {run['precision']}, {run['gbs']} x {run['seq']}",
            'flags': nvidia_flags(run) + (bridge_flags(run, gpu) if source == 'megatron-bridge' else []),
            'seconds': run['step_s'],
        }


def torchtitan_flags(run):
    words = ['--dp', run['fsdp'], '--tp', run['tp'], '--cp', run['cp'], '--seq-length', run['seq']]
    words += ['--recompute', run['recompute'].split()[0]]
    words += ['--tensor-exposed', 0.5] if run.get('async_tp') else []
    # Memory was published of a release whose loss was not fused (docs/models.md, Memory).
    words += ['--assume', 'logit_bytes=14'] if 'mem_GiB' in run else []
    if run['pp'] == 1:
        return ['1f1b', '--pp', 1, '-m', 1, '--micro-batch-size', run['local_batch'], '--zero', 3, *words]
    # Its default then: as many micro-batches as ranks; and two chunks per rank where interleaved. In a pipeline weights
    # stay gathered (reshard_after_forward off), and gradients whole in 32 bits until the last micro-batch's backward
    # (PyTorch's torch/distributed/pipelining/stage.py, backward_maybe_with_nosync): only the optimizer is sharded.
    interleaved = run['schedule'] == 'interleaved'
    # It splits layers by their number, and counts the embedding and the head as one each.
    words += ['--embedding-layers', 1, '--head-layers', 1]
    words += ['--micro-batch-size', run['local_batch'] // run['pp'], '--zero', 1]
    return [*schedule_words(run['pp'], 2 if interleaved else 1, run['pp']), *words]


def torchtitan_runs(entry):
    for run in entry['values']:
        tokens = run['fsdp'] * run['local_batch'] * run['seq']
        yield {
            'source': 'torchtitan',
            'name': f"{run['model']}, {run['gpus']} h100, {run['precision']}, tp {run['tp']}, pp {run['pp']}, "
            f"{run.get('schedule', 'fsdp')}{', compiled' if run['compile'] else ''}",
            'runtime': 'torchtitan' if run['compile'] else 'fsdp',
            'device': 'h100-hbm2e',
            'precision': run['precision'],
            'kind': 'dense',
            'model': MODELS[run['model']],
            'flags': torchtitan_flags(run),
            'seconds': tokens / (run['tokens_per_s_per_gpu'] * run['gpus']),
            **({'bytes': run['mem_GiB'] * 2**30} if 'mem_GiB' in run else {}),
        }


def llm_foundry_runs(entry):
    for run in entry['values']:
        device = run['gpu'].split('_')[0]
        precision = 'fp8' if 'fp8' in run['precision'] else 'bf16'
        yield {
            'source': f'llm-foundry {device}',
            'name': f"{run['model']}, {run['gpus']} {device}, {precision}, {run['mbs']} x {run['seq']}",
            'runtime': 'fsdp',
            'device': device,
            'precision': precision,
            'kind': 'dense',
            'model': mpt(run['model'].split('-')[1]),
            'flags': [
                *schedule_words(1, 1, run['accum']),
                *('--micro-batch-size', run['mbs'], '--dp', run['gpus'], '--seq-length', run['seq']),
                *('--zero', 3 if run['sharding'] == 'FULL_SHARD' else 2),
                *('--recompute', 'full' if run['recompute'] == 'True' else 'none'),
            ],
            'seconds': run['gbs'] * run['seq'] / (run['tokens_per_s_per_gpu'] * run['gpus']),
        }


def vtrain_runs(path, source):
    with open(path) as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        number = lambda key: int(row[key])
        batch, size, data = number('global batch'), number('micro batch'), number('data parallelism')
        tensor, ranks = number('tensor parallelism'), number('pipeline parallelism')
        hidden, layers, length = number('hidden size'), number('# layers'), number('sequence length')
        yield {
            'source': source,
            'name': f'{hidden} x {layers}, batch {batch} of {size}, tp {tensor}, dp {data}, pp {ranks}',
            'work': f'{hidden} x {layers}, {number("attention heads")} heads, {tensor * data * ranks} a100, {batch} x {length}',
            'runtime': 'deepspeed',
            'device': 'a100',
            'precision': 'bf16',
            'kind': 'dense',
            'model': gpt(hidden, number('attention heads'), layers, 51200, length),
            'flags': [
                *schedule_words(ranks, 1, batch // (data * size)),
                *('--micro-batch-size', size, '--dp', data, '--tp', tensor, '--seq-length', length),
                *('--save-scores', '--no-sequence-parallel', '--recompute', 'full'),
                *(['--embedding-layers', 0, '--head-layers', 0] if ranks > 1 else []),
            ],
            'seconds': float(row['iteration time (ms)']) / 1e3,
        }


# arXiv 2205.05198, tables 3 and 5; 2201.11990, section 2.3: preset, pipeline ranks, chunks, data ranks, micro-batches,
# their size, recomputation, seconds of a step.
MEGATRON = [
    ('megatron-22b', 1, 1, 1, 1, 4, 'full', 1.42),
    ('megatron-22b', 1, 1, 1, 1, 4, 'selective', 1.10),
    ('megatron-175b', 8, 3, 1, 64, 1, 'full', 18.13),
    ('megatron-175b', 8, 3, 1, 64, 1, 'selective', 13.75),
    ('megatron-530b', 35, 3, 1, 280, 1, 'full', 49.05),
    ('megatron-530b', 35, 3, 1, 280, 1, 'selective', 37.83),
    ('megatron-1t', 64, 1, 1, 512, 1, 'full', 94.42),
    ('megatron-1t', 64, 1, 1, 512, 1, 'selective', 71.49),
    ('megatron-530b', 35, 1, 8, 240, 1, 'full', 60.1),
    ('megatron-530b', 35, 1, 10, 192, 1, 'full', 50.2),
    ('megatron-530b', 35, 1, 12, 160, 1, 'full', 44.4),
]


def megatron_2021_runs():
    base = {'runtime': 'megatron-2021', 'device': 'a100', 'precision': 'bf16', 'kind': 'dense'}
    for preset, ranks, chunks, data, microbatches, size, recompute, seconds in MEGATRON:
        yield {
            **base,
            'source': 'arXiv 2205.05198, 2201.11990',
            'name': f'{preset}, {8 * ranks * data} a100, recompute {recompute}',
            'model': preset,
            'flags': [
                *schedule_words(ranks, chunks, microbatches),
                *('--micro-batch-size', size, '--tp', 8, '--dp', data, '--recompute', recompute, '--save-scores'),
                *([] if recompute == 'selective' else ['--no-sequence-parallel']),
                *(['--embedding-layers', 0, '--head-layers', 0] if ranks > 1 else []),
            ],
            'seconds': seconds,
        }
    for billions, heads, hidden, layers, tensor, ranks, chunks, devices, batch, size, teraflops in SC21_TABLE1:
        data = devices // (tensor * ranks)
        # Equation 3 of the paper, with which its rates are computed.
        flops = 96 * batch * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
        yield {
            **base,
            'source': 'arXiv 2104.04473',
            'name': f'{billions}B, {devices} a100',
            'model': gpt(hidden, heads, layers, 51200, 2048),
            'flags': [
                *schedule_words(ranks, chunks, batch // (data * size)),
                *('--micro-batch-size', size, '--tp', tensor, '--dp', data, '--recompute', 'full', '--save-scores'),
                *('--no-sequence-parallel', '--seq-length', 2048),
                *(['--embedding-layers', 0, '--head-layers', 0] if ranks > 1 else []),
            ],
            'seconds': flops / (teraflops * 1e12 * devices),
        }


def llama3_runs(entry):
    """arXiv 2407.21783, table 4; a layer per chunk, gradients added up in 32 bits (section 3.3.2)."""
    for row in entry['values']:
        tokens = row['seq'] * row['batch_per_dp'] * row['dp']
        flops = tokens * (6 * 405.85e9 + 6 * 126 * 16384 * row['seq'])
        yield {
            'source': 'arXiv 2407.21783',
            'name': f"llama3-405b, {row['gpus']} h100, {row['seq']} tokens",
            'runtime': 'megatron',
            'device': 'h100',
            'precision': 'bf16',
            'kind': 'dense',
            'model': 'llama3-405b',
            'flags': [
                *schedule_words(row['pp'], 8, row['batch_per_dp']),
                *('--tp', row['tp'], '--cp', row['cp'], '--dp', row['dp'], '--zero', 1, '--seq-length', row['seq']),
            ],
            'seconds': flops / (row['tflops'] * 1e12 * row['gpus']),
        }


def deepseek_run():
    """arXiv 2412.19437: 14.8 T tokens in 2.664 M hours of H800s, 15,360 sequences of 4,096 tokens a step."""
    yield {
        'source': 'arXiv 2412.19437',
        'name': 'deepseek-v3, 2048 h800, fp8',
        'runtime': 'megatron',
        'device': 'h800',
        'precision': 'fp8',
        'kind': 'expert',
        'model': 'deepseek-v3',
        'flags': [
            *('dualpipe', '--pp', 16, '-m', 120, '--micro-batch-size', 1, '--dp', 128, '--ep', 64, '--recompute', 'selective'),
            *('--seq-length', 4096, '--gradients', 'bf16', '--overlap', 'fused'),
        ],
        'seconds': 19.9,
    }


def find_runs(folder):
    """All runs of the files of published numbers in a folder, and those that stand in this file."""
    with open(os.path.join(folder, 'published.json')) as file:
        papers = {entry['id']: entry for entry in json.load(file)}
    with open(os.path.join(folder, 'published_2.json')) as file:
        entries = {entry['id']: entry for entry in json.load(file)}
    return [
        *megatron_2021_runs(),
        *llama3_runs(papers['llama3_table4']),
        *nvidia_runs(entries['dgxc_h100_v24.11.1'], 'dgxc h100', 'h100'),
        *nvidia_runs(entries['dgxc_gb200_v25.05.05'], 'dgxc gb200', 'gb200'),
        *nvidia_runs(entries['megatron_bridge_perf'], 'megatron-bridge', None),
        *nvidia_runs(entries['nemo_24.12_h100_fp8'], 'nemo 24.12', 'h100'),
        *torchtitan_runs(entries['torchtitan_h100']),
        *llm_foundry_runs(entries['llm_foundry_mpt']),
        *vtrain_runs(os.path.join(folder, 'vtrain', 'ground_truth_multi.csv'), 'vtrain multi'),
        *vtrain_runs(os.path.join(folder, 'vtrain', 'ground_truth_single.csv'), 'vtrain single'),
        *deepseek_run(),
    ]


def held_out_runs():
    """Runs that no constant was fitted to, from published_held_out.json: what the program says of sources that it does not know."""
    with open(os.path.join(os.path.dirname(__file__), 'published_held_out.json')) as file:
        listed = json.load(file)
    for entry in listed['sources']:
        for run in entry['runs']:
            yield {
                **run,
                'source': entry['source'],
                'unseen': entry['unseen'],
                'model': listed['models'].get(run['model'], run['model']),
                'flags': run['flags'].split(),
            }

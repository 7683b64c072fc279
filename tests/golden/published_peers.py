"""Other simulators on the runs of published_runs.py.

    published_peers.py FOLDER            runs llm-analysis (pip install llm-analysis==0.2.2) on all runs of A100s

Figures of simulators that were not run here are those that their authors published.
"""

import logging
import os
import statistics
import sys

import published_runs

# Layers, heads, hidden size.
MEGATRON = {
    'megatron-22b': (48, 64, 6144),
    'megatron-175b': (96, 96, 12288),
    'megatron-530b': (105, 128, 20480),
    'megatron-1t': (128, 160, 25600),
}
# This script printed, 2026-11: of each source the runs, and the median, the signed median, the mean and the worst
# error. It refuses one run, of which it says that its memory is too small.
LLM_ANALYSIS = {
    'arXiv 2205.05198, 2201.11990': (11, 0.140, 0.037, 0.146, -0.27),
    'arXiv 2104.04473': (10, 0.092, -0.092, 0.079, -0.13),
    'llm-foundry a100': (40, 0.192, 0.192, 0.233, 0.58),
    'vtrain multi': (28, 0.197, -0.197, 0.235, -0.72),
    'vtrain single': (360, 0.630, -0.630, 0.596, -0.98),
}
# The mean error that vTrain's authors state of all their runs (arXiv 2312.12391; ee.kaist.ac.kr, 2025-03-26).
VTRAIN = {'vtrain single': 0.0837, 'vtrain multi': 0.1473}
RECOMPUTE = {'none': 0, 'selective': 1, 'full': 2}


def sizes_of(run):
    """Layers, heads, hidden size, vocabulary."""
    model = run['model']
    if isinstance(model, str):
        return (*MEGATRON[model], 51200)
    if 'n_embd' in model:
        return model['n_layer'], model['n_head'], model['n_embd'], model['vocab_size']
    return (
        *(model[key] for key in ('num_hidden_layers', 'num_attention_heads', 'hidden_size')),
        model['vocab_size'],
    )


def predict_by_llm_analysis(run):
    """Seconds of a step, or None where it refuses. Half of the peak, as its constant.py says of Megatron-LM."""
    from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
    from llm_analysis.config import DtypeConfig, ModelConfig, ParallelismConfig, get_gpu_config_by_name

    words = list(map(str, run['flags']))
    given = lambda name, default: int(words[words.index(name) + 1]) if name in words else default
    layers, heads, hidden, vocabulary = sizes_of(run)
    length = given('--seq-length', 2048)
    tensor = given('--tp', 1)
    model = ModelConfig('model', layers, heads, hidden, vocabulary, max_seq_len=length)
    split = ParallelismConfig(
        tp_size=tensor,
        pp_size=given('--pp', 1),
        dp_size=given('--dp', 1),
        sp_size=1 if '--no-sequence-parallel' in words else tensor,
    )
    analysis = LLMAnalysis(
        model, get_gpu_config_by_name('a100-sxm-80gb'), DtypeConfig(), split, flops_efficiency=0.5
    )
    recompute = words[words.index('--recompute') + 1] if '--recompute' in words else 'none'
    try:
        return analysis.training(
            batch_size_per_gpu=given('--micro-batch-size', 1),
            gradient_accumulation_steps=given('-m', 1),
            seq_len=length,
            activation_recomputation=ActivationRecomputation(RECOMPUTE[recompute]),
            flash_attn='--save-scores' not in words,
            ds_zero=DSZeRO(given('--zero', 0)),
        )['latency_per_iter']
    except AssertionError as refusal:
        print(f"{run['source']}: {run['name']}: {refusal}")
        return None


def summary(errors):
    sizes = list(map(abs, errors))
    return statistics.median(sizes), statistics.median(errors), statistics.mean(sizes), max(errors, key=abs)


def section(shipped, left_out):
    """For docs/accuracy_published.md: our errors with the constants as shipped and left out, beside the others'."""
    percent = lambda value: f'{100 * value:.1f} %'
    text = (
        '\n## Other simulators on the same runs\n\nSteps of the A100 runs above. *llm-analysis* 0.2.2 was run by '
        '`tests/golden/published_peers.py` with its own A100 and\nhalf of the peak, which its source states for '
        'Megatron-LM; its step is FLOPs over that rate, without bubbles or messages.\nThe figures of *vTrain* (arXiv '
        '2312.12391), which profiles its operators on the device, are its authors\', over all of their\nmore than 1,500 '
        'runs, of which 388 are here; they state means, which the last columns compare. Of the constants here, the\nhost\'s '
        'times under `deepspeed` come from `vtrain single`, also where it is left out of the fit. Calculon and SimuMax '
        'were not\nrun.\n\n'
        '| source | runs | here, median | source left out | llm-analysis, median | here, mean | source left out | '
        'llm-analysis, mean | vTrain, mean |\n|---|---|---|---|---|---|---|---|---|\n'
    )
    for source, (_, median, _, mean, _) in LLM_ANALYSIS.items():
        of = lambda results: summary([run['error'] for run in results if run['source'] == source])
        ours, predicted = of(shipped), of(left_out)
        cells = [ours[0], predicted[0], median, ours[2], predicted[2], mean]
        peer = percent(VTRAIN[source]) if source in VTRAIN else ''
        count = sum(run['source'] == source for run in shipped)
        text += f"| {source} | {count} | {' | '.join(map(percent, cells))} | {peer} |\n"
    return text


def main():
    if len(sys.argv) != 2 or not os.path.exists(os.path.join(sys.argv[1], 'published_2.json')):
        print('skipped: published_peers.py FOLDER, with published_2.json in it')
        return 77
    logging.disable(logging.CRITICAL)
    runs = [run for run in published_runs.find_runs(sys.argv[1]) if run['device'] == 'a100']
    for source in LLM_ANALYSIS:
        of_source = [(run, predict_by_llm_analysis(run)) for run in runs if run['source'] == source]
        errors = [seconds / run['seconds'] - 1 for run, seconds in of_source if seconds is not None]
        print(source, len(errors), ' '.join(f'{value:+.3f}' for value in summary(errors)))
    return 0


if __name__ == '__main__':
    sys.exit(main())

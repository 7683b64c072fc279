#!/usr/bin/env python3
"""Configurations that `plan` and `partition` write for Megatron-LM and torchtitan give the plan back.

  framework_configs.py BINARY    exit 1 where a step, a stage or an argument differs

The layout of every configuration is read by `simulate`, which must predict the plan's step to the nanosecond. The
arguments are read by the frameworks' rules, implemented here, and must give the layers of that layout.
"""
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile

MODELS = (
    ('llama3-8b', '--gpus 16 --global-batch-size 64 --tp 1,2 --pp 1,2,4,8 --vpp 1,2,4 --micro-batch-size 1,2'),
    ('llama3-70b', '--gpus 64 --global-batch-size 256 --tp 4,8 --pp 2,4,8 --vpp 1,2,5 --micro-batch-size 1'),
    ('deepseek-v3', '--gpus 1024 --global-batch-size 4096 --tp 1,2 --pp 8,16 --ep 32,64 --micro-batch-size 1'),
)


def run(binary, *words, status=0):
    done = subprocess.run([binary, *words], text=True, capture_output=True, check=False)
    assert done.returncode == status, (words, done.returncode, done.stderr)
    return done.stdout if status == 0 else done.stderr


def unroll(layout):
    """The letters of every stage: "Ett|tL" is ["Ett", "tL"]."""
    layout = re.sub(r'\(([^)]+)\)\*(\d+)', lambda group: group[1] * int(group[2]), layout.replace(',', ''))
    return re.sub(r'(.)\*(\d+)', lambda letter: letter[1] * int(letter[2]), layout).split('|')


def megatron_counts(arguments, layers):
    """The transformer layers of every stage, by Megatron-LM's rules."""
    ranks = int(arguments['pipeline-model-parallel-size'])
    if 'pipeline-model-parallel-layout' in arguments:
        assert 'num-virtual-stages-per-pipeline-rank' not in arguments
        return [stage.count('t') for stage in unroll(arguments['pipeline-model-parallel-layout'])]
    chunks = int(arguments.get('num-virtual-stages-per-pipeline-rank', 1))
    ends = {rank: int(arguments[name]) for rank, name in ((0, 'decoder-first-pipeline-num-layers'),
                                                          (ranks - 1, 'decoder-last-pipeline-num-layers'))
            if name in arguments}
    middle, others = layers - sum(ends.values()), ranks - len(ends)
    assert bool(middle) == bool(others) and (not others or middle % others == 0), arguments
    of_rank = [ends[rank] if rank in ends else middle // others for rank in range(ranks)]
    assert all(count % chunks == 0 for count in of_rank), arguments
    return [count // chunks for count in of_rank] * chunks


def torchtitan_counts(keys, layers):
    """The transformer layers of every stage, by torchtitan's rules."""
    if 'module_fqns_per_model_part' in keys:
        stages = keys['module_fqns_per_model_part']
        assert sum(stages, []) == ['tok_embeddings', *(f'layers.{at}' for at in range(layers)), 'norm', 'output']
        return [sum(module.startswith('layers.') for module in stage) for stage in stages]
    first, last = (keys[f'pipeline_parallel_{end}_stage_less_layers'] for end in ('first', 'last'))
    weight = layers + first + last
    single = keys.get('pipeline_parallel_schedule', '1F1B') in ('1F1B', 'GPipe')
    stages = keys['pipeline_parallel_degree'] * (1 if single else 2)
    if 'pipeline_parallel_layers_per_stage' in keys:
        stages = -(-weight // keys['pipeline_parallel_layers_per_stage'])
    assert stages % keys['pipeline_parallel_degree'] == 0
    if stages == 1:
        return [layers]
    assert 0 < weight // stages >= max(first, last), keys
    counts = [weight // stages + (at < weight % stages) for at in range(stages)]
    return [counts[0] - first, *counts[1:-1], counts[-1] - last]


def read_toml(text):
    """The keys of a document of ours; tomllib is not in Python 3.10."""
    keys = dict(re.findall(r'^(\w+) = (.*[^[])$', text, re.MULTILINE))
    listed = re.search(r'^module_fqns_per_model_part = (\[\n.*?\n\])$', text, re.MULTILINE | re.DOTALL)
    if listed:
        keys['module_fqns_per_model_part'] = re.sub(r',(\s*\])', r'\1', listed[1])
    return {name: json.loads(value) for name, value in keys.items()}


def read_arguments(line):
    words = shlex.split(line)
    arguments = {}
    for word in words:
        if word.startswith('--'):
            arguments[last := word.removeprefix('--')] = True
        else:
            arguments[last] = word
    return arguments


def configurations(text):
    """The comment of every configuration, and what follows it."""
    parts = re.split(r'^# (.*)\n', text, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2]))


COMMENT = re.compile(r'(\S+), pp (\d+), vpp (\d+): .* per step, #(\d+) of the plan, layers (\S+)')


def check_plans(binary, model, flags, profile, framework):
    """Compares the configurations of a plan with the plan, and returns how many there are."""
    words = ['plan', '--model', model, '--gpu', 'h100', *flags.split(), '--recompute', 'none,full', '--profile', profile]
    plans = json.loads(run(binary, *words, '--format', 'json'))['plans']
    shapes = set()
    written = configurations(run(binary, *words, '--format', framework, '--top', '100'))
    for comment, content in written:
        schedule, ranks, chunks, number, layout = COMMENT.fullmatch(comment).groups()
        plan = plans[int(number) - 1]
        assert (plan['schedule'], plan['pp'], plan['vpp'], plan['layout']) == (schedule, int(ranks), int(chunks), layout)
        assert (ranks, chunks) not in shapes
        shapes.add((ranks, chunks))
        counts = [stage.count('t') for stage in unroll(layout)]
        if framework == 'megatron':
            arguments = read_arguments(content)
            assert megatron_counts(arguments, sum(counts)) == counts, content
            assert int(arguments['global-batch-size']) == plan['dp'] * plan['microbatches'] * plan['micro_batch_size']
            assert int(arguments['tensor-model-parallel-size']) == plan['tp']
            if 'decoder-first-pipeline-num-layers' in arguments and 'num-experts' not in arguments and plan['ep'] == 1:
                again = run(binary, 'simulate', schedule, *shlex.split(content), '--model', model, '--gpu', 'h100',
                            f'--dp={plan["dp"]}', f'--profile={profile}', '--bf16', '--format', 'json')
                assert json.loads(again)['makespan_ns'] == plan['step_ns'], content
        else:
            keys = read_toml(content)
            assert torchtitan_counts(keys, sum(counts)) == counts, content
            assert keys['local_batch_size'] == plan['microbatches'] * keys['pipeline_parallel_microbatch_size']
        simulated = run(binary, 'simulate', schedule, f'--pp={ranks}', f'--layout={layout}', '--model', model, '--gpu', 'h100',
                        f'--profile={profile}', '-m', str(plan['microbatches']), f'--recompute={plan["recompute"]}',
                        *(f'--{name}={plan[name]}' for name in ('tp', 'cp', 'ep', 'etp', 'dp')),
                        f'--micro-batch-size={plan["micro_batch_size"]}', f'--gradients={plan["gradients"]}',
                        '--format', 'json')
        assert json.loads(simulated)['makespan_ns'] == plan['step_ns'], comment
    assert shapes == {(str(plan['pp']), str(plan['vpp'])) for plan in plans if plan['schedule'] in SCHEDULES[framework]}
    return len(written)


SCHEDULES = {'megatron': ('1f1b', 'interleaved'),
             'torchtitan': ('gpipe', '1f1b', 'interleaved', 'bfs', 'interleaved-zb', 'zb-v', 'dualpipev')}


def check_partitions(binary):
    """Splits random layers, whose first and last are the embedding and the loss."""
    draw = random.Random(20)
    for number in range(40):
        layers = draw.randint(4, 40)
        stages = draw.randint(2, min(12, layers))
        costs = [draw.choice([0, 1]), *[4] * layers, draw.choice([0, 2, 6])]
        if number % 4 == 0:
            costs[draw.randint(1, layers)] = 9
        entries = [{'forward': cost, 'backward': 2 * cost} for cost in costs]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'layers.json')
            path.write_text(json.dumps({'format': 'bubblescope-costs/1', 'stages': entries}))
            words = ['partition', str(path), '--stages', str(stages), '--layers', f'Et*{layers}L', '--format']
            report = json.loads(run(binary, *words, 'json'))
            arguments = read_arguments(run(binary, *words, 'megatron'))
            keys = read_toml(run(binary, *words, 'torchtitan'))
        letters = 'E' + 't' * layers + 'L'
        expected = [letters[stage['first']:stage['last'] + 1] for stage in report['stages']]
        assert unroll(report['layout']) == expected
        counts = [stage.count('t') for stage in expected]
        assert megatron_counts(arguments, layers) == counts, arguments
        assert torchtitan_counts(keys, layers) == counts, keys


def check_refusals(binary):
    assert '--model' in run(binary, 'plan', '--pp', '4', '-m', '8', '--format', 'megatron', status=2)
    plan = ['plan', '--model', 'llama3-8b', '--gpu', 'h100', '--gpus', '8', '--global-batch-size', '8', '--pp', '2',
            '--tp', '2', '--micro-batch-size', '1', '--recompute', 'full', '--format', 'megatron']
    assert 'has none of' in run(binary, *plan, '--schedules', 'zb-h2', status=1)
    assert '--top 0' in run(binary, *plan, '--schedules', '1f1b', '--top', '0', status=2)
    assert 'no plan fits' in run(binary, *plan, '--schedules', '1f1b', '--cap', '1GiB', status=1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, 'layers.json')
        path.write_text('{"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":2},{"forward":1,"backward":2}]}')
        partition = ['partition', str(path), '--stages', '2']
        assert '--layers' in run(binary, *partition, '--format', 'torchtitan', status=2)
        assert 'names 3 layers' in run(binary, *partition, '--layers', 'EtL', status=2)
        assert 'leave | out' in run(binary, *partition, '--layers', 'E|L', status=2)


def check_runtimes(binary):
    """A plan for a framework that was predicted for another one's runtime says so."""
    plan = [binary, 'plan', '--model', 'llama3-8b', '--gpu', 'h100', '--gpus', '8', '--global-batch-size', '8', '--pp', '2',
            '--tp', '2', '--micro-batch-size', '1', '--recompute', 'full', '--schedules', '1f1b']
    for framework, runtime, warns in (('torchtitan', 'megatron', True), ('torchtitan', 'torchtitan', False),
                                      ('megatron', 'megatron', False), ('megatron', 'nemo', False), ('megatron', 'fsdp', True)):
        words = [*plan, '--format', framework, '--runtime', runtime]
        said = subprocess.run(words, text=True, capture_output=True, check=True).stderr
        assert (f'--runtime {framework} plans for {framework}' in said) == warns, (framework, runtime, said)


def check_read_back(binary):
    """`simulate` reads every flag that a plan writes for Megatron-LM, and predicts its step where the layers are written, too."""
    names = [runtime['name'] for runtime in json.loads(run(binary, 'list', 'runtimes', '--format', 'json'))]
    assert 'megatron' in names and 'nemo' in names, names
    words_seen = set()
    equal = 0
    for runtime in names:
        for devices in (['--gpus', '16'], ['--gpus', '64', '--shard-size', '4']):
            shared = ['--model', 'llama3-8b', '--gpu', 'h100', '--runtime', runtime, '--profile', 'megatron']
            plan = ['plan', *shared, *devices, *'--global-batch-size 64 --tp 2 --pp 4 --micro-batch-size 1'.split(),
                    '--recompute', 'none,full', '--format']
            plans = json.loads(run(binary, *plan, 'json'))['plans']
            for comment, content in configurations(run(binary, *plan, 'megatron', '--top', '100')):
                schedule, _, _, number, _ = COMMENT.fullmatch(comment).groups()
                planned = plans[int(number) - 1]
                arguments = read_arguments(content)
                words_seen |= set(arguments)
                again = json.loads(run(binary, 'simulate', schedule, *shlex.split(content), *shared, f'--dp={planned["dp"]}',
                                       '--bf16', '--format', 'json'))
                has_layers = 'decoder-first-pipeline-num-layers' in arguments or 'pipeline-model-parallel-layout' in arguments
                # Megatron-LM has no flag for what PyTorch shards by default.
                if has_layers and runtime.startswith(('megatron', 'nemo', 'deepspeed')) and runtime != 'nemo-automodel':
                    assert again['makespan_ns'] == planned['step_ns'], (runtime, content)
                    equal += 1
    assert {'tp-comm-overlap', 'num-distributed-optimizer-instances'} <= words_seen, words_seen
    assert equal > 5, equal


def main(binary):
    count = 0
    for model, flags in MODELS:
        count += check_plans(binary, model, flags, 'megatron', 'megatron')
        if model != 'deepseek-v3':  # torchtitan has no multi-token prediction
            count += check_plans(binary, model, flags, 'pytorch', 'torchtitan')
    assert count > 20, count
    check_partitions(binary)
    check_refusals(binary)
    check_runtimes(binary)
    check_read_back(binary)
    print(f'{count} configurations of plans give their plans back')


if __name__ == '__main__':
    main(sys.argv[1])

#!/usr/bin/env python3
"""Runs random commands: a schedule, a shape, perhaps a model, and up to four flags with values of their own.

  random_commands.py BINARY COUNT [SEED]   exit 1 where a command crashes, hangs, fails silently, repeats or contradicts itself
  random_commands.py --self-test           sees to it that contradictions are found

Most commands simulate, some convert. A command is refused with a message, or its report holds: busy and idle time of a
rank add up to the step, their parts to them, nothing is below zero, and no bound is above the step. No message is
printed twice. Every flag of `simulate --help` is drawn, except those in LEFT_OUT.
"""
import collections, json, random, re, subprocess, sys

LIMIT = 120  # seconds of one command
TIMES = ['0', '1', '0.1', '2.5', '10us', '1ns', '3s', '0.333', '1e3', '7']
COUNTS = ['1', '2', '3', '4']
SIGMAS = ['0%', '5%', '30%']
GIVEN = [None]  # a flag without a value

COSTS = {
    **{f'--{name}': TIMES for name in ('f', 'i', 'w', 'b', 'r', 'r-selective', 'p2p', 'copy', 'optimizer-step', 'reduce-grad',
                                       'unshard', 'norm', 'output-layer')},
    '--mem': ['1,0,-1', '2,-1,-1', '1,-0.5,-0.5'], '--costs-per': ['rank', 'chunk', 'slice'],
    '--layout': ['Et*3|(tt|)*3,m|L', 'Ett|tt|tt|ttL', 'Et|t|t|tL'], '--layout-costs': ['E=1,t=2,L=3', 't=1'],
    '--network': ['bytes=1MiB,link=100', 'bytes=4MiB,link=400,per-node=2,between=100',
                  'bytes=1MiB,link=200,per-node=4,between=50,nic=100,ranks-per-nic=2'],
}
ANY = {
    '--vpp': COUNTS, '--slices': COUNTS, '--moe-overlap': GIVEN, '--fsdp': GIVEN, '--sensitivity': GIVEN,
    '--in-flight': ['1', '4', '8'], '--microbatch-group-size': ['1', '3', '8'], '--replicas': ['2,1,1', '2', '1,2'],
    '--optimizer': ['none', 'local', 'barrier', 'post-validation'], '--grad-reduction': ['none', 'overlap', 'serial'],
    '--overlap': ['serial', 'atomic', 'fused'], '--lowering': ['asap', 'deferred'], '--release': ['w', 'i', 'half'],
    '--p2p-mode': ['dataflow', 'fifo', 'eager:1', 'eager:2', 'rendezvous', 'host-rendezvous', 'host-send', 'batched'],
    '--cap': ['1', '3', '8', '20GiB', '70GiB'], '--recompute': ['none', 'full', 'selective'],
    '--saved-fraction': ['0', '0.2,0.5'], '--offload': ['0.5', '1'], '--ranks-per-host-link': COUNTS,
    '--send-budget': COUNTS, '--unshard-lookahead': ['1', 'auto', 'full'],
    '--profile': ['pytorch', 'pytorch-2.15', 'megatron', 'deepspeed', 'colossalai', 'deepseek'],
    '--policy': ['fixed', 'ready', 'ready:order', 'ready:backward', 'ready:path'],
    **{f'--{name}-jitter': SIGMAS for name in ('p2p', 'rank', 'length', 'step')}, '--jitter': SIGMAS,
    '--jitter-shape': ['lognormal', 'normal'], '--seeds': ['10', '100'], '--noise-seed': COUNTS,
    '--straggler': ['probability=0.1,factor=2', 'probability=0.5,factor=1.5,of=rank'],
    '--slow': ['rank=1,factor=1.5', 'rank=0,factor=2'], '--lose': ['rank=1', 'rank=0,at=5ms', 'rank=1,at=5ms,detect=2ms'],
    '--inject': ['rank=0,delay=5ms', 'rank=1,slow=2', 'rank=1,op=F1,delay=3ms', 'rank=0,die', 'rank=1,hang'],
}
MODEL = {
    '--tp': ['1', '2', '4', '8'], '--dp': ['1', '2', '8', '16'], '--ep': ['1', '4', '8'], '--cp': ['1', '2'], '--etp': ['1', '2'],
    '--micro-batch-size': ['1', '2', '4'], '--zero': ['0', '1', '2', '3'], '--shard-size': ['1', '2', '8'],
    '--precision': ['bf16', 'fp8', 'fp16'],
    '--runtime': ['megatron', 'megatron-2021', 'nemo', 'deepspeed', 'torchtitan', 'nemo-automodel', 'fsdp'],
    '--seq-length': ['512', '4096', '32768'], '--global-batch-size': ['16', '64'], '--parts': ['series', 'dualpipe', 'megatron', 'braid'],
    '--gradients': ['fp32', 'bf16', 'bf16-lean', 'bf16-pure'],
    '--recompute-method': ['uniform', 'block'], '--recompute-num-layers': ['0', '1', '3'],
    '--recompute-modules': ['core_attn', 'mlp,layernorm', 'moe', 'moe_act,mla_up_proj'], '--embedding-layers': ['0', '0.5', '1'], '--head-layers': ['0', '1', '2'],
    '--first-layers': ['1', '8'], '--last-layers': ['2', '8'], '--account-for-embedding': GIVEN, '--account-for-loss': GIVEN,
    '--no-sequence-parallel': GIVEN, '--save-scores': GIVEN, '--full-attention': GIVEN, '--slowdown': ['0.5', '1', '1.2'],
    '--reserve-memory': ['0', '5%', '4GiB'], '--tensor-exposed': ['0', '0.5', '1'], '--message-exposed': ['0', '1'],
    '--accumulation-bytes': ['0', '12'], '--gpus-per-node': ['1', '4', '8', '72'], '--assume': ['launch_us=5', 'host_layer_us=0', 'launch_blocking=1', 'iteration_graphs=1'],
}
SHAPE = {'--pp', '-m', '--model', '--gpu', '--format'}  # of every command
LEFT_OUT = {  # they read or write files, or change only what is shown
    '--help', '--arrivals', '--lengths', '--costs', '--fail-if', '--all-ranks', '--wide', '--explain', '--dot', '--html', '--perfetto',
    '--save', '--svg', '--timeline', '--trace',
}
MODELS = ['llama3-8b', 'llama3-70b', 'mixtral-8x7b', 'deepseek-v3', 'gpt3-175b', 'qwen3-30b-a3b', 'gemma3-27b']
GPUS = ['h100', 'a100', 'b200', 'h800', 'gb200', 'mi300x', 'l40s', 'h200', 'h100-pcie', 'rtx-4090', 'a40']


NOT_CONVERTED = {'--sensitivity', '--policy', '--slow', '--straggler', '--seeds'}  # what `convert` does not know
FORMATS = ['chakra', 'deepspeed', 'dot', 'goal', 'goal-one-cpu', 'native', 'pytorch-csv', 'pytorch-csv-comms', 'text']


def draw(schedules, rng):
    command = ['simulate', rng.choice(schedules), '--pp', rng.choice('12344568'), '-m', rng.choice(['1', '2', '3', '4', '8', '12', '16'])]
    flags = {**ANY, **COSTS}
    if rng.random() < 0.2:
        command = ['convert', *command[1:], '--to', rng.choice(FORMATS)]
        flags = {flag: values for flag, values in flags.items() if flag not in NOT_CONVERTED and 'jitter' not in flag}
    elif rng.random() < 0.45:
        command += ['--model', rng.choice(MODELS), '--gpu', rng.choice(GPUS)]
        flags = {**ANY, **MODEL}
    for flag in rng.sample(sorted(flags), rng.choice([0, 1, 1, 2, 2, 3, 4])):
        command += [flag, *filter(None, [rng.choice(flags[flag])])]
        if flag == '--global-batch-size' and '-m' in command:
            at = command.index('-m')
            del command[at:at + 2]
    return command


def contradictions(report):
    """Lists what cannot be true of one report."""
    makespan, found = report['makespan_ns'], []
    for name in ('lower_bound_ns', 'ideal_ns'):
        if not 0 <= report.get(name, 0) <= makespan:
            found.append(f'{name} {report[name]} of a step of {makespan}')
    for rank in report['ranks']:
        busy, idle = rank['busy_ns'], rank['idle_ns']
        if busy + idle != makespan:
            found.append(f'rank {rank["rank"]}: busy {busy} and idle {idle} of {makespan}')
        for parts, whole in (('busy_by_kind_ns', busy), ('idle_by_cause_ns', idle)):
            values = rank[parts].values()
            if min(values) < 0 or sum(values) != whole:
                found.append(f'rank {rank["rank"]}: {parts} {rank[parts]} of {whole}')
    return found


def repeated(messages):
    """Lists the lines that say the same twice; lines that are indented belong to different ones above them."""
    lines = collections.Counter(re.sub(r'^bubblescope: ', '', line) for line in messages.splitlines() if line.strip() and line[0] != ' ')
    return [f'printed {count} times: {line}' for line, count in lines.items() if count > 1]


def run(binary, command):
    """Lists what is wrong with a command's end, and says whether it was refused."""
    is_report = command[0] == 'simulate'
    try:
        end = subprocess.run([binary, *command, *(['--format', 'json'] if is_report else [])], capture_output=True, text=True, errors='replace',
                             timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return [f'no end after {LIMIT} s'], False
    if end.returncode not in (0, 1, 2, 3) or re.search(r'Sanitizer|runtime error|std::|internal', end.stderr):
        return [f'status {end.returncode}: {end.stderr[-500:]}'], False
    wrong = repeated(end.stderr)
    if end.returncode == 0:
        return wrong + (contradictions(json.loads(end.stdout)) if is_report else []), False
    return wrong + ([] if end.stderr.strip() else ['refused without a word']), True


def missing_flags(binary):
    text = subprocess.run([binary, 'simulate', '--help'], capture_output=True, text=True, check=True).stdout
    known = {*COSTS, *ANY, *MODEL, *SHAPE, *LEFT_OUT}
    listed = re.findall(r'^  (-\S+)', text, re.MULTILINE)
    return [names for names in listed if not known & set(re.split('[,:]', names))]


def main():
    if sys.argv[1] == '--self-test':
        rank = {'rank': 0, 'busy_ns': 3, 'idle_ns': 2, 'busy_by_kind_ns': {'F': 3}, 'idle_by_cause_ns': {'warmup': 2}}
        sound = {'makespan_ns': 5, 'lower_bound_ns': 5, 'ideal_ns': 3, 'ranks': [rank]}
        assert not contradictions(sound)
        assert contradictions({**sound, 'lower_bound_ns': 6})
        for wrong in ({'idle_ns': 1}, {'busy_by_kind_ns': {'F': 2}}, {'idle_by_cause_ns': {'warmup': 3, 'drain': -1}}):
            assert contradictions({**sound, 'ranks': [{**rank, **wrong}]}), wrong
        assert repeated('bubblescope: a\nbubblescope: b\nbubblescope: a\n') and not repeated('a:\n  c\nb:\n  c\n')
        return 0
    binary, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    missing = missing_flags(binary)
    for names in missing:
        print(f'{names} is not drawn; add it with its values')
    listed = subprocess.run([binary, 'list'], capture_output=True, text=True, check=True).stdout
    schedules = re.findall(r'^([a-z0-9-]+)  ', listed, re.MULTILINE)
    bad = refused = 0
    for _ in range(count):
        command = draw(schedules, rng)
        wrong, was_refused = run(binary, command)
        refused += was_refused
        bad += bool(wrong)
        for each in wrong:
            print(f'{" ".join(command)}: {each}')
    print(f'{count} commands of {len(schedules)} schedules, {refused} refused, {bad} wrong')
    return 1 if bad or missing or not schedules else 0


if __name__ == '__main__':
    sys.exit(main())

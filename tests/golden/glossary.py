#!/usr/bin/env python3
"""The glossary names every key of the json reports, as `key` or in words: peak_activations, "peak activations".
Its terms are in alphabetical order, and each is defined once.

  glossary.py BINARY GLOSSARY   exit 1 where a key is missing or a term is in the wrong place
  glossary.py --self-test       sees to it that both are found
"""
import json, os, re, subprocess, sys, tempfile

MODEL = '--model llama3-8b --gpu h100'
COMMANDS = [
    'simulate 1f1b --pp 4 -m 8 --jitter 5% --sensitivity',
    f'simulate 1f1b --pp 4 -m 8 {MODEL}',
    f'simulate interleaved --pp 2 --vpp 2 -m 4 {MODEL} --dp 2 --zero 3 --fsdp --send-budget 2 --unshard-lookahead 1',
    'simulate pipedream --pp 4 -m 8',
    'simulate 1f1b --pp 4 -m 8 --replicas 3 --lose rank=1,at=10ms',
    'simulate 1f1b --pp 4 -m 8 --network bytes=1MiB,link=100,per-node=2,nic=100,ranks-per-nic=2',
    'compare gpipe,1f1b --pp 4 -m 8 --jitter 5%',
    'compare gpipe,1f1b --pp 2 -m 4 --backend cpu',
    'run 1f1b --pp 2 -m 4 --work transformer --hidden-size 8',
    'run 1f1b --pp 2 -m 4 --policy ready --f 1 --b 2',
    'plan --pp 2,4 -m 8,16',
    f'plan {MODEL} --gpus 16 --global-batch-size 64',
    f'plan {MODEL} --gpus 16 --global-batch-size 64 --zero 3 --tp 2 --pp 4 --unshard-lookahead 1',
    'search --pp 2 -m 4 --cap 2',
    'check 1f1b --pp 2 -m 4',
    'analyze slow.json',
    'diff old.json step.json',
    'diff analyzed.json analyzed.json',
    'simulate 1f1b --pp 2 -m 2 --costs parts.json',
]

PARTS = '''{"format": "bubblescope-costs/1", "backward": 2, "forward": {"parts": [
  {"name": "attn", "time": 1}, {"name": "reduce", "lane": "tensor", "time": 1}]}}'''


def keys_of(value):
    """All names of members at any depth."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys_of, value.values()))


def missing_keys(keys, glossary):
    text = ' '.join(glossary.lower().split())
    def is_named(key):
        words = re.sub('(_ns|_bytes)?(_change)?$', '', key.lower(), count=1).replace('_', '[ _-]')
        return f'`{key.lower()}`' in text or re.search(rf'\b{words}s?\b', text)
    return sorted(key for key in keys if not is_named(key))


def misplaced_terms(glossary):
    """The terms that do not come after the one before them. Punctuation counts as a space."""
    terms = re.findall(r'^\*\*(.+?)\*\*', glossary, re.MULTILINE)
    keys = [re.sub('[^a-z0-9]+', ' ', term.lower()).strip() for term in terms]
    return [term for term, before, key in zip(terms[1:], keys, keys[1:]) if key <= before]


def printed_keys(binary):
    keys = set()
    with tempfile.TemporaryDirectory() as folder:
        def call(words):
            done = subprocess.run([binary] + words, cwd=folder, text=True, capture_output=True, timeout=120)
            if done.returncode:
                raise SystemExit(f'{" ".join(words)}: exit status {done.returncode}: {done.stderr}')
            return done.stdout
        call('simulate gpipe --pp 4 -m 8 --save old.json'.split())
        call('simulate 1f1b --pp 4 -m 8 --save step.json'.split())
        call('simulate 1f1b --pp 4 -m 8 --inject rank=2,delay=8ms --trace slow.json'.split())
        call('analyze slow.json --save analyzed.json'.split())
        with open(os.path.join(folder, 'parts.json'), 'w') as costs:
            costs.write(PARTS)
        for command in COMMANDS:
            keys |= keys_of(json.loads(call(command.split() + ['--format', 'json'])))
    return keys


def main(binary, path):
    keys = printed_keys(os.path.abspath(binary))
    with open(path) as file:
        glossary = file.read()
    problems = [f'{path} does not name `{key}`' for key in missing_keys(keys, glossary)]
    problems += [f'{path}: "{term}" is not in alphabetical order' for term in misplaced_terms(glossary)]
    print('\n'.join(problems) or f'{len(keys)} keys are named')
    return 1 if problems or not keys else 0


if __name__ == '__main__':
    if sys.argv[1:] == ['--self-test']:
        report = {'a_key_ns': [{'in words': 1}, {'left_out': 2}]}
        assert missing_keys(keys_of(report), '**a key**, `in words`') == ['left_out']
        assert misplaced_terms('**at** (`a`): x\n\n**a b**: y\n\n**c**, **d**: z\n\n**c**: z\n') == ['a b', 'c']
    else:
        sys.exit(main(*sys.argv[1:]))

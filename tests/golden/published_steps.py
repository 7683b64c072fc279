"""Predicts published training runs with the built program, and reports errors per source.

    published_steps.py BINARY FOLDER                 the table of sources
    published_steps.py BINARY FOLDER --runs          every run as well
    published_steps.py BINARY FOLDER --json FILE     the same as json
    published_steps.py BINARY FOLDER --check         exit 1 above a limit

The error of a run is the predicted over the published step time, less 1.
"""

import argparse
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading

import published_runs

# Limits of the medians of absolute errors: their mean over sources, and any source's.
LIMITS = (0.06, 0.12)
# The same mean for runs that no constant was fitted to, and the least share of them inside their intervals.
HELD_OUT_LIMIT, HELD_OUT_INSIDE = 0.11, 0.85
# Limits for peaks of memory: any source's median, and the worst run, which kept all logits of its last stage (docs/models.md).
MEMORY_LIMITS = (0.05, 0.20)

# Before it had --runtime, the program knew runtimes only by the flags that a framework's user gave.
OLD_RUNTIMES = {'megatron-2021': ['--message-exposed', 1, '--accumulation-bytes', 12, '--zero', 0]}


def json_file(value, folder):
    text = json.dumps(value, sort_keys=True)
    path = os.path.join(folder, f'{abs(hash(text))}.json')
    if not os.path.exists(path):
        part = f'{path}.{threading.get_ident()}'
        with open(part, 'w') as file:
            file.write(text)
        os.replace(part, path)  # another thread never sees half a file
    return path


def groups_of(run):
    """Returns what an assumption may be limited to: a runtime, a generation of devices, models with experts."""
    return {'all', run['runtime'], published_runs.generation_of(run['device']), run['device'], run['kind'], run['precision']}


def words_of(run, folder, old, more):
    model = run['model'] if isinstance(run['model'], str) else json_file(run['model'], folder)
    device = run['device']
    board = dict(run.get('board', {}))
    if 'network' in run:
        board['between_nodes'] = run['network']
    if board:
        device = json_file({'like': device, **board}, folder)
    words = ['simulate', *run['flags'], '--model', model, '--gpu', device, '--format', 'json']
    if old:
        return [*words, *OLD_RUNTIMES.get(run['runtime'], [])]
    words += ['--runtime', run['runtime'], '--precision', run['precision']]
    for condition, assumption in more:
        if condition in groups_of(run):
            words += ['--assume', assumption]
    return words


def predict(binary, run, folder, old, more):
    words = list(map(str, words_of(run, folder, old, more)))
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return dict(run, refused=done.stderr.strip().split('\n')[0])
    report = json.loads(done.stdout)
    result = dict(run, predicted=report['makespan_ns'] / 1e9)
    result['error'] = result['predicted'] / run['seconds'] - 1
    interval = report['interval']
    if interval:
        result['inside'] = interval['low_ns'] <= run['seconds'] * 1e9 <= interval['high_ns']
    peaks = [rank.get('peak_memory_bytes') or 0 for rank in report['ranks']]
    if 'bytes' in run and max(peaks) > 0:
        result['memory_error'] = max(peaks) / run['bytes'] - 1
    return result


def predict_all(binary, runs, old=False, more=(), jobs=2):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda run: predict(binary, run, folder, old, more), runs))


def percent(value):
    return f'{100 * value:+.1f} %'


def rows_of(results):
    """Per source: runs, refused, median of |error|, signed median, worst, share inside the interval."""
    rows = []
    for source in dict.fromkeys(run['source'] for run in results):
        of_source = [run for run in results if run['source'] == source]
        errors = [run['error'] for run in of_source if 'error' in run]
        inside = [run['inside'] for run in of_source if 'inside' in run]
        memory = [run['memory_error'] for run in of_source if 'memory_error' in run]
        rows.append(
            {
                'source': source,
                'runs': len(of_source),
                'refused': len(of_source) - len(errors),
                'median': statistics.median(map(abs, errors)) if errors else None,
                'signed': statistics.median(errors) if errors else None,
                'worst': max(errors, key=abs) if errors else None,
                'inside': sum(inside) / len(inside) if inside else None,
                'memory': statistics.median(map(abs, memory)) if memory else None,
                'worst_memory': max(map(abs, memory)) if memory else None,
            }
        )
    return rows


def table(rows):
    text = '| source | runs | refused | median of abs. | signed median | worst | inside | memory |\n'
    text += '|---|---|---|---|---|---|---|---|\n'
    for row in rows:
        cells = [row['source'], row['runs'], row['refused']]
        cells += ['' if row['median'] is None else f"{100 * row['median']:.1f} %"]
        cells += ['' if row[key] is None else percent(row[key]) for key in ('signed', 'worst')]
        cells += ['' if row[key] is None else f'{100 * row[key]:.1f} %' for key in ('inside', 'memory')]
        text += '| ' + ' | '.join(map(str, cells)) + ' |\n'
    medians = [row['median'] for row in rows if row['median'] is not None] or [math.nan]
    return text + f'\nMean of the sources\' medians: {100 * statistics.mean(medians):.1f} %.\n'


def memory_section(results):
    """Peaks of published runs that state them, for docs/accuracy_published.md. Nothing is fitted to them."""
    known = [run for run in results if 'memory_error' in run]
    errors = [abs(run['memory_error']) for run in known]
    text = (
        '\n## Memory of published runs\n\nThe peak of the fullest rank. Nothing is fitted: rules are those of '
        '[Memory](models.md#memory), and 2 GiB stand for what\nPyTorch\'s allocator does not count (driver, libraries), which '
        'published peaks leave out, and for what it reserves beyond tensors,\nwhich they hold.\n\n'
        '| run | predicted | published | error |\n|---|---|---|---|\n'
    )
    for run in known:
        gib = run['bytes'] / 2**30
        text += f"| {run['source']}: {run['name']} | {gib * (1 + run['memory_error']):.1f} GiB | {gib:.1f} GiB | {percent(run['memory_error'])} |\n"
    return text + f'\nMedian {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %.\n'


def find_breaches(rows):
    """Lists what is above its limit, or refused, in a sentence each."""
    medians = [row['median'] for row in rows if row['median'] is not None]
    found = [f"{row['source']}: {row['refused']} runs refused" for row in rows if row['refused']]
    if statistics.mean(medians) > LIMITS[0]:
        found.append(f'the mean of the medians is {100 * statistics.mean(medians):.1f} %')
    found += [f"{row['source']}: median {100 * row['median']:.1f} %" for row in rows if (row['median'] or 0) > LIMITS[1]]
    for key, limit in zip(('memory', 'worst_memory'), MEMORY_LIMITS):
        found += [f"{row['source']}: {key} {100 * row[key]:.1f} %" for row in rows if (row[key] or 0) > limit]
    return found


def find_held_out_breaches(results):
    refused = [run for run in results if 'error' not in run]
    found = [f"{run['source']}: {run['name']}: {run['refused']}" for run in refused]
    median = statistics.mean(row['median'] for row in rows_of(results) if row['median'] is not None)
    if median > HELD_OUT_LIMIT:
        found.append(f'held out: the mean of the medians is {100 * median:.1f} %')
    # Intervals come in part from these very runs; published_fit.py checks those that leave a source out.
    inside = [run['inside'] for run in results if 'inside' in run]
    if sum(inside) < HELD_OUT_INSIDE * len(inside):
        found.append(f'held out: only {sum(inside)} of {len(inside)} runs lie inside their intervals')
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('folder')
    parser.add_argument('--runs', action='store_true', help='print every run')
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--check', action='store_true', help='exit 1 above a limit')
    parser.add_argument('--old', action='store_true', help='for programs without --runtime and --precision')
    parser.add_argument('--source', help='only sources whose name contains this')
    parser.add_argument('--assume', action='append', default=[], metavar='GROUP:NAME=VALUE')
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.folder, 'published_2.json')):
        print(f'skipped: {args.folder} has no published_2.json')
        return 77
    runs = [run for run in published_runs.find_runs(args.folder) if not args.source or args.source in run['source']]
    results = predict_all(args.binary, runs, args.old, [tuple(text.split(':')) for text in args.assume])
    if args.runs:
        for run in results:
            said = percent(run['error']) if 'error' in run else run['refused']
            print(f"{run['source']}: {run['name']}: {said}")
    if args.json:
        with open(args.json, 'w') as file:
            json.dump(results, file, indent=1)
    rows = rows_of(results)
    print(table(rows))
    breaches = find_breaches(rows) if args.check else []
    if not args.source and not args.old:
        held_out = predict_all(args.binary, list(published_runs.held_out_runs()))
        print(f'Runs that no constant was fitted to:\n\n{table(rows_of(held_out))}')
        breaches += find_held_out_breaches(held_out) if args.check else []
    for breach in breaches:
        print(f'ABOVE its limit: {breach}')
    return 1 if breaches else 0


if __name__ == '__main__':
    sys.exit(main())

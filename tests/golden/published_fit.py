"""Fits the model's constants to published runs, on all sources and with each source left out.

    published_fit.py BINARY FOLDER            fits once, and prints the constants and the errors they would leave
    published_fit.py BINARY FOLDER --json F   writes the errors of runs, each with its own source left out

Constants are fitted in logarithms, around the program's own values: sum over sources of the mean |log error|, plus a
prior that keeps a constant near its first value: the closer, the better that is measured (published_constants.json
has the group of runs, the name, the first value and the standard deviation of its logarithm). Every source has the same weight, however many runs it has. Each
constant changes the predictions of runs of at least two sources, else it is not fitted.
"""

import argparse
import json
import math
import os
import statistics
import sys

import published_intervals
import published_runs
from published_steps import groups_of, predict_all, rows_of, table

STEP = 0.1  # of a constant's logarithm, for the derivative
SPREAD = 0.05  # of a source's log errors
# Constants that differ between the devices of a generation, and keep their ratios; the first has the constant's value.
OF_DEVICES = {
    ('hopper', 'sustained_teraflops'): {'h100': 640, 'h800': 640, 'h100-hbm2e': 541},
    ('blackwell', 'sustained_teraflops'): {'b200': 1190, 'gb200': 1304, 'gb300': 1408},
    ('blackwell', 'fp8_gain'): {'gb200': 1.88, 'b200': 1.88 * 1304 / 1190, 'gb300': 2.27},
}


def constant(group, name, value, prior):
    return {'label': f'{group}:{name}', 'assume': lambda factor: [(group, f'{name}={value * factor:.6g}')], 'value': value, 'prior': prior}


def constant_of_devices(generation, name, prior):
    """One factor for all devices of a generation."""
    values = OF_DEVICES[generation, name]
    assume = lambda factor: [(device, f'{name}={value * factor:.6g}') for device, value in values.items()]
    first = next(iter(values))
    return {'label': f'{generation}:{name} ({first})', 'assume': assume, 'value': values[first], 'prior': prior}


def constants(path):
    with open(path) as file:
        listed = json.load(file)
    return [
        constant_of_devices(group, name, prior)
        if (group, name) in OF_DEVICES
        else constant(group, name, value, prior)
        for group, name, value, prior in listed
    ]


def logs(results):
    return [math.log(run['predicted'] / run['seconds']) if 'predicted' in run else None for run in results]


def derivatives(binary, runs, known):
    base = logs(predict_all(binary, runs))
    columns = []
    for each in known:
        more = each['assume'](math.exp(STEP))
        touched = [at for at, run in enumerate(runs) if any(group in groups_of(run) for group, _ in more)]
        column = [None if value is None else 0.0 for value in base]
        moved = logs(predict_all(binary, [runs[at] for at in touched], more=more))
        for at, value in zip(touched, moved):
            column[at] = None if base[at] is None or value is None else (value - base[at]) / STEP
        columns.append(column)
    return base, columns


def solve(matrix, right):
    """Gaussian elimination with pivots; the matrix is positive definite."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for below in range(at + 1, size):
            factor = rows[below][at] / rows[at][at]
            for column in range(at, size + 1):
                rows[below][column] -= factor * rows[at][column]
    answer = [0.0] * size
    for at in reversed(range(size)):
        rest = sum(rows[at][column] * answer[column] for column in range(at + 1, size))
        answer[at] = (rows[at][size] - rest) / rows[at][at]
    return answer


def fit(base, columns, runs, used, priors):
    """Changes of the constants' logarithms; least absolute errors by reweighted least squares."""
    counts = {}
    for at in used:
        counts[runs[at]['source']] = counts.get(runs[at]['source'], 0) + 1
    moves = [0.0] * len(columns)
    for _ in range(30):
        matrix = [[0.0] * len(columns) for _ in columns]
        right = [0.0] * len(columns)
        for at in used:
            error = base[at] + sum(column[at] * move for column, move in zip(columns, moves))
            weight = 1 / counts[runs[at]['source']] / max(abs(error), 0.01) / SPREAD * 4
            for i, left in enumerate(columns):
                if left[at] == 0:
                    continue
                right[i] -= weight * left[at] * base[at]
                for j, other in enumerate(columns):
                    matrix[i][j] += weight * left[at] * other[at]
        for i in range(len(columns)):
            matrix[i][i] += 1 / priors[i] ** 2
        moves = solve(matrix, right)
    return moves


def sources_moved(column, runs):
    return {run['source'] for run, moved in zip(runs, column) if moved and abs(moved) > 0.005}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('binary')
    parser.add_argument('folder')
    parser.add_argument('--json', metavar='FILE')
    parser.add_argument('--limit', type=float, help='exit 1 where the mean of medians, each source left out, is above')
    parser.add_argument('--check-coverage', action='store_true', help='exit 1 where intervals hold too few runs, or too many')
    parser.add_argument('--every', type=int, default=1, help="only every n-th of a source's runs, where it has over 100")
    parser.add_argument('--constants', default=os.path.join(os.path.dirname(__file__), 'published_constants.json'))
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.folder, 'published_2.json')):
        print(f'skipped: {args.folder} has no published_2.json')
        return 77
    results = fit_all(args.binary, find_some_runs(args.folder, args.every), constants(args.constants))
    results += find_unseen_errors(args.binary)
    if args.json:
        with open(args.json, 'w') as file:
            json.dump(results, file, indent=1)
    inside = published_intervals.coverage(results)
    print('Inside the interval that all other sources give:\n\n' + published_intervals.coverage_table(inside))
    low, high = published_intervals.BOUNDS
    if args.check_coverage and not all(low <= round(mean, 2) <= high for mean in published_intervals.means(inside)):
        print(f'BEYOND its limits of {100 * low:.0f} and {100 * high:.0f} %: coverage')
        return 1
    mean = statistics.mean(row['median'] for row in rows_of([run for run in results if 'unseen' not in run]))
    return 1 if args.limit is not None and mean > args.limit else 0


def find_unseen_errors(binary):
    """Errors of sources that are not in the fit: those of the program as it is."""
    unseen = [run for run in published_runs.held_out_runs() if run['unseen']]
    results = [dict(run, groups=sorted(groups_of(run))) for run in predict_all(binary, unseen) if 'error' in run]
    print(f'Sources that are in no fit:\n\n{table(rows_of(results))}')
    return results


def find_some_runs(folder, every=1):
    """All runs; of a source that has over 100, every n-th."""
    runs = published_runs.find_runs(folder)
    count = lambda source: sum(run['source'] == source for run in runs)
    many = {source for source in {run['source'] for run in runs} if count(source) > 100}
    return [run for at, run in enumerate(runs) if run['source'] not in many or at % every == 0]


def fit_all(binary, runs, known):
    """Fits to all runs and with each source left out, reports both, and returns the latter's runs with errors."""
    base, columns = derivatives(binary, runs, known)
    kept = [at for at, column in enumerate(columns) if len(sources_moved(column, runs)) >= 2]
    for at, each in enumerate(known):
        if at not in kept:
            print(f"not fitted, of a single source: {each['label']}: {sources_moved(columns[at], runs)}")
    known, columns = [known[at] for at in kept], [columns[at] for at in kept]
    used = [at for at, value in enumerate(base) if value is not None]
    priors = [each['prior'] for each in known]
    moves = fit(base, columns, runs, used, priors)
    print('| constant | before | after | sources |\n|---|---|---|---|')
    for each, move, column in zip(known, moves, columns):
        print(f"| {each['label']} | {each['value']:.4g} | {each['value'] * math.exp(move):.4g} | {len(sources_moved(column, runs))} |")
    print(f'\n{len(known)} constants, {100 * len(known) / len(used):.1f} per hundred runs.\n')
    report('Fitted to all', runs, base, columns, lambda source: moves, used)
    left_out = {
        source: fit(base, columns, runs, [at for at in used if runs[at]['source'] != source], priors)
        for source in {run['source'] for run in runs}
    }
    return report('Each source left out', runs, base, columns, left_out.get, used)


def report(title, runs, base, columns, moves_of, used):
    results = []
    for at in used:
        moves = moves_of(runs[at]['source'])
        error = base[at] + sum(column[at] * move for column, move in zip(columns, moves))
        results.append(dict(runs[at], error=math.exp(error) - 1, groups=sorted(groups_of(runs[at]))))
    print(f'{title}, to first order:\n\n{table(rows_of(results))}')
    return results


if __name__ == '__main__':
    sys.exit(main())

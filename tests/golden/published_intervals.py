"""Intervals around predicted steps, from the errors of published runs whose source was left out of the fit.

    published_intervals.py ERRORS.json --write FILE   writes "Intervals" into docs/accuracy_steps.md; ERRORS.json is
                                                      what published_fit.py --json wrote
    published_intervals.py ERRORS.json --rows         prints the rows of sim/model/known_errors.cc
    published_intervals.py --self-test

A new run is expected to be off as a run of an unseen source. Errors of one source are alike, so a source
counts once, however many runs it has. A class of runs (of one kind of model, generation of devices, runtime and
precision) has the errors of its own sources, each with weight 1, and beside them those of the next wider class, with
weight PARENT: a class of few sources borrows from its parents. TAIL of that mixture is cut off at either side.
A runtime with MANY runs of its own has an interval that holds nine in ten of these as well: a new run of it is more
likely to be like them than like those of other runtimes. PARENT and TAIL are the same for all classes. They are tested
on every source in turn: intervals from all other sources, errors from the source (coverage).
"""

import argparse
import json
import math
import re
import statistics
import sys

import published_runs

LEVELS = ('kind', 'generation', 'runtime', 'precision')
ERRORS_OF = {'nemo-24.07': 'nemo', 'fsdp-2.11': 'fsdp', 'torchtitan-2.11': 'torchtitan'}  # RuntimeDef::errors_of
PARENT = 15  # sources: more no longer change the coverage of sources that are left out
TAIL = 0.03  # at either side: of sources that are left out, which may lie beyond all others, it leaves nine in ten runs
TAIL_OF_MANY = 0.05
MANY = 100  # runs: five of them lie outside at either side
BOUNDS = (0.87, 0.93)  # of coverage, on average over sources and over all runs


def classified(results):
    """The runs with the names that known_errors.cc has for their classes."""
    return [
        dict(
            run,
            generation=published_runs.generation_of(run['device']),
            runtime=ERRORS_OF.get(run['runtime'], run['runtime']),
            precision='fp8' if run['precision'] == 'fp8' else 'bf16',
        )
        for run in results
    ]


def class_of(run, depth):
    return tuple(run[level] for level in LEVELS[:depth])


def by_source(runs):
    """Errors with their weights, which add up to 1 per source."""
    counts = {}
    for run in runs:
        counts[run['source']] = counts.get(run['source'], 0) + 1
    return [(run['error'], 1 / counts[run['source']], run) for run in runs], len(counts)


def mixture(runs, names):
    """Errors with their weights, which add up to 1, of the class of these names; empty if no run is of its kind."""
    mixed = []
    for depth in range(1, len(names) + 1):
        own, sources = by_source([run for run in runs if class_of(run, depth) == tuple(names[:depth])])
        if not own:
            break
        share = sources / (sources + PARENT) if mixed else 1
        mixed = [(error, weight * (1 - share), run) for error, weight, run in mixed]
        mixed += [(error, weight * share / sources, run) for error, weight, run in own]
    return mixed


def quantile(weighted, level):
    total = 0
    ordered = sorted(weighted)
    for value, weight in ordered:
        total += weight
        if total >= level - 1e-9:
            return value
    return ordered[-1][0]


def ends(weighted, tail):
    """Lowest and highest error, to percents: rounding outwards would hold more runs than it should."""
    return round(quantile(weighted, tail), 2), round(quantile(weighted, 1 - tail), 2)


def without_lone_ends(mixed):
    """Errors with their weights, without the lowest and the highest one where it is a source's only run: it would be an
    end of the interval, whatever its weight, and no other run says that it will come again."""
    runs_of = {}
    for _, _, run in mixed:
        runs_of.setdefault(run['source'], set()).add(id(run))
    by_error = sorted(mixed, key=lambda entry: entry[0])
    lone = {run['source'] for _, _, run in (by_error[0], by_error[-1]) if len(runs_of[run['source']]) == 1}
    kept = [entry for entry in mixed if entry[2]['source'] not in lone] or mixed
    total = sum(weight for _, weight, _ in kept)
    return [(error, weight / total) for error, weight, _ in kept]


def interval(runs, names):
    """The interval of the class of these names."""
    low, high = ends(without_lone_ends(mixture(runs, names)), TAIL)
    own = [run['error'] for run in runs if class_of(run, len(names)) == tuple(names)]
    if len(own) < MANY or len(names) <= LEVELS.index('runtime'):
        return low, high
    own_low, own_high = ends([(error, 1 / len(own)) for error in own], TAIL_OF_MANY)
    return min(low, own_low), max(high, own_high)


def spread(mixed):
    """Median distance of an error from the median of its source, without sources of one run."""
    of_source = {}
    for error, _, run in mixed:
        of_source.setdefault(run['source'], set()).add(error)
    middle = {source: statistics.median(errors) for source, errors in of_source.items() if len(errors) > 1}
    distances = [(abs(error - middle[run['source']]), weight) for error, weight, run in mixed if run['source'] in middle]
    total = sum(weight for _, weight in distances)
    return quantile([(distance, weight / total) for distance, weight in distances], 0.5) if total else 0


def rows_of(results):
    """One row per class, from the nearest to the widest."""
    runs = classified(results)
    everywhere, sources = by_source(runs)
    spread_of_all = spread([(error, weight / sources, run) for error, weight, run in everywhere])
    rows = []
    for depth in range(len(LEVELS), 0, -1):
        for names in sorted({class_of(run, depth) for run in runs}):
            mixed, own = mixture(runs, names), [run for run in runs if class_of(run, depth) == names]
            low, high = interval(runs, names)
            rows.append(
                {
                    **dict(zip(LEVELS, (*names, *['all'] * (len(LEVELS) - depth)))),
                    'runs': len(own),
                    'sources': len({run['source'] for run in own}),
                    'lowest': low,
                    'middle': quantile([(error, weight) for error, weight, _ in mixed], 0.5),
                    'spread': spread_of_all,
                    'highest': high,
                }
            )
    return rows


def coverage(results):
    """Per source, whether each of its runs lies inside the interval that all other sources give."""
    runs = classified(results)
    inside = {}
    for source in dict.fromkeys(run['source'] for run in runs):
        others, known = [run for run in runs if run['source'] != source], {}
        for run in (run for run in runs if run['source'] == source):
            names = class_of(run, len(LEVELS))
            if names not in known:
                known[names] = interval(others, names)
            low, high = known[names]
            inside.setdefault(source, []).append(low <= run['error'] <= high)
    return inside


def means(inside):
    """The coverage on average over sources, and of all runs."""
    return statistics.mean(map(statistics.mean, inside.values())), statistics.mean(sum(inside.values(), []))


def percent(value):
    return f'{round(100 * value)} %'


def coverage_table(inside):
    text = '| source | runs | inside |\n|---|---|---|\n'
    for source, runs in inside.items():
        text += f'| {source} | {len(runs)} | {percent(statistics.mean(runs))} |\n'
    of_sources, of_runs = means(inside)
    return text + (
        f'\n{100 * of_sources:.1f} % of a source\'s runs on average over {len(inside)} sources, and '
        f'{100 * of_runs:.1f} % of all {sum(map(len, inside.values()))} runs.\n'
    )


def section(results):
    of_sources, of_runs = means(coverage(results))
    text = f"""
Nine in ten runs of a class are expected between these errors. They come from runs whose source was left out of the fit,
and from the unseen sources of the [held-out runs](#held-out-runs). A source counts once, however many runs it has,
because the errors of one source are alike. Beside its own sources, each with weight 1, a class has the errors of the
next wider class (without the precision, the runtime, the generation) with weight {PARENT}, so that a class of few sources
borrows from its parents; {100 * TAIL:g} % of that mixture lie outside at either side. The lowest and the highest error
are left out if they are a source's only run, which no other run confirms. A runtime with {MANY} runs and more of its own
has an interval that holds nine in ten of these as well. These figures are the same for all classes, and are chosen by the
coverage of sources that no row came from: {100 * of_sources:.0f} % of a source's runs on average, and {100 * of_runs:.0f} % of all runs, most of which
are of one source. With 5 % at either side it would be less than nine in ten, because a new source may lie beyond
all others. The spread is the median distance of a run from the median of its source, for all classes alike: plans that lie closer are ties.

A report takes the first row that matches, so that a runtime or a precision without runs has the interval of the wider
class. No interval is printed where `--slowdown`, `--assume`, `--tensor-exposed`, `--message-exposed` or
`--accumulation-bytes` replaces a constant that the errors were measured with (`launch_blocking`,
`iteration_graphs`, `dispatch_once`, `ranks_per_token`, `flash_attention_2` and `flash_attention_4` are none), on devices of other generations, and for
sequences of more than 131,072 tokens; the report says why.

| devices | runtime | models | precision | runs | sources | lowest | median | spread | highest |
|---|---|---|---|---|---|---|---|---|---|
"""
    for row in rows_of(results):
        cells = [row[name] for name in ('generation', 'runtime', 'kind', 'precision', 'runs', 'sources')]
        cells += [percent(row[name]) for name in ('lowest', 'middle', 'spread', 'highest')]
        text += '| ' + ' | '.join(map(str, cells)) + ' |\n'
    return text


def rows_text(results):
    text = ''
    for row in rows_of(results):
        names = ['""' if row[name] == 'all' else f'"{row[name]}"' for name in ('generation', 'runtime', 'precision')]
        errors = ', '.join(f'{round(row[name], 2) + 0:.2f}' for name in ('lowest', 'middle', 'spread', 'highest'))
        experts = 'true' if row['kind'] == 'expert' else 'false'
        text += f"    {{{names[0]}, {names[1]}, {experts}, {names[2]}, {row['runs']}, {errors}}},\n"
    return text.replace('-0.00', '0.00')


def replace_section(document, text):
    return re.sub(r'(?s)(?<=\n## Intervals\n).*?(?=\n## |\Z)', lambda _: text, document)


def self_test():
    run = lambda source, error, precision='bf16': {
        'source': source, 'error': error, 'device': 'h100', 'runtime': 'nemo', 'kind': 'dense', 'precision': precision
    }  # fmt: skip
    runs = [run('long', 0.01 * at) for at in range(100)] + [run('short', -0.2), run('other', 0.5, 'fp8')]
    shares = {}
    for _, weight, of in mixture(classified(runs), ('dense', 'hopper', 'nemo', 'fp8')):
        shares[of['source']] = shares.get(of['source'], 0) + weight
    # A source of 100 runs weighs as much as one of a single run, and a class of one source has that part of its own.
    own = 1 / (1 + PARENT)
    assert math.isclose(shares['long'], shares['short']), shares
    assert math.isclose(shares["other"], own + (1 - own) / 3), shares
    # No run of a source that is left out widens its own interval.
    inside = coverage(runs)
    assert inside['short'] == [False] and inside['other'] == [True], inside
    assert math.isclose(means(inside)[1], sum(map(sum, inside.values())) / 102)
    # One run that no other of its source confirms is no end of an interval; two are.
    lone = [run('many', 0.01 * at) for at in range(10)] + [run('lone', -0.9)]
    assert interval(classified(lone), ('dense',)) == (0.0, 0.09)
    assert interval(classified([*lone, run('lone', -0.8)]), ('dense',)) == (-0.9, 0.09)
    # Many runs of a runtime widen its interval, and that of no class without a runtime.
    many = [run('many', -0.3 if at < 10 else 0.0) for at in range(MANY)] + [run(f'other {at}', 0.0) for at in range(20)]
    assert interval(classified(many), ('dense', 'hopper', 'nemo')) == (-0.3, 0.0)
    assert interval(classified(many), ('dense', 'hopper')) == (0.0, 0.0)
    assert replace_section('a\n## Intervals\nold\n\n## b\n', 'new\n') == 'a\n## Intervals\nnew\n\n## b\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('errors', nargs='?')
    parser.add_argument('--write', metavar='FILE')
    parser.add_argument('--rows', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    with open(args.errors) as file:
        results = json.load(file)
    if args.rows:
        print(rows_text(results), end='')
    if args.write:
        with open(args.write) as file:
            document = file.read()
        with open(args.write, 'w') as file:
            file.write(replace_section(document, section(results)))
    print(coverage_table(coverage(results)), file=sys.stderr)


if __name__ == '__main__':
    sys.exit(main())

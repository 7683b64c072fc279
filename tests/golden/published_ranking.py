"""How well predictions rank configurations: the one called best, and pairs in the measured order.

Configurations compete where a source measured the same work (model, batch, sequence, devices, precision) in several
layouts. Within a group, what counts is the measured time of the layout that is predicted to be the fastest, over the
measured best; and for every pair that was measured at least APART from each other, whether the predicted order is the
measured one. Predictions are those of published_fit.py with the group's source left out of the fit.
"""

import statistics

APART = 0.02  # measured times that are closer are ties
BEST = 0.02  # the configuration called best is within this of the measured best


def groups_of(results):
    """Runs of the same work in several layouts, by that work; runs without one (`work`) do not compete."""
    groups = {}
    for run in results:
        if 'predicted' in run and 'work' in run:
            groups.setdefault((run['source'], run['work']), []).append(run)
    return {key: runs for key, runs in groups.items() if len({run['name'] for run in runs}) > 1}


def loss_of_best(runs):
    """The measured time of what is predicted to be the fastest, over the measured best, less 1."""
    chosen = min(runs, key=lambda run: run['predicted'])
    return chosen['seconds'] / min(run['seconds'] for run in runs) - 1


def pairs_of(runs):
    """Counts the pairs that were measured apart: those in the measured order, and all."""
    right = total = 0
    for at, one in enumerate(runs):
        for other in runs[at + 1 :]:
            if abs(one['seconds'] / other['seconds'] - 1) < APART:
                continue
            total += 1
            right += (one['predicted'] < other['predicted']) == (one['seconds'] < other['seconds'])
    return right, total


def percent(value):
    return f'{100 * value:.1f} %'


def section(results, schedule_pairs):
    """Text for docs/accuracy_published.md. schedule_pairs: title, right, total of pairs of schedules."""
    text = (
        '\n## Ranking\n\nWhich layout is called the fastest, and how many pairs of layouts are in the measured order, among runs of '
        'one model on\nas many devices with the same batch. The constants are those fitted without the source. '
        f'Pairs that\nwere measured within {percent(APART)} of each other are ties and left out. Sources with one layout per model and number of '
        'devices, as\nNVIDIA\'s among the known ones, rank nothing.\n\n'
        '| source | work | layouts | called best, over the measured best | pairs in order |\n|---|---|---|---|---|\n'
    )
    losses, single = [], []
    right_of_all = total_of_all = 0
    for (source, work), runs in groups_of(results).items():
        loss, (right, total) = loss_of_best(runs), pairs_of(runs)
        losses.append(loss)
        right_of_all, total_of_all = right_of_all + right, total_of_all + total
        if len(runs) < 5 and source.endswith('single'):
            single.append(loss)
            continue
        text += f'| {source} | {work} | {len(runs)} | {percent(loss)} | {right} of {total} |\n'
    if single:
        within = sum(loss <= BEST for loss in single)
        text += f'\n{len(single)} groups of under 5 layouts are not listed: {within} of their best are within {percent(BEST)}.\n'
    within = sum(loss <= BEST for loss in losses)
    text += (
        f'\nThe layout called best is within {percent(BEST)} of the measured best in {within} of {len(losses)} groups '
        f'(median {percent(statistics.median(losses))}, worst {percent(max(losses))}). '
        f'{right_of_all} of {total_of_all} pairs of layouts ({percent(right_of_all / total_of_all)}) are in the measured order.\n'
    )
    for title, right, total in schedule_pairs:
        text += f'\n{title}: {right} of {total} pairs of schedules ({percent(right / total)}) are in the measured order.\n'
    return text


def self_test():
    runs = [
        {'source': 's', 'work': 'w', 'name': name, 'predicted': predicted, 'seconds': seconds}
        for name, predicted, seconds in (('a', 1.0, 1.1), ('b', 2.0, 1.0), ('c', 3.0, 2.0), ('d', 4.0, 2.01))
    ]
    assert len(groups_of(runs)) == 1 and not groups_of(runs[:1])
    assert abs(loss_of_best(runs) - 0.1) < 1e-9  # a is called best, b is
    assert pairs_of(runs) == (4, 5)  # a before b is wrong; c and d are a tie
    assert '4 of 5 pairs' in section(runs, [])


if __name__ == '__main__':
    self_test()

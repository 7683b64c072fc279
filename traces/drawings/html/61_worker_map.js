// Builds the heat map of measured steps: a row per worker, a column per step.

function makeWorkerMap(map) {
  const worst = Math.max(...map.rows.map((row) => Math.max(...row.S)));
  const columnText = ([first, last]) => (first === last ? String(first) : `${first}\u2013${last}`);
  const makeCell = (row, slowdown, at) => {
    const text = `${row.worker}, step ${columnText(map.columns[at])}: +${share(slowdown - 1, 1)}`;
    const cell = make('td', { title: text, 'aria-label': text });
    cell.style.background = `rgba(178, 24, 43, ${((slowdown - 1) / (worst - 1)).toFixed(3)})`;
    return cell;
  };
  const rows = map.rows.map((row) => make('tr', {},
    make('th', { scope: 'row' }, row.worker), ...row.S.map((slowdown, at) => makeCell(row, slowdown, at))));
  const others = [
    map.unnoticed > 0 ? `${countText(map.unnoticed, 'worker')} under 2 %` : '',
    map.cut > 0 ? `${countText(map.cut, 'worker')} that are less slow` : '',
  ].filter((text) => text !== '').join(' and ');
  const caption = 'How much longer each worker makes a step than the mean of all would, a column per step from '
    + `${columnText(map.columns[0])} to ${columnText(map.columns[map.columns.length - 1])}; `
    + `the darkest is +${share(worst - 1, 1)}${others === '' ? '' : `; left out: ${others}`}`;
  const table = make('table', { class: 'heat' }, make('caption', {}, caption), make('tbody', {}, ...rows));
  return make('section', { 'aria-label': 'workers by step' }, make('h2', {}, 'Workers by step'),
    make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'workers by step' }, table));
}

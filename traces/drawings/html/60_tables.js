// Builds the part below the timeline: numbers with their definitions, and tables. Every text is
// inserted as text, never as markup, because names come from files.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const kNumbers = [
  ['makespan', 'makespan', shortTimeText, 'first start anywhere to last end anywhere'],
  ['bubble ratio', 'ratio', percentText, 'idle share of all ranks\u2019 time'],
  ['overhead', 'overhead', percentText, 'how much longer than the busiest rank\u2019s work the step is'],
  ['span rate', 'spanRate', percentText,
    'the zero-bubble papers\u2019 rate: of the longest rank\u2019s span, what exceeds the busiest\u2019s work'],
  ['lower bound', 'lowerBound', shortTimeText, 'no order of these ops on these ranks is faster'],
];

function makeNumbers(step) {
  const list = make('dl', { class: 'numbers' });
  for (const [name, key, text, meaning] of kNumbers) {
    if (step[key] === undefined) continue;  // a step that its ops do not explain
    const exact = text === shortTimeText ? timeText(step[key]) : '';
    list.append(make('div', {},
      make('dt', {}, name),
      make('dd', { class: 'value', title: exact }, text(step[key])),
      make('dd', { class: 'meaning' }, meaning)));
  }
  return list;
}

// Shows only the columns that are not empty for every rank.
function usedColumns(names, lists) {
  return names.map((name, at) => ({ name, at })).filter(({ at }) => lists.some((list) => list[at] !== 0));
}

function share(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : '';
}

// Shows times in the unit of the makespan, with three decimals, so that columns can be compared.
function cellText(nanos, makespan) {
  const [, size] = unitFor(makespan);
  return nanos === 0 ? '\u2013' : trimZeros((nanos / size).toFixed(Math.min(3, Math.log10(size))));
}

function makeRankTable(data, step) {
  const busy = usedColumns(data.busyKinds, step.ranks.map((rank) => rank.busyBy));
  const idle = usedColumns(data.causes, step.ranks.map((rank) => rank.idleBy));
  const heads = (columns) => columns.map(({ name }) => make('th', { scope: 'col' }, name));
  const [unit] = unitFor(step.makespan);
  const table = make('table', { class: 'ranks' });
  const caption = `Where the time of each rank went, in ${unit}: busy by kind and idle by cause add up to the step`;
  table.append(make('caption', {}, caption));
  table.append(make('thead', {}, make('tr', {},
    make('th', { scope: 'col' }, 'rank'), make('th', { scope: 'col', class: 'bar' }, 'busy and idle'),
    ...heads(busy), make('th', { scope: 'col', class: 'sum' }, 'busy'),
    ...heads(idle), make('th', { scope: 'col', class: 'sum' }, 'idle'),
    make('th', { scope: 'col', class: 'sum' }, 'sum'),
    make('th', { scope: 'col' }, 'idle share'), make('th', { scope: 'col' }, 'peak held'))));
  const body = make('tbody');
  step.ranks.forEach((rank, at) => body.append(makeRankRow(data, step, rank, { at, busy, idle })));
  table.append(body);
  const label = `times of the ranks of ${step.label}`;
  return make('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, table);
}

function makeRankRow(data, step, rank, { at, busy, idle }) {
  if (!rank.recorded) {
    const columns = String(busy.length + idle.length + 6);
    return make('tr', {}, make('th', { scope: 'row' }, String(at)), make('td', { colspan: columns }, 'no trace'));
  }
  const time = (nanos, kind = '') => make('td', kind ? { class: kind } : {}, cellText(nanos, step.makespan));
  const held = rank.peakBytes === null ? countText(rank.peakActivations, 'micro-batch') : bytesText(rank.peakBytes);
  return make('tr', {},
    make('th', { scope: 'row' }, String(at)), make('td', { class: 'bar' }, makeBar(data, step, rank)),
    ...busy.map((column) => time(rank.busyBy[column.at])), time(rank.busy, 'sum'),
    ...idle.map((column) => time(rank.idleBy[column.at])), time(rank.idle, 'sum'),
    time(rank.busy + rank.idle, 'sum'), make('td', {}, share(rank.idle, rank.busy + rank.idle)), make('td', {}, held));
}

function makeBar(data, step, rank) {
  const bar = make('span', { class: 'stack', 'aria-hidden': 'true' });
  const add = (part, css, value) => {
    if (part === 0) return;
    const piece = make('i', { class: css, title: value });
    piece.style.width = `${(100 * part) / Math.max(step.makespan, 1)}%`;
    bar.append(piece);
    return piece;
  };
  data.busyKinds.forEach((name, at) => {
    const code = { send: 'SEND_F', opt: 'OPT' }[name] || name;
    const kind = data.kinds.find((each) => each.code === code);
    const piece = add(rank.busyBy[at], 'busy', name);
    if (piece) piece.style.background = kind.colour;
  });
  data.causes.forEach((cause, at) => add(rank.idleBy[at], `cause ${cause}`, cause));
  return bar;
}

function quantile(sorted, fraction) {
  return sorted.length === 0 ? 0 : sorted[Math.min(sorted.length - 1, Math.floor(fraction * sorted.length))];
}

// Compares every op that both steps have with the step that this one is compared with.
function findErrors(data, step) {
  const { op } = step;
  const errors = [];
  for (let id = 0; id < op.count; ++id) {
    if (op.kind[id] >= data.computeKinds || op.role[id] !== 0) continue;
    const other = counterpartOf(data, step, id);
    if (!other) continue;
    const predicted = other.step.op;
    const start = op.start[id] - step.origin - (predicted.start[other.id] - other.step.origin);
    const was = predicted.end[other.id] - predicted.start[other.id];
    errors.push({ id, kind: op.kind[id], start, was, is: op.end[id] - op.start[id] });
  }
  return errors;
}

function makeErrorTables(data, step, select) {
  const errors = findErrors(data, step);
  if (errors.length === 0) return make('div');
  const sizes = errors.map((error) => Math.abs(error.start)).sort((left, right) => left - right);
  const off = (fraction) => timeText(quantile(sizes, fraction));
  const worst = [...errors].sort((left, right) => Math.abs(right.start) - Math.abs(left.start)).slice(0, 12);
  return make('div', { class: 'errors' },
    make('h3', {}, `Against ${data.steps[step.against].label}, op by op`),
    make('p', {}, `Starts are off by ${off(0.5)} (half of the ops are off by less), ${off(0.95)} (19 of 20), at most ${off(1)}.`),
    make('div', { class: 'pair' }, makeKindErrors(data, step, errors), makeWorstErrors(data, step, worst, select)));
}

function makeTable(caption, heads, rows) {
  const head = heads.map((each) => make('th', { scope: 'col' }, each));
  const makeCell = (cell, at) => (at === 0 ? make('th', { scope: 'row' }, cell) : make('td', {}, cell));
  return make('table', {},
    make('caption', {}, caption),
    make('thead', {}, make('tr', {}, ...head)),
    make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells.map(makeCell)))));
}

function makeKindErrors(data, step, errors) {
  const rows = [];
  data.kinds.forEach((kind, at) => {
    const mine = errors.filter((error) => error.kind === at);
    if (mine.length === 0) return;
    const mean = (key) => mine.reduce((sum, error) => sum + error[key], 0) / mine.length;
    const [was, is] = [mean('was'), mean('is')];
    rows.push([kind.name, String(mine.length), timeText(Math.round(was)), timeText(Math.round(is)), share(is - was, was)]);
  });
  return makeTable('Mean durations by kind', ['kind', 'ops', data.steps[step.against].label, step.label, 'off by'], rows);
}

function makeWorstErrors(data, step, worst, select) {
  const rows = worst.map((error) => {
    const button = make('button', { type: 'button', class: 'op' }, opText(data, step, error.id));
    button.addEventListener('click', () => select(step, error.id));
    return [button, String(rankOf(step, error.id)), shiftText(error.start), timeText(error.was), timeText(error.is)];
  });
  const heads = ['op', 'rank', 'starts', `took in ${data.steps[step.against].label}`, `in ${step.label}`];
  return makeTable('The ops whose starts are farthest apart', heads, rows);
}

// Shows several steps side by side; the others show how much longer than the shortest they take.
function makeSummary(data) {
  const best = Math.min(...data.steps.map((step) => step.makespan));
  const rows = data.steps.map((step) => [
    step.label, shortTimeText(step.makespan), step.makespan === best ? '\u2013' : `+${share(step.makespan - best, best)}`,
    ...['ratio', 'overhead', 'spanRate'].map((key) => (step.isConclusive ? percentText(step[key]) : '\u2013')),
    step.memoryInBytes ? heldText(step, step.highestHeld)
      : countText(Math.max(...step.ranks.map((rank) => rank.peakActivations)), 'micro-batch'),
  ]);
  const heads = ['', 'makespan', 'than the shortest', 'bubble ratio', 'overhead', 'span rate', 'most held'];
  return make('section', { 'aria-label': 'side by side' }, makeTable('Side by side', heads, rows));
}

function makeAssumptions(step) {
  const list = make('dl', { class: 'made' });
  for (const [name, value] of step.made)
    list.append(make('div', {}, make('dt', {}, name.replace(/_/g, ' ')), make('dd', {}, value)));
  return list;
}

function makeStepSection(data, step, select) {
  const section = make('section', { 'aria-label': step.label }, make('h2', {}, step.label));
  if (step.breakdown) section.append(make('p', { class: 'breakdown', role: 'alert' }, `This step is not whole: ${step.breakdown}`));
  section.append(makeNumbers(step));
  if (step.isConclusive) section.append(makeRankTable(data, step));
  if (step.against !== null) section.append(makeErrorTables(data, step, select));
  if (step.made.length > 0)
    section.append(make('details', {}, make('summary', {}, 'What it was made with'), makeAssumptions(step)));
  return section;
}

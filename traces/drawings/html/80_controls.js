// Builds the bar above the timeline, the legend and the panel of the selected op.

function makeToggle(page, key, label) {
  const box = make('input', { type: 'checkbox' });
  box.checked = page.shows[key];
  box.addEventListener('change', () => page.toggle(key, box.checked));
  page.boxes[key] = box;
  return make('label', { class: 'toggle' }, box, label);
}

function makeButton(text, label, act) {
  const button = make('button', { type: 'button', 'aria-label': label, title: label }, text);
  button.addEventListener('click', act);
  return button;
}

function makeColourChoice(page) {
  const select = make('select');
  for (const [value, name] of [['kind', 'kind'], ['microbatch', 'micro-batch'], ['chunk', 'chunk']])
    select.append(make('option', { value }, name));
  select.addEventListener('change', () => page.colourBy(select.value));
  return make('label', {}, 'colour by ', select);
}

function makeSearch(page) {
  const input = make('input', {
    type: 'search', placeholder: 'find an op: 2F7', 'aria-label': 'find an op, such as 2F7', spellcheck: 'false', autocomplete: 'off',
  });
  const answer = make('span', { class: 'answer', role: 'status' });
  const form = make('form', { role: 'search' }, input, answer);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    answer.textContent = page.find(input.value);
  });
  page.search = input;
  return form;
}

function fillBar(page, bar) {
  const middle = () => kGutter + page.view.chart / 2;
  bar.append(
    make('span', { class: 'group' },
      makeButton('\u2212', 'zoom out (-)', () => page.zoom(1 / 0.6, middle())),
      makeButton('+', 'zoom in (+)', () => page.zoom(0.6, middle())),
      makeButton('fit', 'show all (0)', () => page.fit())),
    makeColourChoice(page),
    makeToggle(page, 'critical', 'critical path'),
    makeToggle(page, 'links', 'messages and queues'),
    makeToggle(page, 'memory', 'memory'),
    makeSearch(page));
}

function swatch(colour) {
  const square = make('i', { 'aria-hidden': 'true' });
  square.style.background = colour;
  return square;
}

function legendEntry(colours, text) {
  return make('li', {}, ...colours.map(swatch), text);
}

// Lists only what occurs.
function fillLegend(page, legend) {
  const { data, theme } = page;
  legend.replaceChildren();
  const used = new Set();
  const causes = new Set();
  for (const step of data.steps) {
    for (let id = 0; id < step.op.count; ++id) if (step.op.thread[id] >= 0) used.add(step.op.kind[id]);
    for (const gaps of step.gaps) for (const cause of gaps.cause) causes.add(cause);
  }
  const names = new Map();
  data.kinds.forEach((kind, at) => {
    const isPaintedSo = page.painting === 'kind' || at >= data.computeKinds;
    if (used.has(at) && isPaintedSo) names.set(kind.name, kind.colour);
  });
  for (const [name, colour] of names) legend.append(legendEntry([colour], name));
  if (page.painting === 'microbatch')
    legend.append(legendEntry([0, 0.25, 0.5, 0.75, 1].map(rampColour), 'first to last micro-batch'));
  if (page.painting === 'chunk') {
    const chunks = largest(data.steps, (step) => step.chunkCount);
    for (let chunk = 0; chunk < Math.min(chunks, kChunkColours.length); ++chunk)
      legend.append(legendEntry([kChunkColours[chunk]], `chunk ${chunk}`));
  }
  data.causes.forEach((cause, at) => {
    if (causes.has(at)) legend.append(legendEntry([theme.causes[cause]], `idle: ${cause}`));
  });
  if (page.shows.critical) legend.append(make('li', {}, make('i', { class: 'frame', 'aria-hidden': 'true' }), 'critical path'));
}

function makeRows(rows) {
  const list = make('dl');
  for (const [name, value] of rows) list.append(make('div', {}, make('dt', {}, name), make('dd', {}, value)));
  return list;
}

function makeOpButtons(page, step, ids, empty) {
  if (ids.length === 0) return make('span', { class: 'none' }, empty);
  const list = make('span', { class: 'ops' });
  for (const id of ids.slice(0, 40)) {
    const button = make('button', { type: 'button', class: 'op' }, `${opText(page.data, step, id)} on ${rankOf(step, id)}`);
    button.addEventListener('click', () => page.select({ step, id }, true));
    list.append(button);
  }
  if (ids.length > 40) list.append(` and ${ids.length - 40} more`);
  return list;
}

function fillPanel(page, panel) {
  panel.replaceChildren();
  panel.hidden = !page.selected;
  if (!page.selected) return;
  const { step, id } = page.selected;
  const { before, after } = page.links;
  const about = describeFound(page.data, page.selected);
  const close = makeButton('\u00d7', 'close (Esc)', () => page.select(null));
  close.className = 'close';
  panel.append(
    make('h2', {}, page.data.steps.length > 1 ? `${about.title} (${step.label})` : about.title), close, makeRows(about.rows),
    make('div', { class: 'links' },
      make('h3', { class: 'before' }, 'waits for'), makeOpButtons(page, step, before, 'nothing: it could start at once'),
      make('h3', { class: 'after' }, 'is waited for by'), makeOpButtons(page, step, after, 'nothing'),
      make('h3', {}, 'beside it on its lane'),
      makeOpButtons(page, step, [page.links.previous, page.links.next].filter((each) => each !== null), 'nothing')));
}

function fillTip(page, tip, found, { x, y }) {
  const about = describeFound(page.data, found);
  tip.replaceChildren(make('strong', {}, about.title), makeRows(about.rows));
  tip.hidden = false;
  const room = page.frame.getBoundingClientRect();
  const left = x + 16 + tip.offsetWidth > room.width ? Math.max(4, x - 16 - tip.offsetWidth) : x + 16;
  const top = y + 18 + tip.offsetHeight > Math.max(room.height, 300) ? Math.max(4, y - 12 - tip.offsetHeight) : y + 18;
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

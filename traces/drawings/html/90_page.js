// The page's state: what is shown of the data, and who is notified when that changes.

const kHighestPaper = 6000;

class Page {
  constructor(data) {
    this.data = data;
    const ranks = data.steps.reduce((sum, step) => sum + step.ranks.length, 0);
    this.shows = { critical: true, links: ranks <= 16, memory: ranks <= 64 };
    this.boxes = {};
    this.painting = 'kind';
    this.painters = makePainters(data);
    this.selected = null;
    this.links = null;
    for (const name of ['canvas', 'scroller', 'frame', 'spacer', 'tip', 'panel', 'legend'])
      this[name] = document.getElementById(name);
    this.context = this.canvas.getContext('2d');
    this.view = new View(largest(data.steps, (step) => step.makespan));
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.theme = readTheme(this.dark.matches);
    this.layout = layOut(data, this.shows);
    fillBar(this, document.getElementById('bar'));
    this.input = new Input(this);
    this.listen();
    this.resize();
    fillLegend(this, this.legend);
  }

  listen() {
    this.dark.addEventListener('change', () => this.retheme(this.dark.matches));
    this.scroller.addEventListener('scroll', () => this.redraw());
    addEventListener('resize', () => this.resize());
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
  }

  // On paper all ranks are in view, within the maximum height of a canvas.
  print(isPaper) {
    this.isPaper = isPaper;
    this.retheme(!isPaper && this.dark.matches);
    this.resize();
  }

  retheme(isDark) {
    this.theme = readTheme(isDark);
    fillLegend(this, this.legend);
    this.drawNow();
  }

  // The canvas is as high as its content, at the resolution of the screen.
  resize() {
    const most = this.isPaper ? kHighestPaper : Math.max(220, Math.round(innerHeight * 0.72));
    this.height = Math.min(this.layout.height + kAxisHeight, most);
    this.scroller.style.height = `${this.height}px`;
    this.spacer.style.height = `${Math.max(this.layout.height + kAxisHeight - this.height, 0)}px`;
    const ratio = devicePixelRatio || 1;
    this.view.width = this.scroller.clientWidth;
    this.canvas.width = Math.round(this.view.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNow();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.waiting = null;
    const top = this.scroller.scrollTop;
    this.drawn = new Painter(this, this.context).draw(top, top + this.height - kAxisHeight);
    this.canvas.dataset.drawn = this.drawn;
  }

  paint(step, id) {
    return this.painters[this.painting](step, id);
  }

  colourBy(painting) {
    this.painting = painting;
    fillLegend(this, this.legend);
    this.redraw();
  }

  toggle(key, on = !this.shows[key]) {
    this.shows[key] = on;
    this.boxes[key].checked = on;
    this.layout = layOut(this.data, this.shows);
    fillLegend(this, this.legend);
    this.resize();
  }

  zoom(factor, x) {
    this.view.zoom(factor, x);
    this.redraw();
  }

  pan(time) {
    this.view.pan(time);
    this.redraw();
  }

  fit() {
    this.view.fit();
    this.redraw();
  }

  scroll(pixels) {
    this.scroller.scrollTop += pixels;
  }

  found({ x, y }) {
    if (y < kAxisHeight) return null;
    return findAt(this.layout, this.view, x, y - kAxisHeight + this.scroller.scrollTop);
  }

  hover(place) {
    const found = this.found(place);
    this.canvas.classList.toggle('over', Boolean(found && found.id !== undefined));
    if (found) fillTip(this, this.tip, found, place);
    else this.hideTip();
  }

  hideTip() {
    this.tip.hidden = true;
  }

  selectAt(place) {
    const found = this.found(place);
    this.select(found && found.id !== undefined ? found : null);
  }

  select(chosen, reveal = false) {
    this.selected = chosen && { step: chosen.step, id: chosen.id };
    this.links = chosen ? findLinks(this.data, chosen.step, chosen.id) : null;
    this.marked = new Map();
    if (chosen) {
      this.links.before.forEach((id) => this.marked.set(id, 'before'));
      this.links.after.forEach((id) => this.marked.set(id, 'after'));
      this.marked.set(chosen.id, 'selected');
      if (reveal) this.reveal(chosen);
    }
    fillPanel(this, this.panel);
    this.redraw();
  }

  // Brings an op into view at a readable size.
  reveal({ step, id }) {
    const { op } = step;
    const [from, to] = [op.start[id] - step.origin, op.end[id] - step.origin];
    const width = this.view.x(to) - this.view.x(from);
    if (from < this.view.from || to > this.view.to || width < 12) this.view.show(from, to);
    const place = this.placeOf(step, id);
    if (!place) return;
    const { scrollTop } = this.scroller;
    const hidden = place.row.top < scrollTop || place.row.bottom > scrollTop + this.height - kAxisHeight;
    if (hidden) this.scroller.scrollTop = place.row.top - this.height / 3;
  }

  placeOf(step, id) {
    const thread = step.op.thread[id];
    if (thread < 0) return null;
    const row = this.layout.rows[step.firstRow + step.threads[thread][0]];
    const lane = row.lanes.find((each) => each.thread === thread);
    return lane ? { row, lane } : null;
  }

  isDimmed(step, id) {
    return this.selected !== null && !(this.selected.step === step && this.marked.has(id));
  }

  markOf(step, id) {
    return this.selected && this.selected.step === step ? this.marked.get(id) : undefined;
  }

  selectFirst() {
    if (this.selected) return;
    const step = this.data.steps[0];
    const first = step.byThread.find((list) => list.length > 0);
    if (first) this.select({ step, id: first[0] }, true);
  }

  selectNext(by) {
    const next = by > 0 ? this.links.next : this.links.previous;
    if (next !== null) this.select({ step: this.selected.step, id: next }, true);
  }

  // Finds the op that runs on the neighbouring rank at the same time.
  selectRank(by) {
    const { step, id } = this.selected;
    const rank = rankOf(step, id) + by;
    if (rank < 0 || rank >= step.ranks.length) return;
    const list = step.byThread[step.lanesOfRank[rank][0]];
    if (!list || list.length === 0) return;
    const at = firstAbove(list.length, (place) => step.op.start[list[place]], step.op.start[id]);
    this.select({ step, id: list[Math.max(at - 1, 0)] }, true);
  }

  // Finds the next op of that name, from step to step.
  find(text) {
    const found = findOps(this.data, text);
    if (found.length === 0) return text.trim() === '' ? '' : 'no such op';
    const now = found.findIndex((each) => this.selected && each.step === this.selected.step && each.id === this.selected.id);
    const at = (now + 1) % found.length;
    this.select(found[at], true);
    return found.length > 1 ? `${at + 1} of ${found.length}` : '';
  }
}

function prepareStep(data, step, firstRow) {
  decodeStep(step, data.kinds.length);
  step.firstRow = firstRow;
  step.chunkCount = largest(step.chunks) + 1;
  step.microbatches = largest(step.op.microbatch) + 1;
  step.highestHeld = largest(step.curves, (curve) => curve.peak);
  step.criticalOps = [];
  for (let id = 0; id < step.op.count; ++id) if (step.op.critical[id]) step.criticalOps.push(id);
  step.criticalOps.sort((left, right) => step.op.start[left] - step.op.start[right] || left - right);
}

function open() {
  const begin = performance.now();
  const data = JSON.parse(document.getElementById('data').textContent);
  let rows = 0;
  for (const step of data.steps) {
    prepareStep(data, step, rows);
    rows += step.ranks.length;
  }
  const title = data.steps.map((step) => step.label).join(', ');
  document.getElementById('title').textContent = title;
  document.getElementById('command').textContent = data.command || 'no command line';
  document.getElementById('version').textContent = `bubblescope ${data.version}`;
  const page = new Page(data);
  const sections = document.getElementById('steps');
  const select = (step, id) => {
    page.select({ step, id }, true);
    page.canvas.focus();
  };
  if (data.steps.length > 1) sections.append(makeSummary(data));
  if (data.longSteps) sections.append(makeCauses(data.longSteps));
  if (data.changes) sections.append(makeChanges(data.changes));
  for (const step of data.steps) sections.append(makeStepSection(data, step, select));
  if (data.workers) sections.append(makeWorkerMap(data.workers));
  document.documentElement.dataset.opened = String(Math.round(performance.now() - begin));
  return page;
}

window.bubblescopePage = open();

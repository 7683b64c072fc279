// The layout: rows from top to bottom, time from left to right.

const kAxisHeight = 26;
const kStepHead = 30;
const kStepGap = 14;
const kGutter = 64;

// Lanes are lower where there are more ranks.
function laneHeights(ranks) {
  if (ranks <= 8) return { lane: 26, part: 14, link: 7, memory: 22, gap: 9 };
  if (ranks <= 32) return { lane: 19, part: 10, link: 5, memory: 15, gap: 6 };
  return { lane: 14, part: 6, link: 3, memory: 9, gap: 4 };
}

// A rank's compute lane is its first; the others are links and queues.
function layOutRank(step, rank, top, heights, shows) {
  const lanes = [];
  let y = top;
  step.lanesOfRank[rank].forEach((thread, at) => {
    if (at > 0 && !shows.links) return;
    const height = at === 0 ? heights.lane : heights.link;
    lanes.push({ thread, y, height, isCompute: at === 0 });
    y += height + 1;
    if (at > 0) return;
    for (const lane of layOutParts(step, rank, y, heights.part)) {
      lanes.push(lane);
      y += lane.height + 1;
    }
  });
  const memory = shows.memory ? { y: y + 1, height: heights.memory } : null;
  if (memory) y += heights.memory + 2;
  return { step, rank, top, lanes, memory, bottom: y };
}

function layOut(data, shows) {
  const total = data.steps.reduce((sum, step) => sum + step.ranks.length, 0);
  const heights = laneHeights(total);
  const layout = { rows: [], heads: [], height: 0 };
  let y = 4;
  for (const step of data.steps) {
    layout.heads.push({ step, y });
    y += kStepHead;
    for (let rank = 0; rank < step.ranks.length; ++rank) {
      const row = layOutRank(step, rank, y, heights, shows);
      layout.rows.push(row);
      y = row.bottom + heights.gap;
    }
    y += kStepGap;
  }
  layout.height = y;
  return layout;
}

// The part of the time that is in view. Times count from each step's own start.
class View {
  constructor(span) {
    this.span = Math.max(span, 1);
    this.width = 600;
    this.fit();
  }

  // Leaves a little space on the right, so that the end is visible as one.
  fit() {
    this.from = 0;
    this.to = this.span * 1.01;
  }

  get isFit() {
    return this.to - this.from >= this.span * 1.005;
  }

  get chart() {
    return Math.max(this.width - kGutter, 50);
  }

  x(time) {
    return kGutter + ((time - this.from) / (this.to - this.from)) * this.chart;
  }

  time(x) {
    return this.from + ((x - kGutter) / this.chart) * (this.to - this.from);
  }

  perPixel() {
    return (this.to - this.from) / this.chart;
  }

  // Keeps the time under x in place. It zooms no closer than a few nanoseconds, no farther than
  // all.
  zoom(factor, x) {
    const fixed = this.time(x);
    const shown = Math.min(Math.max((this.to - this.from) * factor, 20), this.span * 1.01);
    const share = (x - kGutter) / this.chart;
    this.from = fixed - share * shown;
    this.to = this.from + shown;
    this.stayInside();
  }

  pan(time) {
    this.from += time;
    this.to += time;
    this.stayInside();
  }

  show(from, to) {
    const room = Math.max((to - from) * 4, 20);
    this.from = from - room;
    this.to = to + room;
    this.stayInside();
  }

  stayInside() {
    const shown = Math.min(this.to - this.from, this.span * 1.01);
    this.from = Math.min(Math.max(this.from, 0), this.span * 1.01 - shown);
    this.to = this.from + shown;
  }
}

// Finds what is under a point: an op, a gap, a rank's memory, or nothing.
function findAt(layout, view, x, y) {
  if (x < kGutter) return null;
  const row = layout.rows.find((each) => y >= each.top && y < each.bottom);
  if (!row) return null;
  const time = view.time(x) + row.step.origin;
  const lane = row.lanes.find((each) => y >= each.y - 1 && y <= each.y + each.height);
  if (lane) return findInLane(row, lane, time, view.perPixel());
  if (row.memory && y >= row.memory.y) return { step: row.step, rank: row.rank, held: heldAt(row, time), time };
  return null;
}

function findInLane(row, lane, time, slack) {
  if (lane.parts) return findPart(row, lane, time, slack);
  const list = row.step.byThread[lane.thread];
  const op = row.step.op;
  const next = firstAbove(list.length, (at) => op.start[list[at]], time + slack);
  for (let at = next - 1; at >= Math.max(next - 2, 0); --at)
    if (op.end[list[at]] >= time - slack) return { step: row.step, rank: row.rank, id: list[at] };
  if (!lane.isCompute) return null;
  const gaps = row.step.gaps[row.rank];
  const gap = firstAbove(gaps.end.length, (at) => gaps.end[at], time);
  if (gap === gaps.end.length || gaps.start[gap] > time) return null;
  return { step: row.step, rank: row.rank, gap };
}

function heldAt(row, time) {
  const curve = row.step.curves[row.rank];
  const next = firstAbove(curve.time.length, (at) => curve.time[at], time);
  return next === 0 ? 0 : curve.held[next - 1];
}

// Formats numbers and ops as text.

const kUnits = [['s', 1e9], ['ms', 1e6], ['\u00b5s', 1e3], ['ns', 1]];

function unitFor(nanos) {
  return kUnits.find(([, size]) => Math.abs(nanos) >= size) || kUnits[3];
}

function trimZeros(text) {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

// Formats a time exactly and briefly: 12.5 ms, 1.204305 ms, 830 ns.
function timeText(nanos) {
  const [name, size] = unitFor(nanos);
  const digits = size === 1 ? 0 : Math.min(Math.log10(size), 6);
  return `${trimZeros((nanos / size).toFixed(digits))} ${name}`;
}

// Formats five digits, for headlines.
function shortTimeText(nanos) {
  const [name, size] = unitFor(nanos);
  const shown = nanos / size;
  const digits = Math.max(0, 4 - Math.floor(Math.log10(Math.max(Math.abs(shown), 1))));
  return `${size === 1 ? shown : trimZeros(shown.toFixed(digits))} ${name}`;
}

function countText(count, noun) {
  const ending = count === 1 ? '' : noun.endsWith('h') ? 'es' : 's';
  return `${trimZeros(count.toFixed(2))} ${noun}${ending}`;
}

function shiftText(nanos) {
  return (nanos > 0 ? '+' : '') + timeText(nanos);
}

function percentText(fraction) {
  const percent = 100 * fraction;
  if (percent > 0 && percent < 0.05) return '<0.1 %';
  return `${trimZeros(percent.toFixed(1))} %`;
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  for (; Math.abs(bytes) >= 1024 && at + 1 < units.length; ++at) bytes /= 1024;
  return `${trimZeros(bytes.toFixed(at === 0 ? 0 : 2))} ${units[at]}`;
}

function heldText(step, held) {
  return step.memoryInBytes ? bytesText(held) : countText(held, 'chunk');
}

// Rounds to 1, 2 or 5 times a power of ten.
function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const step = [1, 2, 5, 10].find((each) => each * power >= least);
  return Math.max(1, step * power);
}

function tickText(time, step, latest) {
  const [name, size] = unitFor(latest);
  const digits = Math.max(0, Math.ceil(Math.log10(size / step)));
  return `${(time / size).toFixed(digits)} ${name}`;
}

function opText(data, step, id) {
  const { op } = step;
  const kind = data.kinds[op.kind[id]];
  const slice = step.slices > 1 && kind.hasMicrobatch ? `.${op.slice[id]}` : '';
  const microbatch = kind.hasMicrobatch ? op.microbatch[id] : '';
  return `${op.role[id] === 2 ? 'wait ' : ''}${op.stage[id]}${kind.code}${microbatch}${slice}`;
}

function rankOf(step, id) {
  return step.threads[step.op.thread[id]][0];
}

// Finds the gaps that end where an op begins.
function gapsBefore(data, step, id) {
  const { op } = step;
  const rank = rankOf(step, id);
  if (step.lanesOfRank[rank][0] !== op.thread[id]) return [];
  const gaps = step.gaps[rank];
  const found = [];
  let end = op.start[id];
  for (let at = firstAbove(gaps.end.length, (place) => gaps.end[place], end) - 1; at >= 0 && gaps.end[at] === end; --at) {
    found.unshift({ cause: data.causes[gaps.cause[at]], length: gaps.end[at] - gaps.start[at] });
    end = gaps.start[at];
  }
  return found;
}

// Lists names and values of an op, for the tooltip and the panel.
function describeOp(data, step, id) {
  const { op, origin } = step;
  const kind = data.kinds[op.kind[id]];
  const rows = [
    ['rank', `${rankOf(step, id)}, ${step.threads[op.thread[id]][1]}`],
    ['stage', step.chunkCount > 1 ? `${op.stage[id]} (chunk ${step.chunks[op.stage[id]]})` : String(op.stage[id])],
  ];
  if (kind.hasMicrobatch) rows.push(['micro-batch', String(op.microbatch[id])]);
  if (step.slices > 1 && kind.hasMicrobatch) rows.push(['slice', String(op.slice[id])]);
  rows.push(['start', timeText(op.start[id] - origin)], ['end', timeText(op.end[id] - origin)]);
  rows.push(['duration', timeText(op.end[id] - op.start[id])]);
  if (!step.isConclusive) return rows;
  rows.push(['slack', op.slack[id] === 0 ? 'none: the step waits for it' : timeText(op.slack[id])]);
  const idle = gapsBefore(data, step, id).map((gap) => `${timeText(gap.length)} ${gap.cause}`);
  rows.push(['idle before', idle.length === 0 ? 'none' : idle.join(', ')]);
  return rows.concat(describeError(data, step, id));
}

function describeError(data, step, id) {
  const found = counterpartOf(data, step, id);
  if (!found) return [];
  const other = found.step.op;
  const starts = step.op.start[id] - step.origin - (other.start[found.id] - found.step.origin);
  const lasts = step.op.end[id] - step.op.start[id] - (other.end[found.id] - other.start[found.id]);
  return [[`against ${found.step.label}`, `starts ${shiftText(starts)}, takes ${shiftText(lasts)}`]];
}

function describeGap(data, step, rank, at) {
  const gaps = step.gaps[rank];
  const cause = data.causes[gaps.cause[at]];
  return {
    title: `idle: ${cause}`,
    rows: [
      ['rank', String(rank)],
      ['start', timeText(gaps.start[at] - step.origin)],
      ['end', timeText(gaps.end[at] - step.origin)],
      ['length', timeText(gaps.end[at] - gaps.start[at])],
      ['why', kCauseMeanings[cause]],
    ],
  };
}

// Describes what is under the pointer.
function describeFound(data, found) {
  if (found.id !== undefined) {
    const kind = data.kinds[found.step.op.kind[found.id]];
    const title = `${opText(data, found.step, found.id)} \u2013 ${kind.name}`;
    return { title, rows: describeOp(data, found.step, found.id) };
  }
  if (found.part !== undefined) return describePart(data, found);
  if (found.gap !== undefined) return describeGap(data, found.step, found.rank, found.gap);
  const { step, rank } = found;
  const rows = [
    ['rank', String(rank)],
    ['held', heldText(step, found.held)],
    ['at', timeText(found.time - step.origin)],
    ['peak', heldText(step, step.curves[rank].peak)],
  ];
  return { title: 'memory', rows };
}

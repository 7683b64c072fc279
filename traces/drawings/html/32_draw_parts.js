// Parts of ops: one lane below a rank's compute lane for each lane that parts use.

// Per rank and lane the parts in order of time. Where a rank is slow, parts stretch with their op.
function decodeParts(step) {
  const { op } = step;
  step.partLanes = step.partLanes || [];
  step.parts = step.ranks.map(() => step.partLanes.map(() => []));
  if (!step.partPlaces) return;
  const reader = new NumberReader(step.partPlaces);
  for (let left = reader.next(); left > 0; --left) {
    const first = reader.next();
    const last = first + reader.next();
    const run = step.partRuns[reader.next()];
    const [rank] = step.threads[op.thread[first]];
    const scale = run.time > 0 ? (op.end[last] - op.start[first]) / run.time : 1;
    for (const [use, layer, start, end] of run.spans) {
      const [name, lane, ofBackward] = run.uses[use];
      const id = ofBackward ? last : first;
      const from = op.start[first];
      step.parts[rank][lane].push({ name, layer, id, start: from + start * scale, end: from + end * scale });
    }
  }
  step.partPlaces = null;
}

function layOutParts(step, rank, top, height) {
  return step.partLanes.map((name, lane) => ({
    parts: step.parts[rank][lane], name, y: top + lane * (height + 1), height,
  }));
}

function drawParts(painter, row, lane) {
  const { context, view, page } = painter;
  const { step } = row;
  const { parts } = lane;
  painter.drawTrack(row, lane);
  let at = firstAbove(parts.length, (place) => parts[place].end, view.from + step.origin);
  for (; at < parts.length && parts[at].start - step.origin < view.to; ++at) {
    const x = view.x(parts[at].start - step.origin);
    const width = view.x(parts[at].end - step.origin) - x;
    const colour = page.paint(step, parts[at].id);
    context.fillStyle = colour;
    context.fillRect(x, lane.y, Math.max(width - (width > 5 ? 1 : 0), 0.5), lane.height);
    if (lane.height >= 12)
      painter.writeIn(parts[at].name, Math.max(x, kGutter), x + width, lane, inkOn(colour));
  }
}

function findPart(row, lane, time, slack) {
  const { parts } = lane;
  const at = firstAbove(parts.length, (place) => parts[place].end, time - slack);
  if (at === parts.length || parts[at].start > time + slack) return null;
  return { step: row.step, rank: row.rank, part: parts[at], lane: lane.name };
}

function describePart(data, { step, rank, part, lane }) {
  return {
    title: `${part.name} of ${opText(data, step, part.id)}`,
    rows: [
      ['rank', `${rank}, lane ${lane}`],
      ['layer', String(part.layer)],
      ['start', timeText(part.start - step.origin)],
      ['end', timeText(part.end - step.origin)],
      ['duration', timeText(part.end - part.start)],
    ],
  };
}

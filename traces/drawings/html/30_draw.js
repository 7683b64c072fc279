// Draws what is in view. Ops too narrow to be seen one by one share their pixels.

const kNarrow = 1.5;

// Adds up, pixel by pixel, what narrow ops cover.
class PixelColumn {
  constructor(context, lane, criticalColour) {
    this.context = context;
    this.lane = lane;
    this.criticalColour = criticalColour;
    this.isCritical = false;
    this.x = null;
    this.busy = new Map();
  }

  // The share of a narrow op in each of the few columns that it touches.
  add(x, width, colour, isCritical) {
    const end = x + width;
    for (let column = Math.floor(x); column === Math.floor(x) || column < end; ++column) {
      const covered = Math.min(end, column + 1) - Math.max(x, column);
      if (column !== this.x) this.flush();
      this.x = column;
      this.isCritical = this.isCritical || isCritical;
      this.busy.set(colour, (this.busy.get(colour) || 0) + covered);
    }
  }

  flush() {
    if (this.x === null) return;
    let y = this.lane.y;
    const whole = [...this.busy.values()].reduce((sum, each) => sum + each, 0);
    const filled = this.lane.height * Math.min(1, Math.max(whole, 0.15));
    for (const [colour, covered] of [...this.busy].sort()) {
      const height = filled * (covered / whole || 1);
      this.context.fillStyle = colour;
      this.context.fillRect(this.x, y, 1, height);
      y += height;
    }
    if (this.isCritical && this.criticalColour) {
      this.context.fillStyle = this.criticalColour;
      this.context.fillRect(this.x, this.lane.y + this.lane.height - 1, 1, 2);
    }
    this.busy.clear();
    this.x = null;
    this.isCritical = false;
  }
}

class Painter {
  constructor(page, context) {
    this.page = page;
    this.context = context;
    this.view = page.view;
    this.theme = page.theme;
    this.drawn = 0;
  }

  draw(top, bottom) {
    const { context, view, page } = this;
    this.top = top;
    context.fillStyle = this.theme.panel;
    context.fillRect(0, 0, view.width, bottom - top + kAxisHeight);
    context.save();
    context.translate(0, kAxisHeight - top);
    for (const row of page.layout.rows) if (row.bottom >= top && row.top <= bottom) this.drawRow(row);
    for (const head of page.layout.heads) if (head.y + kStepHead >= top && head.y <= bottom) this.drawHead(head);
    if (page.shows.critical) this.drawCriticalHops();
    if (page.selected) this.drawLinks();
    context.restore();
    this.drawAxis();
    return this.drawn;
  }

  clipChart(y, height) {
    this.context.beginPath();
    this.context.rect(kGutter, y, this.view.chart, height);
    this.context.clip();
  }

  drawHead({ step, y }) {
    const { context, theme } = this;
    context.fillStyle = theme.ink;
    context.font = '600 13px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    const title = `${step.label}`;
    context.fillText(title, 10, y + 15);
    const width = context.measureText(title).width;
    context.fillStyle = theme.faint;
    context.font = '12px system-ui, sans-serif';
    const facts = [step.shape, step.source, shortTimeText(step.makespan)];
    if (step.isConclusive) facts.push(`bubble ${percentText(step.ratio)}`);
    context.fillText(facts.join(' \u00b7 '), 10 + width + 12, y + 15);
  }

  drawRow(row) {
    const { context, theme, view } = this;
    context.fillStyle = theme.faint;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    if (row.lanes.length > 0) context.fillText(`rank ${row.rank}`, kGutter - 8, row.lanes[0].y + row.lanes[0].height / 2);
    if (!row.step.ranks[row.rank].recorded) return;
    context.save();
    this.clipChart(row.top - 2, row.bottom - row.top + 4);
    for (const lane of row.lanes) {
      if (lane.parts) {
        drawParts(this, row, lane);
        continue;
      }
      if (lane.isCompute) this.drawGaps(row, lane);
      else this.drawTrack(row, lane);
      this.drawOps(row, lane);
    }
    if (row.memory) this.drawMemory(row);
    context.restore();
  }

  drawTrack(row, lane) {
    this.context.fillStyle = this.theme.grid;
    const to = this.view.x(row.step.makespan);
    this.context.fillRect(this.view.x(0), lane.y + lane.height / 2, to - this.view.x(0), 0.5);
  }

  drawGaps(row, lane) {
    const { context, view, theme, page } = this;
    const gaps = row.step.gaps[row.rank];
    const origin = row.step.origin;
    let at = firstAbove(gaps.end.length, (place) => gaps.end[place], view.from + origin);
    for (; at < gaps.end.length && gaps.start[at] - origin < view.to; ++at) {
      const x = view.x(gaps.start[at] - origin);
      const width = view.x(gaps.end[at] - origin) - x;
      const cause = page.data.causes[gaps.cause[at]];
      context.fillStyle = theme.causes[cause];
      context.fillRect(x, lane.y, Math.max(width, 0.5), lane.height);
      if (width > 8 * cause.length && lane.height >= 14)
        this.writeIn(cause, Math.max(x, kGutter), x + width, lane, theme.faint);
    }
  }

  writeIn(text, from, to, lane, ink) {
    const { context } = this;
    const end = Math.min(to, this.view.width);
    context.font = `${Math.min(12, lane.height - 4)}px system-ui, sans-serif`;
    if (end - from < text.length * 6 + 3) return;
    context.fillStyle = ink;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.fillText(text, (from + end) / 2, lane.y + lane.height / 2 + 0.5);
  }

  drawOps(row, lane) {
    const { context, view, page } = this;
    const { step } = row;
    const { op, origin } = step;
    const list = step.byThread[lane.thread];
    const column = new PixelColumn(context, lane, page.shows.critical ? this.theme.critical : null);
    let at = firstAbove(list.length, (place) => op.end[list[place]], view.from + origin);
    for (; at < list.length && op.start[list[at]] - origin < view.to; ++at) {
      const id = list[at];
      const x = view.x(op.start[id] - origin);
      const width = view.x(op.end[id] - origin) - x;
      const colour = op.role[id] === 2 ? this.theme.line : page.paint(step, id);
      ++this.drawn;
      if (width < kNarrow) {
        column.add(x, width, colour, op.critical[id] === 1);
        continue;
      }
      column.flush();
      this.drawOp(row, lane, id, { x, width, colour });
    }
    column.flush();
  }

  drawOp(row, lane, id, { x, width, colour }) {
    const { context, page } = this;
    const { step } = row;
    context.globalAlpha = page.isDimmed(step, id) ? 0.28 : 1;
    context.fillStyle = colour;
    const edge = width > 5 ? 1 : 0;
    context.fillRect(x, lane.y, width - edge, lane.height);
    if (lane.isCompute && width > 10 && lane.height >= 12) {
      const name = opText(page.data, step, id);
      const short = String(step.op.microbatch[id]);
      const text = width > name.length * 6 + 8 ? name : short;
      this.writeIn(text, Math.max(x, kGutter), x + width, lane, inkOn(colour));
    }
    if (page.shows.critical && step.op.critical[id]) this.frame(lane, x, width - edge, this.theme.critical, 2);
    context.globalAlpha = 1;
    this.drawMark(lane, step, id, x, width - edge);
  }

  // Draws the selected op, its dependencies and its dependents.
  drawMark(lane, step, id, x, width) {
    const mark = this.page.markOf(step, id);
    if (mark === 'selected') this.frame(lane, x, width, this.theme.ink, 3);
    if (mark === 'before') this.frame(lane, x, width, this.theme.before, 3);
    if (mark === 'after') this.frame(lane, x, width, this.theme.after, 3, [4, 2]);
  }

  frame(lane, x, width, colour, thickness, dash = []) {
    const { context } = this;
    context.setLineDash(dash);
    context.strokeStyle = colour;
    context.lineWidth = Math.min(thickness, Math.max(1, width / 3));
    const inset = context.lineWidth / 2;
    context.strokeRect(x + inset, lane.y + inset, Math.max(width - 2 * inset, 0.5), lane.height - 2 * inset);
    context.setLineDash([]);
  }

  drawMemory(row) {
    const { context, view, theme } = this;
    const { step } = row;
    const curve = step.curves[row.rank];
    const highest = step.highestHeld || 1;
    const base = row.memory.y + row.memory.height;
    const y = (held) => base - (held / highest) * (row.memory.height - 1);
    const first = Math.max(firstAbove(curve.time.length, (at) => curve.time[at], view.from + step.origin) - 1, 0);
    context.beginPath();
    context.moveTo(view.x(curve.time[first] - step.origin), base);
    let last = base;
    let at = first;
    for (; at < curve.time.length && curve.time[at] - step.origin < view.to; ++at) {
      const x = view.x(curve.time[at] - step.origin);
      context.lineTo(x, last);
      context.lineTo(x, (last = y(curve.held[at])));
    }
    const end = Math.min(view.x(step.makespan), view.width);
    context.lineTo(end, last);
    context.lineTo(end, base);
    context.fillStyle = theme.memory;
    context.globalAlpha = 0.35;
    context.fill();
    context.globalAlpha = 1;
    context.strokeStyle = theme.memory;
    context.lineWidth = 1;
    context.stroke();
  }
}

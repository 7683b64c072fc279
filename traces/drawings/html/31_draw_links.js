// Draws the layer above the rows: the critical path's hops, the arrows of a selected op, the time
// axis.

Object.assign(Painter.prototype, {
  laneOf(step, id) {
    const place = this.page.placeOf(step, id);
    return place && place.lane;
  },

  // Draws a line from the end of one critical op to the start of the next on another rank.
  drawCriticalHops() {
    const { context, view } = this;
    context.save();
    context.beginPath();
    context.rect(kGutter, this.top, view.chart, 1e7);
    context.clip();
    context.strokeStyle = this.theme.critical;
    context.lineWidth = 1.5;
    context.globalAlpha = this.page.selected ? 0.3 : 1;
    context.beginPath();
    for (const step of this.page.data.steps) this.traceHops(step);
    context.stroke();
    context.restore();
  },

  // Where messages have no rows, a hop leads from op to op.
  traceHops(step) {
    const { view } = this;
    const { op, origin, criticalOps } = step;
    let before = null;
    const first = firstAbove(criticalOps.length, (place) => op.end[criticalOps[place]] - origin, view.from);
    for (let at = Math.max(first - 2, 0); at < criticalOps.length; ++at) {
      const id = criticalOps[at];
      const lane = this.laneOf(step, id);
      if (!lane) continue;
      if (before && before.lane !== lane) this.traceHop(before, { lane, x: view.x(op.start[id] - origin) });
      before = { lane, x: view.x(op.end[id] - origin) };
      if (before.x > view.width) break;
    }
  },

  traceHop(from, to) {
    const down = to.lane.y > from.lane.y;
    this.context.moveTo(from.x, from.lane.y + (down ? from.lane.height : 0));
    this.context.lineTo(to.x, to.lane.y + (down ? 0 : to.lane.height));
  },

  drawLinks() {
    const { step, id } = this.page.selected;
    const links = this.page.links;
    this.context.save();
    this.context.beginPath();
    this.context.rect(kGutter, this.top, this.view.chart, 1e7);
    this.context.clip();
    for (const other of links.before) this.drawArrow(step, other, id, this.theme.before, []);
    for (const other of links.after) this.drawArrow(step, id, other, this.theme.after, [5, 3]);
    this.context.restore();
  },

  drawArrow(step, from, to, colour, dash) {
    const start = this.laneOf(step, from);
    const end = this.laneOf(step, to);
    if (!start || !end) return;
    const { context, view } = this;
    const x0 = view.x(step.op.end[from] - step.origin);
    const x1 = view.x(step.op.start[to] - step.origin);
    const y0 = start.y + start.height / 2;
    const y1 = end.y + end.height / 2;
    const bend = Math.max(Math.abs(x1 - x0) / 2, 12);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x1 + 1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.fill();
  },

  drawAxis() {
    const { context, view, theme } = this;
    context.fillStyle = theme.panel;
    context.fillRect(0, 0, view.width, kAxisHeight);
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(kGutter, kAxisHeight - 0.5);
    context.lineTo(view.width, kAxisHeight - 0.5);
    const step = tickStep(view.perPixel() * 90);
    context.fillStyle = theme.faint;
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
      const x = view.x(time);
      context.moveTo(x, kAxisHeight - 6);
      context.lineTo(x, kAxisHeight);
      if (x < view.width - 20) context.fillText(tickText(time, step, view.to), x, 10);
    }
    context.stroke();
  },
});

// Handles wheel, drag, touch and keys on the timeline.

class Input {
  constructor(page) {
    this.page = page;
    this.canvas = page.canvas;
    this.pointers = new Map();
    const on = (name, act, options) => this.canvas.addEventListener(name, act, options);
    on('wheel', (event) => this.wheel(event), { passive: false });
    on('pointerdown', (event) => this.press(event));
    on('pointermove', (event) => this.move(event));
    on('pointerup', (event) => this.release(event));
    on('pointercancel', (event) => this.pointers.delete(event.pointerId));
    on('pointerleave', () => page.hideTip());
    on('dblclick', (event) => page.zoom(0.4, this.place(event).x));
    on('keydown', (event) => this.key(event));
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // Scrolling down zooms out; where everything is in view already, the document scrolls instead.
  wheel(event) {
    const { page } = this;
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      page.pan(sideways * page.view.perPixel());
    } else if (!(page.view.isFit && event.deltaY > 0)) {
      event.preventDefault();
      page.zoom(Math.exp(Math.min(Math.max(event.deltaY, -200), 200) / 300), this.place(event).x);
    }
  }

  press(event) {
    this.pointers.set(event.pointerId, this.place(event));
    this.moved = 0;
    this.spread = this.spreadOfFingers();
    if (event.pointerType !== 'touch') this.canvas.setPointerCapture(event.pointerId);
  }

  spreadOfFingers() {
    const [first, second] = [...this.pointers.values()];
    return second ? { width: Math.max(Math.abs(first.x - second.x), 10), middle: (first.x + second.x) / 2 } : null;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    const now = this.place(event);
    if (!before) return this.page.hover(now);
    this.pointers.set(event.pointerId, now);
    if (this.pointers.size > 1) return this.pinch();
    this.moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (this.moved < 4) return undefined;
    this.page.hideTip();
    this.canvas.classList.add('dragged');
    if (event.pointerType !== 'touch') this.page.scroller.scrollTop -= now.y - before.y;
    return this.page.pan((before.x - now.x) * this.page.view.perPixel());
  }

  pinch() {
    const now = this.spreadOfFingers();
    if (this.spread) {
      this.page.pan((this.spread.middle - now.middle) * this.page.view.perPixel());
      this.page.zoom(this.spread.width / now.width, now.middle);
    }
    this.spread = now;
    this.moved = 100;
  }

  release(event) {
    const isClick = this.pointers.has(event.pointerId) && this.moved < 4;
    this.pointers.delete(event.pointerId);
    this.spread = null;
    this.canvas.classList.remove('dragged');
    if (!isClick) return;
    const place = this.place(event);
    this.page.selectAt(place);
    if (event.pointerType === 'touch') this.page.hover(place);
  }

  key(event) {
    const { page } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = page.view.to - page.view.from;
    const middle = kGutter + page.view.chart / 2;
    const acts = {
      ArrowLeft: () => (page.selected && !event.shiftKey ? page.selectNext(-1) : page.pan(-shown / 8)),
      ArrowRight: () => (page.selected && !event.shiftKey ? page.selectNext(1) : page.pan(shown / 8)),
      ArrowUp: () => (page.selected ? page.selectRank(-1) : page.scroll(-40)),
      ArrowDown: () => (page.selected ? page.selectRank(1) : page.scroll(40)),
      '+': () => page.zoom(0.7, middle),
      '=': () => page.zoom(0.7, middle),
      '-': () => page.zoom(1 / 0.7, middle),
      0: () => page.fit(),
      Enter: () => page.selectFirst(),
      Escape: () => page.select(null),
      c: () => page.toggle('critical'),
      '/': () => page.search.focus(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

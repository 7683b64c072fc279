// Decodes the lists of the data, from numbers in base64 to typed arrays. traces/drawings/html_data.cc writes
// them in the same order and with the same predictions.

class NumberReader {
  constructor(text) {
    const letters = atob(text);
    this.bytes = new Uint8Array(letters.length);
    for (let at = 0; at < letters.length; ++at) this.bytes[at] = letters.charCodeAt(at);
    this.at = 0;
  }

  // Times have more than 32 bits, so shifts cannot be used.
  next() {
    let number = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.at++];
      number += (byte & 0x7f) * scale;
      if (byte < 0x80) return number;
      scale *= 128;
    }
  }

  nextSigned() {
    const folded = this.next();
    return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
  }
}

function emptyOps(count, kinds, threads) {
  return {
    count,
    kind: new Uint8Array(count),
    role: new Uint8Array(count),
    critical: new Uint8Array(count),
    thread: new Int32Array(count),
    stage: new Int32Array(count),
    microbatch: new Int32Array(count),
    slice: new Int16Array(count),
    start: new Float64Array(count),
    end: new Float64Array(count),
    slack: new Float64Array(count),
    awaitedBegin: new Uint32Array(count + 1),
    awaited: [],
    likely: new Float64Array(3 * kinds * (threads + 1)),
  };
}

// Instructions in an order in which each follows its dependencies. Thread -1 is not shown.
function decodeOps(step, kinds) {
  const reader = new NumberReader(step.ops);
  const threads = step.threads.length;
  const ops = emptyOps(step.count, kinds, threads);
  const lastEnd = new Float64Array(threads + 1).fill(step.origin);
  const lastStage = new Int32Array(threads + 1);
  let thread = 0;
  for (let id = 0; id < step.count; ++id) {
    const head = reader.next();
    const kind = head & 31;
    thread += reader.nextSigned();
    const likely = 3 * (thread * kinds + kind);
    ops.kind[id] = kind;
    ops.role[id] = (head >> 5) & 3;
    ops.critical[id] = head >> 7;
    ops.thread[id] = thread - 1;
    ops.stage[id] = lastStage[thread] += reader.nextSigned();
    ops.microbatch[id] = ops.likely[likely] += reader.nextSigned();
    ops.slice[id] = step.slices > 1 ? reader.next() : 0;
    ops.start[id] = lastEnd[thread] + reader.nextSigned();
    ops.end[id] = ops.start[id] + (ops.likely[likely + 1] += reader.nextSigned());
    ops.slack[id] = ops.likely[likely + 2] += reader.nextSigned();
    lastEnd[thread] = ops.end[id];
    for (let left = reader.next(); left > 0; --left) ops.awaited.push(id - reader.next());
    ops.awaitedBegin[id + 1] = ops.awaited.length;
  }
  ops.awaited = Uint32Array.from(ops.awaited);
  ops.likely = null;
  return ops;
}

// Per thread its instructions in order of time.
function sortByThread(ops, threads) {
  const size = new Uint32Array(threads);
  for (let id = 0; id < ops.count; ++id) if (ops.thread[id] >= 0) ++size[ops.thread[id]];
  const lists = Array.from(size, (count) => new Uint32Array(count));
  size.fill(0);
  for (let id = 0; id < ops.count; ++id) {
    const thread = ops.thread[id];
    if (thread >= 0) lists[thread][size[thread]++] = id;
  }
  const earlier = (left, right) => ops.start[left] - ops.start[right] || left - right;
  for (const list of lists) if (!isSorted(list, earlier)) list.sort(earlier);
  return lists;
}

function isSorted(list, compare) {
  for (let at = 1; at < list.length; ++at) if (compare(list[at - 1], list[at]) > 0) return false;
  return true;
}

// Per rank its idle gaps in order of time.
function decodeIdle(step) {
  const reader = new NumberReader(step.idle);
  return step.ranks.map(() => {
    const count = reader.next();
    const gaps = { cause: new Uint8Array(count), start: new Float64Array(count), end: new Float64Array(count) };
    let from = step.origin;
    for (let at = 0; at < count; ++at) {
      gaps.cause[at] = reader.next();
      gaps.start[at] = from + reader.nextSigned();
      from = gaps.end[at] = gaps.start[at] + reader.nextSigned();
    }
    return gaps;
  });
}

// Per rank what it holds from which time on.
function decodeMemory(step) {
  const reader = new NumberReader(step.memory);
  return step.ranks.map(() => {
    const count = reader.next();
    const curve = { time: new Float64Array(count), held: new Float64Array(count), peak: 0 };
    let time = step.origin;
    let units = 0;
    for (let at = 0; at < count; ++at) {
      curve.time[at] = time += reader.nextSigned();
      units += reader.nextSigned();
      curve.held[at] = units * step.memoryUnit;
      curve.peak = Math.max(curve.peak, curve.held[at]);
    }
    return curve;
  });
}

function decodeStep(step, kinds) {
  step.op = decodeOps(step, kinds);
  step.byThread = sortByThread(step.op, step.threads.length);
  step.gaps = decodeIdle(step);
  step.curves = decodeMemory(step);
  step.lanesOfRank = step.ranks.map(() => []);
  step.threads.forEach(([rank], thread) => step.lanesOfRank[rank].push(thread));
  decodeParts(step);
  step.ops = step.idle = step.memory = null;
}

function largest(list, valueOf = (each) => each) {
  return list.reduce((most, each) => Math.max(most, valueOf(each)), 0);
}

// Finds the first place in a list of ids, or of places themselves, whose value is above a limit.
function firstAbove(count, valueAt, limit) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (valueAt(middle) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Finds the dependencies and dependents of an op.

function successorsOf(op) {
  if (op.successorBegin) return op;
  const begin = new Uint32Array(op.count + 1);
  for (const awaited of op.awaited) ++begin[awaited + 1];
  for (let id = 0; id < op.count; ++id) begin[id + 1] += begin[id];
  const next = begin.slice();
  op.successors = new Uint32Array(op.awaited.length);
  for (let id = 0; id < op.count; ++id)
    for (let at = op.awaitedBegin[id]; at < op.awaitedBegin[id + 1]; ++at) op.successors[next[op.awaited[at]]++] = id;
  op.successorBegin = begin;
  return op;
}

function awaitedBy(op, id) {
  return op.awaited.subarray(op.awaitedBegin[id], op.awaitedBegin[id + 1]);
}

function waitingFor(op, id) {
  const { successors, successorBegin } = successorsOf(op);
  return successors.subarray(successorBegin[id], successorBegin[id + 1]);
}

// Walks from an op over messages, posts and waits to the next ops; everything that is shown on the
// way is part of the result.
function follow(op, id, neighbours, isOp) {
  const found = new Set();
  const seen = new Set([id]);
  const open = [id];
  while (open.length > 0 && seen.size < 10000)
    for (const next of neighbours(op, open.pop())) {
      if (seen.has(next)) continue;
      seen.add(next);
      if (op.thread[next] >= 0) found.add(next);
      if (!isOp(next)) open.push(next);
    }
  return [...found].sort((left, right) => left - right);
}

function findLinks(data, step, id) {
  const { op } = step;
  const isOp = (other) => op.kind[other] < data.computeKinds && op.role[other] === 0;
  const list = step.byThread[op.thread[id]];
  const at = list.indexOf(id);
  return {
    before: follow(op, id, awaitedBy, isOp),
    after: follow(op, id, waitingFor, isOp),
    previous: at > 0 ? list[at - 1] : null,
    next: at + 1 < list.length ? list[at + 1] : null,
  };
}

// Finds all ops of a name in every step: "2F7", "2f7.1", "0SEND_F3".
function findOps(data, text) {
  const parts = /^(\d+)([A-Z_]+)(\d*)(?:\.(\d+))?$/.exec(text.trim().toUpperCase());
  if (!parts) return [];
  const kind = data.kinds.findIndex((each) => each.code === parts[2]);
  const [stage, microbatch, slice] = [Number(parts[1]), Number(parts[3] || 0), parts[4]];
  const found = [];
  for (const step of data.steps) {
    const { op } = step;
    for (let id = 0; id < op.count; ++id)
      if (op.kind[id] === kind && op.stage[id] === stage && op.microbatch[id] === microbatch && op.thread[id] >= 0 &&
          (slice === undefined || op.slice[id] === Number(slice)))
        found.push({ step, id });
  }
  return found;
}

// Finds the same op in the step with which this one is compared.
function counterpartOf(data, step, id) {
  if (step.against === null) return null;
  const other = data.steps[step.against];
  if (!other.idOfKey) {
    other.idOfKey = new Map();
    for (let each = 0; each < other.op.count; ++each) other.idOfKey.set(keyOf(other, each), each);
  }
  const found = other.idOfKey.get(keyOf(step, id));
  return found === undefined ? null : { step: other, id: found };
}

function keyOf(step, id) {
  const { op } = step;
  const thread = op.thread[id];
  const rank = thread < 0 ? -1 : step.threads[thread][0];
  return `${op.kind[id]} ${op.role[id]} ${op.stage[id]} ${op.microbatch[id]} ${op.slice[id]} ${rank}`;
}

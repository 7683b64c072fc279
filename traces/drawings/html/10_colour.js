// Colours of kinds, micro-batches and chunks for ops, and of causes for idle time. They differ in
// lightness as well as in hue, so that they stay distinct for colour-blind readers and in print.

const kCauseColours = {
  light: {
    warmup: '#dfe7f2', imbalance: '#f3c9a5', dependency: '#e9dcc0', communication: '#d6c3e6',
    memory: '#bfe0dd', drain: '#e4e6ea', sync: '#f0bccb', arrival: '#cfe3bd', launch: '#ddd0c8',
  },
  dark: {
    warmup: '#26364d', imbalance: '#6b4327', dependency: '#544826', communication: '#493560',
    memory: '#1f4f4c', drain: '#2d3138', sync: '#632c3d', arrival: '#3c5228', launch: '#4a3f39',
  },
};

const kCauseMeanings = {
  warmup: 'before the rank\u2019s first op: the pipeline fills',
  imbalance: 'waiting that no order removes: the busiest rank has that much more work',
  dependency: 'waiting for an op of another rank',
  communication: 'waiting while the awaited message is on its way',
  memory: 'waiting for memory to be free, or for activations to be back',
  drain: 'after the rank\u2019s last op: the pipeline empties',
  sync: 'waiting for a collective or the optimizer\u2019s barrier',
  arrival: 'waiting for a micro-batch to arrive',
  launch: 'between two ops, although the second is ready',
};

// Okabe and Ito's palette, without yellow, which is too light for white text.
const kChunkColours = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#7a6cc4', '#8c8c8c'];

// From dark blue over teal to yellow, as lightness grows (after viridis).
const kRamp = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function rampColour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (kRamp.length - 1);
  const from = Math.min(Math.floor(place), kRamp.length - 2);
  const [low, high] = [kRamp[from], kRamp[from + 1]];
  const mix = (channel) => Math.round(low[channel] + (place - from) * (high[channel] - low[channel]));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

function channels(colour) {
  if (colour[0] === '#') return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return colour.match(/\d+/g).map(Number);
}

function lighten(colour, amount) {
  const mixed = channels(colour).map((channel) => Math.round(channel + amount * (255 - channel)));
  return `rgb(${mixed.join(',')})`;
}

const inks = new Map();

// Black or white, whichever is easier to read.
function inkOn(colour) {
  if (!inks.has(colour)) {
    const [red, green, blue] = channels(colour);
    inks.set(colour, 0.299 * red + 0.587 * green + 0.114 * blue > 150 ? '#111' : '#fff');
  }
  return inks.get(colour);
}

// One function per way to colour, step, id -> colour, and the entries of its legend.
function makePainters(data) {
  const shades = new Map();
  const shadeOf = (kind, chunk, chunks) => {
    const key = kind * 4096 + chunk * 64 + Math.min(chunks, 63);
    if (!shades.has(key)) {
      const lighter = chunks > 1 ? (0.5 * chunk) / (chunks - 1) : 0;
      shades.set(key, lighten(data.kinds[kind].colour, lighter));
    }
    return shades.get(key);
  };
  const byRamp = Array.from({ length: 257 }, (_, at) => rampColour(at / 256));
  const rampPlace = (step, id) => Math.round((256 * step.op.microbatch[id]) / Math.max(step.microbatches - 1, 1));
  const chunkOf = (step, id) => step.chunks[step.op.stage[id]] || 0;
  const isOp = (step, id) => step.op.kind[id] < data.computeKinds;
  const kind = (step, id) => shadeOf(step.op.kind[id], chunkOf(step, id), step.chunkCount);
  return {
    kind,
    microbatch: (step, id) => (isOp(step, id) ? byRamp[rampPlace(step, id)] : kind(step, id)),
    chunk: (step, id) => (isOp(step, id) ? kChunkColours[chunkOf(step, id) % kChunkColours.length] : kind(step, id)),
  };
}

// The page's own colours, from its style. Paper is light, whatever the screen is.
function readTheme(isDark) {
  document.documentElement.classList.toggle('light', !isDark);
  const style = getComputedStyle(document.documentElement);
  const theme = { isDark, causes: isDark ? kCauseColours.dark : kCauseColours.light };
  for (const name of ['paper', 'panel', 'ink', 'faint', 'line', 'grid', 'critical', 'before', 'after', 'memory'])
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  return theme;
}

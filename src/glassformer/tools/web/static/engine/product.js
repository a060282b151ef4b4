// The memory of all weights, and the product of a matrix of weights and vectors.
//
// WebAssembly computes it, or the same sums in the same order in JavaScript: both give the same
// numbers, to the bit. Weights are float32, or int8 with a scale for each row.

// product.wat, assembled: `wat2wasm product.wat`.
const PRODUCT =
  "AGFzbQEAAAABGQNgA39/fwBgA39/fwF9YAh/f39/f39/fwACEgEGZW5naW5lBm1lbW9yeQIAAQMEAwABAgcMAQhtdWx0" +
  "aXBseQACCs8CA0kCAX8BeyAAIAJqIQMDQCAA/QEDACEEIAEgBP2nAf36Af0LBAAgASAE/agB/foB/QsEECABQSBqIQEg" +
  "AEEIaiEAIAAgA0kNAAsLdAIBfwJ7IAAgAkECdGohAwNAIAQgAP0ABAAgAf0ABAD95gH95AEhBCAFIAD9AAQQIAH9AAQQ" +
  "/eYB/eQBIQUgAEEgaiEAIAFBIGohASAAIANJDQALIAQgBf3kASEEIAT9HwAgBP0fAZIgBP0fAiAE/R8DkpILjQEDA38B" +
  "fQF/IAJBAnQhDEMAAIA/IQsDQCADBEAgACAIIAJsaiAEIAIQACAEIQogAyAIQQJ0aioCACELBSAAIAggDGxqIQoLQQAh" +
  "CQNAIAcgCSABbCAIakECdGogCyAKIAUgCSAMbGogAhABlDgCACAJQQFqIQkgCSAGSQ0ACyAIQQFqIQggCCABSQ0ACws=";
const LANES = 8; // the length of a row is a multiple of this
const AT_ONCE = 8; // vectors of one call
const PAGE = 65536; // bytes, of WebAssembly's memory

const padded = (length) => Math.ceil(length / LANES) * LANES;

export class Products {
  // `matrices`: all that will be placed, with their kinds and shapes. `wasm`: whether to try it.
  constructor(matrices, { wasm = true } = {}) {
    const widest = Math.max(...matrices.map(({ columns }) => padded(columns)));
    const tallest = Math.max(...matrices.map(({ rows }) => rows));
    const bytes = matrices.map(({ kind, rows, columns }) => {
      const row = padded(columns) * (kind === "int8" ? 1 : 4);
      return rows * row + (kind === "int8" ? 4 * rows : 0) + 16;
    });
    const room = 4 * (widest + AT_ONCE * (widest + tallest)) + 64;
    const size = bytes.reduce((sum, more) => sum + more, room);
    this.end = 0;
    this.multiply = null;
    if (wasm) this.open(Math.ceil(size / PAGE));
    this.path = this.multiply ? "WebAssembly" : "JavaScript";
    this.buffer ??= new ArrayBuffer(Math.ceil(size / PAGE) * PAGE);
    const views = [new Int8Array(this.buffer), new Float32Array(this.buffer)];
    this.multiply ??= (...places) => multiply(...views, ...places);
    this.wide = this.take(4 * widest);
    this.x = this.take(4 * AT_ONCE * widest);
    this.y = this.take(4 * AT_ONCE * tallest);
  }

  // Some browsers and policies refuse WebAssembly, and old ones lack its SIMD.
  open(pages) {
    try {
      const memory = new WebAssembly.Memory({ initial: pages });
      const code = Uint8Array.from(atob(PRODUCT), (letter) => letter.charCodeAt(0));
      const module = new WebAssembly.Module(code);
      const { exports } = new WebAssembly.Instance(module, { engine: { memory } });
      this.multiply = exports.multiply;
      this.buffer = memory.buffer;
    } catch {
      this.multiply = null;
    }
  }

  take(bytes) {
    const place = this.end;
    this.end += Math.ceil(bytes / 16) * 16;
    return place;
  }

  // Copy a matrix into the memory; `values` are int8 or float32, `scales` one float32 a row.
  place({ kind, rows, columns, values, scales }) {
    const narrow = kind === "int8";
    const length = padded(columns);
    const place = this.take(rows * length * (narrow ? 1 : 4));
    const held = new (narrow ? Int8Array : Float32Array)(this.buffer, place, rows * length);
    for (let r = 0; r < rows; r += 1)
      held.set(values.subarray(r * columns, (r + 1) * columns), r * length);
    const scale = narrow ? this.take(4 * rows) : 0;
    const scaled = narrow ? new Float32Array(this.buffer, scale, rows) : null;
    scaled?.set(scales);
    return { rows, columns, length, place, scale, held, scaled };
  }

  // The products of every row of `x` with every row of the matrix: x.rows * matrix.rows numbers.
  product(matrix, x, output) {
    const floats = new Float32Array(this.buffer);
    for (let first = 0; first < x.rows; first += AT_ONCE) {
      const count = Math.min(AT_ONCE, x.rows - first);
      for (let i = 0; i < count; i += 1) {
        const start = this.x / 4 + i * matrix.length;
        floats.set(x.row(first + i), start);
        floats.fill(0, start + x.columns, start + matrix.length);
      }
      const { place, rows, length, scale } = matrix;
      this.multiply(place, rows, length, scale, this.wide, this.x, count, this.y);
      const start = this.y / 4;
      output.set(floats.subarray(start, start + count * rows), first * rows);
    }
    return output;
  }
}

// A row of a placed matrix, as float32.
export function rowOf({ held, scaled, length, columns }, row) {
  const values = held.subarray(row * length, row * length + columns);
  return scaled ? new Float32Array(values).map((value) => value * scaled[row]) : values;
}

// product.wat in JavaScript: the same eight sums of float32.
function multiply(bytes, floats, weights, rows, columns, scales, _wide, x, count, y) {
  const f = Math.fround;
  const values = scales ? bytes : floats;
  for (let r = 0; r < rows; r += 1) {
    const row = (scales ? weights : weights / 4) + r * columns;
    const scale = scales ? floats[scales / 4 + r] : 1;
    for (let i = 0; i < count; i += 1) {
      const vector = x / 4 + i * columns;
      let a = 0, b = 0, c = 0, d = 0, e = 0, g = 0, h = 0, k = 0;
      for (let place = 0; place < columns; place += LANES) {
        const w = row + place;
        const v = vector + place;
        a = f(a + f(values[w] * floats[v]));
        b = f(b + f(values[w + 1] * floats[v + 1]));
        c = f(c + f(values[w + 2] * floats[v + 2]));
        d = f(d + f(values[w + 3] * floats[v + 3]));
        e = f(e + f(values[w + 4] * floats[v + 4]));
        g = f(g + f(values[w + 5] * floats[v + 5]));
        h = f(h + f(values[w + 6] * floats[v + 6]));
        k = f(k + f(values[w + 7] * floats[v + 7]));
      }
      const sum = f(f(f(a + e) + f(b + g)) + f(f(c + h) + f(d + k)));
      floats[y / 4 + i * rows + r] = f(scale * sum);
    }
  }
}

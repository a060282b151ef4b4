// The weights of the page's file: the bytes of a safetensors file, and a part's view of them.

import { Products } from "./product.js";
import { Matrix } from "./tensor.js";

// A matrix of int8 has its scales, one for each row, under its name with this ending.
const SCALE = ".scale";
const TYPES = { F32: Float32Array, I8: Int8Array, F16: Uint16Array };

export class Weights {
  static read(bytes, options) {
    const tensors = tensorsOf(bytes);
    const names = [...tensors.keys()].filter((name) => !name.endsWith(SCALE));
    const matrices = new Map();
    const vectors = new Map();
    for (const name of names) {
      const { shape, values } = tensors.get(name);
      const scales = tensors.get(name + SCALE)?.values;
      const [rows, columns] = shape;
      if (shape.length === 1) vectors.set(name, values);
      else matrices.set(name, { kind: scales ? "int8" : "float32", rows, columns, values, scales });
    }
    const products = new Products([...matrices.values()], options);
    for (const [name, matrix] of matrices) matrices.set(name, products.place(matrix));
    return new Weights({ products, matrices, vectors }, "");
  }

  constructor(store, path) {
    Object.assign(this, { store, path });
  }

  // The weights of a part: their names begin with `name`.
  of(name) {
    return new Weights(this.store, `${this.path}${name}.`);
  }

  matrix(name) {
    return this.store.matrices.get(this.path + name);
  }

  vector(name) {
    return this.store.vectors.get(this.path + name);
  }

  // A linear layer: x W^T + b.
  linear(name) {
    return linear(this.store.products, this.matrix(`${name}.weight`), this.vector(`${name}.bias`));
  }

  norm(name) {
    return { weight: this.vector(`${name}.weight`), bias: this.vector(`${name}.bias`) };
  }
}

export function linear(products, matrix, bias) {
  return (x) => {
    const y = new Matrix(x.rows, matrix.rows);
    products.product(matrix, x, y.data);
    if (bias) for (let i = 0; i < y.data.length; i += 1) y.data[i] += bias[i % bias.length];
    return y;
  };
}

// The tensors of a safetensors file by name; float16 becomes float32.
function tensorsOf(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  return new Map(
    Object.entries(header).map(([name, { dtype, shape, data_offsets: [start, end] }]) => {
      // A copy: a typed array begins at a multiple of its size.
      const own = bytes.slice(8 + length + start, 8 + length + end);
      const stored = new TYPES[dtype](own.buffer);
      return [name, { shape, values: dtype === "F16" ? Float32Array.from(stored, wide) : stored }];
    }),
  );
}

// The number of a float16's bits.
function wide(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

// A small Vision Transformer that learns, in float32: forward, backward, AdamW. What takes time is
// done by train-kernel.wat, or by its twin below where there is no WebAssembly; both give the same bits on
// every machine, so a seed is a run. Pointers are bytes in one memory, sizes are numbers.
(function () {
  "use strict";
  const f = Math.fround;

  // --- Functions whose last bit every browser chooses for itself, from sums and products alone

  function exp(x) {
    if (!(Math.abs(x) < 746)) return x > 0 ? Infinity : x < 0 ? 0 : NaN; // beyond all doubles
    const k = Math.round(x / Math.LN2),
      r = x - k * Math.LN2;
    let y = 1,
      term = 1;
    for (let i = 1; i < 16; i++) y += term *= r / i;
    for (let i = k; i < 0; i++) y /= 2;
    for (let i = k; i > 0; i--) y *= 2;
    return y;
  }

  function log(x) {
    if (!(x > 0 && x < Infinity)) return x === 0 ? -Infinity : x > 0 ? Infinity : NaN;
    let k = 0;
    for (; x > 1.5; k++) x /= 2;
    for (; x < 0.75; k--) x *= 2;
    const z = (x - 1) / (x + 1);
    let y = 0,
      term = 2 * z;
    for (let i = 1; i < 40; i += 2, term *= z * z) y += term / i;
    return y + k * Math.LN2;
  }

  function sin(x) {
    const k = Math.round(x / Math.PI),
      r = x - k * Math.PI;
    let y = r,
      term = r;
    for (let i = 2; i < 24; i += 2) y += term *= (-r * r) / (i * (i + 1));
    return k % 2 ? -y : y;
  }

  const cos = (x) => sin(x + Math.PI / 2);

  // Numbers from a seed and a name: uniform in [0, 1), nearly normal (twelve of them), whole.
  function dice(seed, name = "") {
    let state = (seed ^ 0x9e3779b9) >>> 0;
    const next = () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let z = Math.imul(state ^ (state >>> 15), state | 1);
      z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
      return (z ^ (z >>> 14)) >>> 0;
    };
    for (const letter of name) state = (Math.imul(state, 31) + next() + letter.charCodeAt(0)) >>> 0;
    const uniform = () => next() / 4294967296;
    const normal = () => {
      let sum = -6;
      for (let i = 0; i < 12; i++) sum += uniform();
      return sum;
    };
    const order = (n) => {
      const all = Array.from({ length: n }, (_, i) => i);
      for (let i = n - 1; i > 0; i--) {
        const j = Math.floor(uniform() * (i + 1));
        [all[i], all[j]] = [all[j], all[i]];
      }
      return all;
    };
    return { uniform, normal, order, whole: (n) => Math.floor(uniform() * n) };
  }

  // --- The twin of train-kernel.wat, function by function

  function plain(memory) {
    const F = new Float32Array(memory.buffer);
    const powers = new Float32Array(new Int32Array(256).map((_, i) => i << 23).buffer); // of 2
    const S = new Float32Array(4);
    const lanes = () => f(f(S[0] + S[1]) + f(S[2] + S[3]));
    const [log2e, big, high, low] = [Math.LOG2E, 12582912, 0.693359375, -2.1219444e-4].map(f);
    const [e0, e1, e2, e3, e4, e5] = [
      1.98756915e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
      5.0000001201e-1
    ].map(f);

    function exp4(x) {
      if (!(x >= -60)) return x < -60 ? 0 : NaN;
      const n = f(f(f(x * log2e) + big) - big),
        r = f(f(x - f(n * high)) - f(n * low));
      let y = f(f(e0 * r) + e1);
      y = f(f(y * r) + e2);
      y = f(f(y * r) + e3);
      y = f(f(y * r) + e4);
      y = f(f(y * r) + e5);
      y = f(f(f(y * f(r * r)) + r) + 1);
      return f(y * powers[n + 127]);
    }

    const [b0, b1, b2, b3, b4, b5] = [
      0.231641888, 0.530702715, -0.726576014, 0.710706871, -0.142248368, 0.127414796
    ].map(f);
    const density = f(0.39894228);

    function below(x, e) {
      const t = f(1 / f(1 + f(Math.abs(x) * b0)));
      let y = f(f(b1 * t) + b2);
      y = f(f(y * t) + b3);
      y = f(f(y * t) + b4);
      y = f(f(y * t) + b5);
      y = f(f(y * t) * e);
      return x < 0 ? y : f(1 - y);
    }

    const flush = (x, least) => (Math.abs(x) >= least ? x : 0);
    const [tinyGradient, tinyMean, tinySquare] = [1e-15, 1e-25, 1e-35].map(f);

    return {
      mm(a, ar, ac, b, br, c, cr, m, k, n) {
        [a, ar, ac, b, br, c, cr] = [a, ar, ac, b, br, c, cr].map((bytes) => bytes >> 2);
        for (let i = 0; i < m; i++, a += ar, c += cr) {
          let j = 0;
          for (; j + 3 < n; j += 4) {
            const to = c + j;
            let s0 = F[to],
              s1 = F[to + 1],
              s2 = F[to + 2],
              s3 = F[to + 3];
            for (let p = 0, at = a, from = b + j; p < k; p++, at += ac, from += br) {
              const x = F[at];
              s0 = f(s0 + f(x * F[from]));
              s1 = f(s1 + f(x * F[from + 1]));
              s2 = f(s2 + f(x * F[from + 2]));
              s3 = f(s3 + f(x * F[from + 3]));
            }
            F[to] = s0;
            F[to + 1] = s1;
            F[to + 2] = s2;
            F[to + 3] = s3;
          }
          for (; j < n; j++) {
            let s = F[c + j];
            for (let p = 0, at = a, from = b + j; p < k; p++, at += ac, from += br)
              s = f(s + f(F[at] * F[from]));
            F[c + j] = s;
          }
        }
      },
      softmax(x, rows, n) {
        x >>= 2;
        const fours = n & -4;
        for (let r = 0; r < rows; r++, x += n) {
          let top = F[x];
          for (let i = 1; i < n; i++) top = Math.max(top, F[x + i]);
          S.fill(0);
          let i = 0;
          for (; i < fours; i++) S[i & 3] += F[x + i] = exp4(f(F[x + i] - top));
          let sum = lanes();
          for (; i < n; i++) sum = f(sum + (F[x + i] = exp4(f(F[x + i] - top))));
          for (i = 0; i < n; i++) F[x + i] /= sum;
        }
      },
      softmaxBack(p, d, rows, n, scale) {
        p >>= 2;
        d >>= 2;
        scale = f(scale);
        const fours = n & -4;
        for (let r = 0; r < rows; r++, p += n, d += n) {
          S.fill(0);
          let i = 0;
          for (; i < fours; i++) S[i & 3] += f(F[p + i] * F[d + i]);
          let sum = lanes();
          for (; i < n; i++) sum = f(sum + f(F[p + i] * F[d + i]));
          for (i = 0; i < n; i++) F[d + i] = f(f(F[p + i] * f(F[d + i] - sum)) * scale);
        }
      },
      norm(x, y, stats, w, b, rows, width, eps) {
        [x, y, stats, w, b] = [x, y, stats, w, b].map((bytes) => bytes >> 2);
        eps = f(eps);
        for (let r = 0; r < rows; r++, x += width, y += width, stats += 2) {
          S.fill(0);
          for (let i = 0; i < width; i++) S[i & 3] += F[x + i];
          const mean = f(lanes() / width);
          S.fill(0);
          for (let i = 0; i < width; i++) {
            const v = f(F[x + i] - mean);
            S[i & 3] += f(v * v);
          }
          const rate = f(1 / f(Math.sqrt(f(eps + f(lanes() / width)))));
          F[stats] = mean;
          F[stats + 1] = rate;
          for (let i = 0; i < width; i++)
            F[y + i] = f(f(f(f(F[x + i] - mean) * rate) * F[w + i]) + F[b + i]);
        }
      },
      normBack(x, stats, w, d, dx, dw, db, rows, width) {
        [x, stats, w, d, dx, dw, db] = [x, stats, w, d, dx, dw, db].map((bytes) => bytes >> 2);
        const T = new Float32Array(4);
        for (let r = 0; r < rows; r++, x += width, d += width, dx += width, stats += 2) {
          const mean = F[stats],
            rate = F[stats + 1];
          S.fill(0);
          T.fill(0);
          for (let i = 0; i < width; i++) {
            const h = f(rate * f(F[x + i] - mean));
            F[dw + i] += f(F[d + i] * h);
            F[db + i] += F[d + i];
            const g = f(F[d + i] * F[w + i]);
            S[i & 3] += g;
            T[i & 3] += f(g * h);
          }
          const s = f(lanes() / width),
            t = f(f(f(T[0] + T[1]) + f(T[2] + T[3])) / width);
          for (let i = 0; i < width; i++) {
            const h = f(rate * f(F[x + i] - mean)),
              g = f(F[d + i] * F[w + i]);
            F[dx + i] += f(rate * f(f(g - s) - f(h * t)));
          }
        }
      },
      gelu(x, y, n) {
        x >>= 2;
        y >>= 2;
        for (let i = 0; i < n; i++) {
          const v = F[x + i];
          F[y + i] = v * below(v, exp4(f(f(v * v) * -0.5)));
        }
      },
      geluBack(x, d, n) {
        x >>= 2;
        d >>= 2;
        for (let i = 0; i < n; i++) {
          const v = F[x + i],
            e = exp4(f(f(v * v) * -0.5));
          F[d + i] = f(F[d + i] * f(below(v, e) + f(f(v * e) * density)));
        }
      },
      adam(w, g, m, v, n, keep, step, root, first, second, eps) {
        [w, g, m, v] = [w, g, m, v].map((bytes) => bytes >> 2);
        [keep, step, root, first, second, eps] = [keep, step, root, first, second, eps].map(f);
        const notFirst = f(1 - first),
          notSecond = f(1 - second);
        for (let i = 0; i < n; i++) {
          const d = flush(F[g + i], tinyGradient);
          F[g + i] = 0;
          const p = flush(f(f(F[m + i] * first) + f(d * notFirst)), tinyMean),
            q = flush(f(f(F[v + i] * second) + f(f(d * d) * notSecond)), tinySquare);
          F[m + i] = p;
          F[v + i] = q;
          const size = f(f(f(Math.sqrt(q)) / root) + eps);
          F[w + i] = f(f(F[w + i] * keep) - f(step * f(p / size)));
        }
      }
    };
  }

  // --- Layers: each has `forward` and `back`, and adds to the gradients of what it was made from

  const DEFAULTS = {
    grid: 4, // patches in a row
    inputs: 4, // numbers of a patch
    classes: 10,
    read: "mean", // or "class", or "each": one answer for every patch
    dim: 32,
    depth: 2,
    heads: 4,
    hidden: 64,
    tokenHidden: 16,
    positions: "learned", // or "sincos", "none"
    positionStd: 0.02,
    base: 10000,
    mixing: "attention", // or "mlp", "conv", "mean", "none"
    scaled: true,
    residual: true,
    norm: "before", // or "after", "none"
    mlp: true,
    seed: 0,
    decay: 0.05,
    first: 0.9,
    second: 0.999
  };

  // memory: with a buffer of `bytes`; ops: the kernel's exports, or plain(memory).
  function model(wanted, memory, ops) {
    const F = new Float32Array(memory.buffer);
    let settings = { ...DEFAULTS, ...wanted },
      top = 16,
      batch = 0,
      layers = [],
      out = null,
      attended = [],
      stream = [];
    const tensors = new Map(), // weights by name
      rooms = new Map(), // everything else by name
      used = new Set();
    const one = (F[2] = 1) * 8;

    const clear = (at, n) => F.fill(0, at >> 2, (at >> 2) + n);

    function room(name, n) {
      const known = rooms.get(name);
      if (known && known.n >= n) return known.at;
      const at = top;
      top += ((n + 3) * 4) & -16;
      if (top > memory.buffer.byteLength)
        throw new RangeError(`the model needs more than ${memory.buffer.byteLength} bytes`);
      clear(at, (top - at) >> 2); // another model may have been here
      rooms.set(name, { at, n });
      return at;
    }

    // A weight: `shape` as PyTorch has it, kept (in, out). How it starts depends on seed and name.
    function weight(name, shape, start) {
      used.add(name);
      if (!tensors.has(name)) {
        const n = shape.reduce((a, b) => a * b);
        const [at, g, m, v] = ["", " g", " m", " v"].map((part) => room(name + part, n));
        const random = dice(settings.seed, name);
        for (let i = 0; i < n; i++) F[(at >> 2) + i] = start(random, i);
        tensors.set(name, { name, shape, n, at, g, m, v, steps: 0, decays: shape.length > 1 });
      }
      return tensors.get(name);
    }
    const zeros = () => 0,
      ones = () => 1;
    const normal = (std) => (random) => std * random.normal();

    // Values of (rows, width), and their gradients.
    function values(name, rows, width) {
      return { at: room(name, rows * width), g: room(`${name} d`, rows * width), rows, width };
    }
    const size = (x) => x.rows * x.width;

    function addTo(to, from, n) {
      to >>= 2;
      from >>= 2;
      for (let i = 0; i < n; i++) F[to + i] += F[from + i];
    }

    function transposed(from, stride, rows, columns, scale = 1) {
      const at = room("transposed", rows * columns) >> 2,
        factor = f(scale);
      from >>= 2;
      stride >>= 2;
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) F[at + j * rows + i] = F[from + i * stride + j] * factor;
      return at << 2;
    }

    function linear(x, name, width, std) {
      const { rows, width: K } = x,
        O = width;
      const W = weight(`${name}.weight`, [O, K], normal(std ?? 1 / Math.sqrt(K))),
        b = weight(`${name}.bias`, [O], zeros),
        y = values(name, rows, O);
      layers.push({
        forward() {
          for (let r = 0; r < rows; r++)
            F.copyWithin((y.at >> 2) + r * O, b.at >> 2, (b.at >> 2) + O);
          ops.mm(x.at, 4 * K, 4, W.at, 4 * O, y.at, 4 * O, rows, K, O);
        },
        back() {
          ops.mm(one, 0, 0, y.g, 4 * O, b.g, 4 * O, 1, rows, O);
          ops.mm(x.at, 4, 4 * K, y.g, 4 * O, W.g, 4 * O, K, rows, O);
          const back = transposed(W.at, 4 * O, K, O);
          ops.mm(y.g, 4 * O, 4, back, 4 * K, x.g, 4 * K, rows, O, K);
        }
      });
      return y;
    }

    function norm(x, name) {
      const { rows, width } = x;
      const w = weight(`${name}.weight`, [width], ones),
        b = weight(`${name}.bias`, [width], zeros);
      const y = values(name, rows, width),
        stats = room(`${name} stats`, 2 * rows);
      layers.push({
        forward: () => ops.norm(x.at, y.at, stats, w.at, b.at, rows, width, 1e-6),
        back: () => ops.normBack(x.at, stats, w.at, y.g, x.g, w.g, b.g, rows, width)
      });
      return y;
    }

    function gelu(x, name) {
      const y = values(name, x.rows, x.width);
      layers.push({
        forward: () => ops.gelu(x.at, y.at, size(x)),
        back() {
          ops.geluBack(x.at, y.g, size(x));
          addTo(x.g, y.g, size(x));
        }
      });
      return y;
    }

    function sum(x, z, name) {
      const y = values(name, x.rows, x.width);
      layers.push({
        forward() {
          F.copyWithin(y.at >> 2, x.at >> 2, (x.at >> 2) + size(x));
          addTo(y.at, z.at, size(x));
        },
        back() {
          addTo(x.g, y.g, size(x));
          addTo(z.g, y.g, size(x));
        }
      });
      return y;
    }

    // Tokens (images, N, D) to (images, D, N), or back.
    function turned(x, name, N, D) {
      const y = values(name, (x.rows * x.width) / N, N);
      const turn = (from, to, rows, columns, add) => {
        for (let b = 0; b < size(x); b += N * D)
          for (let i = 0; i < rows; i++)
            for (let j = 0; j < columns; j++) {
              const at = (to >> 2) + b + j * rows + i;
              F[at] = (add ? F[at] : 0) + F[(from >> 2) + b + i * columns + j];
            }
      };
      layers.push({
        forward: () => turn(x.at, y.at, N, D, false),
        back: () => turn(y.g, x.g, D, N, true)
      });
      return y;
    }

    const mixings = {
      none: (x) => x,
      attention(x, name, N) {
        const { heads } = settings,
          D = x.width,
          d = D / heads,
          images = x.rows / N,
          row = 12 * D;
        const scale = settings.scaled ? f(1 / Math.sqrt(d)) : 1;
        const qkv = linear(x, `${name}.qkv`, 3 * D),
          y = values(`${name}.out`, x.rows, D);
        const maps = values(`${name}.maps`, images * heads * N, N);
        attended.push(maps.at);
        const each = (what) => {
          for (let b = 0; b < images; b++)
            for (let h = 0; h < heads; h++) {
              const first = b * N * row + 4 * h * d;
              what(
                first,
                first + 4 * D,
                first + 8 * D,
                4 * (b * heads + h) * N * N,
                4 * (b * N * D + h * d)
              );
            }
        };
        layers.push({
          forward() {
            clear(maps.at, size(maps));
            clear(y.at, size(y));
            each((q, k, v, map) => {
              const keys = transposed(qkv.at + k, row, N, d, scale);
              ops.mm(qkv.at + q, row, 4, keys, 4 * N, maps.at + map, 4 * N, N, d, N);
            });
            ops.softmax(maps.at, maps.rows, N);
            each((q, k, v, map, to) =>
              ops.mm(maps.at + map, 4 * N, 4, qkv.at + v, row, y.at + to, 4 * D, N, N, d)
            );
          },
          back() {
            each((q, k, v, map, to) => {
              const back = transposed(qkv.at + v, row, N, d);
              ops.mm(y.g + to, 4 * D, 4, back, 4 * N, maps.g + map, 4 * N, N, d, N);
              ops.mm(maps.at + map, 4, 4 * N, y.g + to, 4 * D, qkv.g + v, row, N, N, d);
            });
            ops.softmaxBack(maps.at, maps.g, maps.rows, N, scale);
            each((q, k, v, map) => {
              ops.mm(maps.g + map, 4 * N, 4, qkv.at + k, row, qkv.g + q, row, N, N, d);
              ops.mm(maps.g + map, 4, 4 * N, qkv.at + q, row, qkv.g + k, row, N, N, d);
            });
          }
        });
        return linear(y, `${name}.proj`, D);
      },
      mlp(x, name, N) {
        const D = x.width;
        const across = turned(x, `${name}.across`, N, D),
          hidden = gelu(linear(across, `${name}.mlp.fc1`, settings.tokenHidden), `${name}.gelu`);
        return turned(linear(hidden, `${name}.mlp.fc2`, N), `${name}.mixed`, D, N);
      },
      mean(x, name, N) {
        const y = values(`${name}.mean`, x.rows, x.width),
          D = x.width;
        const share = room(`${name}.share`, 1);
        const spread = (from, to) => {
          F[share >> 2] = 1 / N;
          for (let b = 0; b < 4 * size(x); b += 4 * N * D)
            ops.mm(share, 0, 0, from + b, 4 * D, to + b, 4 * D, N, N, D);
        };
        layers.push({
          forward() {
            clear(y.at, size(y));
            spread(x.at, y.at);
          },
          back: () => spread(y.g, x.g)
        });
        return y;
      },
      // Three by three, each channel on its own, 0 beyond the edge; a class token is left alone.
      conv(x, name, N) {
        const { grid } = settings,
          D = x.width,
          extra = N - grid * grid;
        const W = weight(`${name}.weight`, [D, 1, 3, 3], normal(1 / 3)),
          b = weight(`${name}.bias`, [D], zeros),
          y = values(`${name}.conv`, x.rows, D);
        const taps = (what) => {
          for (let first = 0; first < x.rows; first += N)
            for (let i = 0; i < grid; i++)
              for (let j = 0; j < grid; j++)
                for (let t = 0; t < 9; t++) {
                  const u = i + Math.floor(t / 3) - 1,
                    v = j + (t % 3) - 1;
                  if (u < 0 || v < 0 || u >= grid || v >= grid) continue;
                  const at = first + extra;
                  what((at + i * grid + j) * D, (at + u * grid + v) * D, t * D);
                }
        };
        layers.push({
          forward() {
            clear(y.at, size(y));
            for (let r = 0; r < x.rows; r++) if (r % N >= extra) addTo(y.at + 4 * r * D, b.at, D);
            const to = y.at >> 2,
              from = x.at >> 2,
              by = W.at >> 2;
            taps((here, there, tap) => {
              for (let c = 0; c < D; c++)
                F[to + here + c] += f(F[by + tap + c] * F[from + there + c]);
            });
          },
          back() {
            for (let r = 0; r < x.rows; r++) if (r % N >= extra) addTo(b.g, y.g + 4 * r * D, D);
            const d = y.g >> 2,
              from = x.at >> 2,
              by = W.at >> 2,
              dx = x.g >> 2,
              dw = W.g >> 2;
            taps((here, there, tap) => {
              for (let c = 0; c < D; c++) {
                F[dw + tap + c] += f(F[d + here + c] * F[from + there + c]);
                F[dx + there + c] += f(F[d + here + c] * F[by + tap + c]);
              }
            });
          }
        });
        return y;
      }
    };

    function branch(x, name, number, make) {
      const { norm: place, residual } = settings;
      const z = make(place === "before" ? norm(x, `${name}.norm${number}`) : x);
      const y = residual ? sum(x, z, `${name}.sum${number}`) : z;
      return place === "after" ? norm(y, `${name}.norm${number}`) : y;
    }

    // What stands before the blocks: patches, class token, positions.
    function embed(images) {
      const { grid, inputs, dim: D, read, positions } = settings,
        P = grid * grid,
        extra = read === "class" ? 1 : 0,
        N = P + extra;
      const patches = values("patches", images * P, inputs);
      const e = linear(patches, "patch_embed.proj", D);
      const x = values("tokens", images * N, D);
      const token = extra && weight("cls_token", [D], normal(0.02));
      const table =
        positions === "learned"
          ? weight("positions.table", [N * D], normal(settings.positionStd))
          : null;
      const waves = positions === "sincos" ? sincos(N, extra) : 0;
      layers.push({
        forward() {
          for (let b = 0; b < images; b++) {
            const to = x.at + 4 * b * N * D;
            if (extra) F.copyWithin(to >> 2, token.at >> 2, (token.at >> 2) + D);
            const from = (e.at >> 2) + b * P * D;
            F.copyWithin((to >> 2) + extra * D, from, from + P * D);
            if (table || waves) addTo(to, table ? table.at : waves, N * D);
          }
        },
        back() {
          for (let b = 0; b < images; b++) {
            const from = x.g + 4 * b * N * D;
            if (extra) addTo(token.g, from, D);
            addTo(e.g + 4 * b * P * D, from + 4 * extra * D, P * D);
            if (table) addTo(table.g, from, N * D);
          }
        }
      });
      return x;
    }

    // vitbook.layers.positions.sincos_2d; a class token gets zeros.
    function sincos(N, extra) {
      const { grid, dim: D, base } = settings,
        at = room(`waves ${N}`, N * D),
        quarter = D / 4;
      clear(at, N * D);
      for (let p = 0; p < grid * grid; p++)
        for (let i = 0; i < quarter; i++) {
          const rate = exp((-4 * i * log(base)) / D),
            to = (at >> 2) + (p + extra) * D + i;
          const [row, column] = [Math.floor(p / grid) * rate, (p % grid) * rate];
          F[to] = sin(column);
          F[to + quarter] = cos(column);
          F[to + 2 * quarter] = sin(row);
          F[to + 3 * quarter] = cos(row);
        }
      return at;
    }

    function pooled(x, N) {
      const { read } = settings;
      if (read === "each") return x;
      const images = x.rows / N,
        D = x.width,
        y = values("pooled", images, D),
        first = N - settings.grid ** 2,
        count = read === "class" ? 1 : N - first,
        start = read === "class" ? 0 : first,
        share = room("pooled share", 1);
      layers.push({
        forward() {
          F[share >> 2] = 1 / count;
          clear(y.at, size(y));
          for (let b = 0; b < images; b++)
            ops.mm(
              share,
              0,
              0,
              x.at + 4 * (b * N + start) * D,
              4 * D,
              y.at + 4 * b * D,
              4 * D,
              1,
              count,
              D
            );
        },
        back() {
          F[share >> 2] = 1 / count;
          for (let b = 0; b < images; b++)
            ops.mm(
              share,
              0,
              0,
              y.g + 4 * b * D,
              0,
              x.g + 4 * (b * N + start) * D,
              4 * D,
              count,
              1,
              D
            );
        }
      });
      return y;
    }

    function build(images) {
      const { grid, depth, mixing, read, hidden, dim, classes } = settings,
        N = grid * grid + (read === "class" ? 1 : 0);
      layers = [];
      attended = [];
      stream = [];
      used.clear();
      batch = images;
      let x = embed(images);
      for (let l = 0; l < depth; l++) {
        const name = `encoder.blocks.${l}`,
          mix = Array.isArray(mixing) ? mixing[l] : mixing;
        if (mix !== "none") x = branch(x, name, 1, (z) => mixings[mix](z, `${name}.attn`, N));
        if (settings.mlp)
          x = branch(x, name, 2, (z) =>
            linear(
              gelu(linear(z, `${name}.mlp.fc1`, hidden), `${name}.gelu`),
              `${name}.mlp.fc2`,
              dim
            )
          );
        stream.push(x.at);
      }
      if (settings.norm === "before") x = norm(x, "encoder.norm");
      out = linear(pooled(x, N), "head", classes, 0.02);
    }

    // inputs: (images, patches, numbers) in a row.
    function forward(inputs, images) {
      if (images !== batch) build(images);
      F.set(inputs, rooms.get("patches").at >> 2);
      for (const layer of layers) layer.forward();
      return F.subarray(out.at >> 2, (out.at >> 2) + size(out));
    }

    // Cross-entropy in nats, the mean over all answers; out.g becomes its gradient.
    function loss(labels) {
      const { rows, width } = out;
      let total = 0;
      for (let r = 0; r < rows; r++) {
        const at = (out.at >> 2) + r * width,
          to = (out.g >> 2) + r * width;
        let most = -Infinity,
          sum = 0;
        for (let i = 0; i < width; i++) most = Math.max(most, F[at + i]);
        for (let i = 0; i < width; i++) sum += exp(F[at + i] - most);
        for (let i = 0; i < width; i++)
          F[to + i] = (exp(F[at + i] - most) / sum - (labels[r] === i ? 1 : 0)) / rows;
        total += log(sum) + most - F[at + labels[r]];
      }
      return total / rows;
    }

    // Gradients of all weights, added to what is there: `adam` leaves zeros.
    function gradients(inputs, labels) {
      forward(inputs, (inputs.length / settings.grid ** 2 / settings.inputs) | 0);
      for (const [name, { at, n }] of rooms) if (name.endsWith(" d")) clear(at, n);
      const value = loss(labels);
      for (let i = layers.length - 1; i >= 0; i--) layers[i].back();
      return value;
    }

    function update(inputs, labels, rate) {
      const value = gradients(inputs, labels);
      const { first, second, decay } = settings;
      for (const name of used) {
        const t = tensors.get(name);
        t.steps += 1;
        const power = (x) => {
          let y = 1;
          for (let i = 0; i < t.steps && y > 1e-9; i++) y *= x;
          return 1 - y;
        };
        ops.adam(
          t.at,
          t.g,
          t.m,
          t.v,
          (t.n + 3) & -4,
          t.decays ? 1 - rate * decay : 1,
          rate / power(first),
          Math.sqrt(power(second)),
          first,
          second,
          1e-8
        );
      }
      return value;
    }

    build(wanted.batch || 32);
    return {
      forward,
      gradients,
      update,
      // Change a part from now on; weights that stay are kept.
      set(changes) {
        settings = { ...settings, ...changes };
        build(batch);
      },
      get settings() {
        return { ...settings };
      },
      // The attention weights of the last forward pass, a layer each: (images, heads, N, N).
      get maps() {
        const n = batch * settings.heads * (settings.grid ** 2 + (settings.read === "class")) ** 2;
        return attended.map((at) => F.subarray(at >> 2, (at >> 2) + n));
      },
      // How much of the tokens' size each block leaves to what they do not share, 0 ... 1, in an image
      // of the last forward pass: 0 where all tokens are alike.
      differences(image) {
        const N = settings.grid ** 2 + (settings.read === "class"),
          D = settings.dim;
        return stream.map((at) => {
          let all = 0,
            shared = 0;
          for (let c = 0; c < D; c++) {
            let mean = 0;
            for (let t = 0; t < N; t++) {
              const value = F[(at >> 2) + (image * N + t) * D + c];
              mean += value / N;
              all += (value * value) / N;
            }
            shared += mean * mean;
          }
          return all ? Math.max(0, 1 - shared / all) : 0;
        });
      },
      // Weights in use as PyTorch has them: name -> {shape, values}; `part` "g" for gradients.
      tensors(part = "at") {
        return [...used].map((name) => {
          const t = tensors.get(name);
          return { name, shape: t.shape, values: F.slice(t[part] >> 2, (t[part] >> 2) + t.n) };
        });
      },
      // How many weights are in use.
      get weights() {
        return [...used].reduce((sum, name) => sum + tensors.get(name).n, 0);
      }
    };
  }

  // A memory of so many pages of 64 kB, and what computes in it: the kernel where there is one and
  // the browser knows its instructions, else its twin. `fast` says which.
  async function load(pages, kernel) {
    try {
      const bytes = Uint8Array.from(atob(kernel), (letter) => letter.charCodeAt(0));
      const memory = new WebAssembly.Memory({ initial: pages });
      const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
      return { memory, ops: instance.exports, fast: true };
    } catch {
      const memory = { buffer: new ArrayBuffer(pages * 65536) };
      return { memory, ops: plain(memory), fast: false };
    }
  }

  const vitbook = (globalThis.vitbook = globalThis.vitbook || {});
  vitbook.engine = { load, model, dice, exp, log, sin, cos };
})();

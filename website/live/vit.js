// A Vision Transformer in plain JavaScript, for images of one at a time: what vitbook's computes,
// pre-norm, with a class token or the mean of the patches, and what may be cut.
(function () {
  "use strict";

  // y (n, O) = x (n, I) W^T + b, W (O, I). Two tokens and four outputs at a time: what is read once
  // serves several sums. Of an odd number of tokens the last is its own partner.
  function linear(x, n, W, b, y) {
    const O = b.length,
      I = W.length / O;
    for (let t = 0; t < n; t += 2) {
      const u = Math.min(t + 1, n - 1),
        at = t * I,
        to = t * O,
        atU = u * I,
        toU = u * O;
      let o = 0;
      for (; o + 3 < O; o += 4) {
        let s0 = b[o],
          s1 = b[o + 1],
          s2 = b[o + 2],
          s3 = b[o + 3],
          u0 = s0,
          u1 = s1,
          u2 = s2,
          u3 = s3;
        const w0 = o * I,
          w1 = w0 + I,
          w2 = w1 + I,
          w3 = w2 + I;
        for (let i = 0; i < I; i++) {
          const v = x[at + i],
            w = x[atU + i],
            a0 = W[w0 + i],
            a1 = W[w1 + i],
            a2 = W[w2 + i],
            a3 = W[w3 + i];
          s0 += v * a0;
          s1 += v * a1;
          s2 += v * a2;
          s3 += v * a3;
          u0 += w * a0;
          u1 += w * a1;
          u2 += w * a2;
          u3 += w * a3;
        }
        y[to + o] = s0;
        y[to + o + 1] = s1;
        y[to + o + 2] = s2;
        y[to + o + 3] = s3;
        y[toU + o] = u0;
        y[toU + o + 1] = u1;
        y[toU + o + 2] = u2;
        y[toU + o + 3] = u3;
      }
      for (; o < O; o++) {
        let s = b[o],
          r = s;
        for (let i = 0; i < I; i++) {
          s += x[at + i] * W[o * I + i];
          r += x[atU + i] * W[o * I + i];
        }
        y[to + o] = s;
        y[toU + o] = r;
      }
    }
    return y;
  }

  function layerNorm(x, n, weight, bias, eps, y) {
    const D = weight.length;
    for (let t = 0; t < n; t++) {
      let mean = 0,
        spread = 0;
      for (let i = 0; i < D; i++) mean += x[t * D + i];
      mean /= D;
      for (let i = 0; i < D; i++) spread += (x[t * D + i] - mean) ** 2;
      const scale = 1 / Math.sqrt(spread / D + eps);
      for (let i = 0; i < D; i++)
        y[t * D + i] = (x[t * D + i] - mean) * scale * weight[i] + bias[i];
    }
    return y;
  }

  // Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most.
  function erf(z) {
    const a = Math.abs(z),
      t = 1 / (1 + 0.3275911 * a);
    const p =
      ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) *
      t;
    const value = 1 - p * Math.exp(-a * a);
    return z < 0 ? -value : value;
  }
  function gelu(x, n) {
    for (let i = 0; i < n; i++) x[i] *= 0.5 * (1 + erf(x[i] * Math.SQRT1_2));
    return x;
  }

  // settings: the arguments of VisionTransformer. W: its state dict as Float32Arrays, with
  // "positions.table" whatever the positions are.
  function vit(settings, W) {
    const {
      embed_dim: D,
      depth: L,
      num_heads: h,
      patch_size: P,
      in_channels: C = 1,
      norm_eps: eps = 1e-6
    } = settings;
    const [height, width] = [settings.image_size].flat().concat(settings.image_size);
    const rows = height / P,
      columns = width / P,
      patches = rows * columns,
      d = D / h;
    const prefix = W.cls_token ? 1 : 0,
      N = prefix + patches;
    const table = W["positions.table"],
      hidden = W["encoder.blocks.0.mlp.fc1.bias"].length;
    const size = C * P * P,
      scale = 1 / Math.sqrt(d),
      token = (settings.pool ?? "cls") === "cls";
    const floats = (n) => new Float32Array(n);
    // What a pass writes into, made once: of one head, and of all.
    const one = {
      q: floats(N * d),
      k: floats(N * d),
      v: floats(N * d),
      scores: floats(N * N),
      out: floats(N * d)
    };
    const y = floats(N * D),
      qkv = floats(N * 3 * D),
      mixed = floats(N * D),
      wide = floats(N * hidden),
      zeros = floats(Math.max(N, 3 * D));
    if (settings.norm_first === false) throw new Error("vit.js knows pre-norm blocks only");

    function embed(image, positions) {
      const cut = floats(patches * size),
        x = floats(N * D);
      for (let p = 0; p < patches; p++) {
        const top = Math.floor(p / columns) * P,
          left = (p % columns) * P;
        for (let c = 0; c < C; c++) {
          for (let y = 0; y < P; y++) {
            const from = (c * height + top + y) * width + left;
            for (let i = 0; i < P; i++) cut[p * size + (c * P + y) * P + i] = image[from + i];
          }
        }
      }
      if (prefix) x.set(W.cls_token);
      linear(
        cut,
        patches,
        W["patch_embed.proj.weight"],
        W["patch_embed.proj.bias"],
        x.subarray(prefix * D)
      );
      if (table && positions) for (let i = 0; i < N * D; i++) x[i] += table[i];
      return x;
    }

    // The queries, keys and turned values of one head, each where `linear` can run through it.
    function part(qkv, head) {
      for (let t = 0; t < N; t++) {
        for (let i = 0, at = t * 3 * D + head * d; i < d; i++, at++) {
          one.q[t * d + i] = qkv[at] * scale;
          one.k[t * d + i] = qkv[at + D];
          one.v[i * N + t] = qkv[at + 2 * D];
        }
      }
    }

    // Weights of one layer (h, N, N), and the mixed values (N, D). Cut is what has weight zero
    // before the softmax; a query that may look at nothing takes nothing.
    function attend(qkv, layer, { arrows, heads, dropped }, maps, mixed) {
      const gone = (q, k, row) =>
        (arrows && arrows[row + k]) || (dropped && (dropped[q] || dropped[k]));
      mixed.fill(0);
      for (let head = 0; head < h; head++) {
        if (heads && heads[layer * h + head]) continue;
        const map = maps.subarray(head * N * N, (head + 1) * N * N);
        part(qkv, head);
        linear(one.q, N, one.k, zeros.subarray(0, N), one.scores);
        for (let q = 0; q < N; q++) {
          const scores = one.scores.subarray(q * N, (q + 1) * N);
          if (arrows || dropped)
            for (let k = 0; k < N; k++)
              if (gone(q, k, ((layer * h + head) * N + q) * N)) scores[k] = -Infinity;
          let top = -Infinity,
            total = 0;
          for (let k = 0; k < N; k++) if (scores[k] > top) top = scores[k];
          if (top === -Infinity) continue;
          for (let k = 0; k < N; k++) total += scores[k] = Math.exp(scores[k] - top);
          for (let k = 0; k < N; k++) map[q * N + k] = scores[k] / total;
        }
        linear(map, N, one.v, zeros.subarray(0, d), one.out);
        for (let t = 0; t < N; t++)
          for (let i = 0; i < d; i++) mixed[t * D + head * d + i] = one.out[t * d + i];
      }
    }

    function answer(x, dropped) {
      const n = token ? 1 : N,
        normed = W["encoder.norm.weight"]
          ? layerNorm(x, n, W["encoder.norm.weight"], W["encoder.norm.bias"], eps, y)
          : x;
      const read = (x) =>
        linear(x, 1, W["head.weight"], W["head.bias"], floats(W["head.bias"].length));
      if (token) return read(normed);
      const mean = floats(D);
      let kept = 0;
      for (let t = prefix; t < N; t++) {
        if (dropped && dropped[t]) continue;
        kept++;
        for (let i = 0; i < D; i++) mean[i] += normed[t * D + i];
      }
      for (let i = 0; i < D; i++) mean[i] /= kept;
      return read(mean);
    }

    // image: Float32Array (C, H, W), as the model was trained on. What may be asked for:
    //   arrows     Uint8Array (L, h, N, N), 1 = this query may not look at this key
    //   heads      Uint8Array (L, h), 1 = this head adds nothing
    //   dropped    Uint8Array (N), 1 = this token is not there
    //   positions  false = nothing is added for the place
    // Returns the logits, the maps of each layer (h, N, N), and the logits that the head reads
    // after each layer.
    function forward(image, asked) {
      const cut = asked || {},
        x = embed(image, cut.positions !== false),
        maps = [],
        after = [];
      for (let layer = 0; layer < L; layer++) {
        const of = (name) => W[`encoder.blocks.${layer}.${name}`],
          map = floats(h * N * N);
        const n = token && layer === L - 1 ? 1 : N; // nobody reads more of the last layer
        layerNorm(x, N, of("norm1.weight"), of("norm1.bias"), eps, y);
        linear(y, N, of("attn.qkv.weight"), of("attn.qkv.bias") || zeros.subarray(0, 3 * D), qkv);
        attend(qkv, layer, cut, map, mixed);
        linear(mixed, n, of("attn.proj.weight"), of("attn.proj.bias"), y);
        for (let i = 0; i < n * D; i++) x[i] += y[i];
        layerNorm(x, n, of("norm2.weight"), of("norm2.bias"), eps, y);
        linear(
          gelu(linear(y, n, of("mlp.fc1.weight"), of("mlp.fc1.bias"), wide), n * hidden),
          n,
          of("mlp.fc2.weight"),
          of("mlp.fc2.bias"),
          y
        );
        for (let i = 0; i < n * D; i++) x[i] += y[i];
        maps.push(map);
        after.push(answer(x, cut.dropped));
      }
      return { logits: after[L - 1], maps, after };
    }
    return { forward, rows, columns, patches, prefix, N, layers: L, heads: h };
  }

  vitbook.live.vit = vit;
})();

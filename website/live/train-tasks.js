// What a model in the page learns: digits, matching pairs, recall. Each task gives batches, the
// same for the same dice, and images that no batch holds.
(function () {
  "use strict";
  const { dice } = vitbook.engine;
  const COLORS = [
    [0.8, 0.1, 0.1],
    [0.1, 0.6, 0.1],
    [0.1, 0.2, 0.8],
    [0.8, 0.7, 0.1]
  ]; // vitbook.data.recall
  const HELD = 300,
    NOISE = { pairs: 0.15, recall: 0.1 };

  // Images of one channel (rows of `side` numbers) to patches in a row: grid * grid of size * size.
  function patches(image, side, size, to, at) {
    for (let i = 0; i < side; i += size)
      for (let j = 0; j < side; j += size)
        for (let u = 0; u < size; u++)
          for (let v = 0; v < size; v++) to[at++] = image[(i + u) * side + j + v];
  }

  // Scikit-learn's digits, 8 x 8 pixels of 0 ... 16, in patches of 2 x 2 or 4 x 4. `lots`: there are
  // 300 training images, with labels drawn by lot. `choosing`: others of the training images are
  // held out, for who chooses settings.
  function digits(data, { patch = 2, lots = false, choosing = false } = {}) {
    const pixels = data.images,
      count = data.labels.length,
      order = dice(1, "held out")
        .order(count)
        .slice(choosing ? HELD : 0);
    const held = order.slice(0, HELD),
      known = order.slice(HELD, lots ? 2 * HELD : count),
      random = dice(2, "lots");
    const labels = data.labels.slice();
    if (lots) for (const i of known) labels[i] = random.whole(10);
    function take(which) {
      const inputs = new Float32Array(which.length * 64);
      which.forEach((one, n) => {
        const image = Array.from(pixels.subarray(one * 64, one * 64 + 64), (ink) => ink / 8 - 1);
        patches(image, 8, patch, inputs, n * 64);
      });
      return { inputs, labels: which.map((one) => labels[one]), images: which };
    }
    let left = [];
    return {
      shape: { grid: 8 / patch, inputs: patch * patch, classes: 10, read: "mean" },
      channels: 1,
      darkest: -1, // the number that paper has
      guess: 0.1,
      guessLoss: Math.log(10),
      // An image of pixels from -1 to 1, as the model sees it.
      patches(image) {
        const inputs = new Float32Array(64);
        patches(image, 8, patch, inputs, 0);
        return inputs;
      },
      held: take(held),
      known: take(known.slice(0, HELD)),
      batch(size, random) {
        if (left.length < size) left = random.order(known.length);
        return take(left.splice(0, size).map((one) => known[one]));
      }
    };
  }

  // Are two glyphs, at least two cells apart on a board of 4 x 4, the same? vitbook.data
  function pairs(data, choosing) {
    const kinds = data.glyphs.length / 25,
      far = [];
    for (let a = 0; a < 16; a++)
      for (let b = 0; b < 16; b++) {
        const [rows, columns] = [(a >> 2) - (b >> 2), (a & 3) - (b & 3)];
        if (Math.max(Math.abs(rows), Math.abs(columns)) >= 2) far.push([a, b]);
      }
    function draw(size, random) {
      const inputs = Float32Array.from(
          { length: size * 1024 },
          () => NOISE.pairs * random.normal()
        ),
        labels = [],
        cells = [];
      for (let n = 0; n < size; n++) {
        const same = random.whole(2),
          first = random.whole(kinds),
          other = (first + (same ? 0 : 1 + random.whole(kinds - 1))) % kinds;
        const where = far[random.whole(far.length)];
        [first, other].forEach((kind, i) => {
          for (let p = 0; p < 25; p++) {
            const [row, column] = [1 + Math.floor(p / 5), 1 + (p % 5)];
            inputs[n * 1024 + where[i] * 64 + row * 8 + column] += data.glyphs[kind * 25 + p];
          }
        });
        labels.push(same);
        cells.push(where);
      }
      for (let i = 0; i < inputs.length; i++) inputs[i] = Math.min(1, Math.max(0, inputs[i]));
      return { inputs, labels, cells };
    }
    const shape = { grid: 4, inputs: 64, classes: 2, read: "mean" };
    return drawn(draw, shape, [0.5, Math.LN2], 1, 0, choosing);
  }

  // Three colours in 4 of 15 patches each, the own one in 3.
  const GUESS = [4 / 15, -0.8 * Math.log(4 / 15) - 0.2 * Math.log(0.2)];

  // Each patch has a colour and a dot that names another patch by its place; it is asked for that
  // one's colour. Each colour is equally frequent.
  function recall(choosing) {
    function draw(size, random) {
      const inputs = new Float32Array(size * 16 * 48),
        labels = [],
        targets = [];
      for (let n = 0; n < size; n++) {
        const colors = random.order(16).map((one) => one % 4);
        for (let p = 0; p < 16; p++) {
          const target = (p + 1 + random.whole(15)) % 16;
          targets.push(target);
          labels.push(colors[target]);
          for (let cell = 0; cell < 16; cell++)
            for (let c = 0; c < 3; c++) {
              const ink = cell === target ? 1 : COLORS[colors[p]][c];
              inputs[(n * 16 + p) * 48 + cell * 3 + c] =
                2 * ink - 1 + 2 * NOISE.recall * random.normal();
            }
        }
      }
      return { inputs, labels, targets };
    }
    return drawn(draw, { grid: 4, inputs: 48, classes: 4, read: "each" }, GUESS, 3, -1, choosing);
  }

  // A task whose images are drawn: every batch is new, so what is known is seen as a fresh batch.
  function drawn(draw, shape, [guess, guessLoss], channels, darkest, choosing) {
    return {
      shape,
      channels,
      darkest,
      guess,
      guessLoss,
      held: draw(HELD / 3, dice(1, choosing ? "choosing" : "held out")),
      known: draw(HELD / 3, dice(2, "known")),
      batch: draw
    };
  }

  // A drawing of 28 x 28 pixels from 0 to 1, whose ink is 20 pixels long, as a digit of 8 x 8 from
  // -1 to 1: each pixel is the mean of 2.5 x 2.5.
  function small(image) {
    const out = new Float32Array(64);
    for (let i = 0; i < 64; i++) {
      let sum = 0;
      for (let y = 0; y < 5; y++)
        for (let x = 0; x < 5; x++) {
          const row = 4 + Math.floor(((i >> 3) * 5 + y) / 2),
            column = 4 + Math.floor(((i & 7) * 5 + x) / 2);
          sum += image[row * 28 + column];
        }
      out[i] = (2 * sum) / 25 - 1;
    }
    return out;
  }

  // The weights of a run in PyTorch's shapes and order, as a file of the format safetensors. `more`
  // is said in its header. The inputs of a patch become (channels, height, width).
  function safetensors(net, { inputs }, channels, more) {
    const side = Math.sqrt(inputs / channels),
      header = { __metadata__: more },
      parts = [];
    let size = 0;
    for (const { name, shape, values } of net.tensors()) {
      const out = new Float32Array(values.length),
        is = { "patch_embed.proj.weight": "patch", "positions.table": "table" }[name];
      if (shape.length < 2) out.set(values);
      else {
        const rows = shape[0],
          columns = values.length / rows;
        for (let o = 0; o < rows; o++)
          for (let i = 0; i < columns; i++) {
            const to = is === "patch" ? (i % channels) * side * side + Math.floor(i / channels) : i;
            out[o * columns + to] = values[i * rows + o];
          }
      }
      const width = net.settings.dim,
        shapes = {
          patch: [width, channels, side, side],
          table: [values.length / width, width]
        };
      header[name] = {
        dtype: "F32",
        shape: is ? shapes[is] : name === "cls_token" ? [1, 1, width] : shape,
        data_offsets: [size, (size += 4 * values.length)]
      };
      parts.push(out);
    }
    const text = new TextEncoder().encode(JSON.stringify(header)),
      length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(text.length), true);
    return new Blob([length.buffer, text, ...parts.map((part) => part.buffer)]);
  }

  // By the words of an address.
  const TASKS = {
    digits: (data, choosing) => digits(data, { choosing }),
    large: (data, choosing) => digits(data, { patch: 4, choosing }),
    lots: (data, choosing) => digits(data, { lots: true, choosing }),
    recall: (data, choosing) => recall(choosing),
    pairs
  };

  // A run: what is trained, and how well it answers. `loaded`: what engine.load gave.
  function run(task, settings, { memory, ops }, { rate, warmup, batch }) {
    const net = vitbook.engine.model({ ...task.shape, batch, ...settings }, memory, ops),
      random = dice(settings.seed, "batches");
    let steps = 0;
    function right({ inputs, labels }) {
      const each = task.shape.grid ** 2 * task.shape.inputs,
        per = task.shape.read === "each" ? task.shape.grid ** 2 : 1,
        images = inputs.length / each;
      let count = 0;
      for (let from = 0; from < images; from += 32) {
        const size = Math.min(32, images - from),
          logits = net.forward(inputs.subarray(from * each, (from + size) * each), size),
          width = task.shape.classes;
        for (let r = 0; r < size * per; r++) {
          let best = 0;
          for (let i = 1; i < width; i++)
            if (logits[r * width + i] > logits[r * width + best]) best = i;
          count += best === labels[from * per + r];
        }
      }
      return count / labels.length;
    }
    return {
      net,
      get steps() {
        return steps;
      },
      // One update; its loss before it.
      step() {
        const { inputs, labels } = task.batch(batch, random);
        steps += 1;
        return net.update(inputs, labels, rate * Math.min(1, steps / warmup));
      },
      setRate(to) {
        rate = to;
      },
      accuracy: () => ({ held: right(task.held), known: right(task.known) })
    };
  }

  vitbook.training = { TASKS, COLORS, run, safetensors, small };
})();

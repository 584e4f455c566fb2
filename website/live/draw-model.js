// The digit model on what is drawn: a drawing, what the reader took away, and the answers. Nothing
// here is shown.
(function () {
  "use strict";
  const { decodeAll, isStill, looking, pen, vit } = globalThis.vitbook.live;
  const ROWS = 7,
    PATCHES = ROWS * ROWS,
    SIDE = pen.SIDE / ROWS; // a patch is SIDE pixels wide
  const SLICE = 10; // milliseconds of work between two frames
  const patchOf = (pixel) =>
    Math.floor(pixel / pen.SIDE / SIDE) * ROWS + Math.floor((pixel % pen.SIDE) / SIDE);

  globalThis.vitbook.live.drawModel = function (data) {
    const net = vit(data.model.settings, decodeAll(data.model.weights)),
      { layers, heads, N } = net;
    const VIEWS = [...Array(heads).keys(), "mean", "rollout"];
    // chosen and guess: patches, or -1. costs: what the answer loses without each patch, or null.
    const state = {
      strokes: [],
      width: pen.PEN,
      positions: true,
      shuffle: false,
      layer: layers - 1,
      view: "mean",
      chosen: -1,
      guess: -1,
      costs: null
    };
    let dropped = new Uint8Array(N),
      image,
      out,
      shares,
      answer,
      rollout,
      run = 0;

    const isOut = (patch) => Boolean(dropped[1 + patch]);
    const query = () => (state.chosen >= 0 && !isOut(state.chosen) ? 1 + state.chosen : 0);
    const kept = () => [...Array(PATCHES).keys()].filter((patch) => !isOut(patch));
    const input = () => Float32Array.from(image, (value) => (value - data.mean) / data.std);

    function shuffled(pixels) {
      // patch p of the new image is patch order[p] of the old one
      if (!state.shuffle) return pixels;
      return pixels.map((_, i) => {
        const y = Math.floor(i / pen.SIDE),
          x = i % pen.SIDE,
          from = data.order[patchOf(i)];
        return pixels[
          (Math.floor(from / ROWS) * SIDE + (y % SIDE)) * pen.SIDE +
            (from % ROWS) * SIDE +
            (x % SIDE)
        ];
      });
    }
    function mapOf(layer, view) {
      // of a layer (N, N)
      if (typeof view === "number")
        return out.maps[layer].subarray(view * N * N, (view + 1) * N * N);
      if (view === "mean") return out.mean[layer];
      rollout ??= looking.rollouts(net, out.mean); // dear, and most answers do without
      return rollout[layer];
    }
    // Of who is looking: to each token (N).
    const row = (layer = state.layer, view = state.view) =>
      mapOf(layer, view).subarray(query() * N, (query() + 1) * N);

    function compute() {
      image = shuffled(pen.drawn(state.strokes, state.width));
      out = net.forward(input(), { positions: state.positions, dropped });
      out.mean = looking.means(net, out.maps);
      rollout = null;
      shares = looking.softmax(out.logits);
      answer = shares.indexOf(Math.max(...shares));
      Object.assign(state, { costs: null, guess: -1 });
      run++;
    }
    function turn(patch) {
      // take it out, or put it back
      dropped = dropped.slice();
      dropped[1 + patch] ^= 1;
    }
    // Take out one patch after the other; true unless something else was asked for meanwhile.
    async function price() {
      const mine = ++run,
        given = input(),
        asked = { positions: state.positions, dropped },
        found = new Float64Array(PATCHES);
      const soon = (call) => setTimeout(call, 0);
      let pause = performance.now() + SLICE;
      for (const patch of kept()) {
        found[patch] = looking.cost(net, given, asked, patch, answer, shares[answer]);
        if (performance.now() < pause) continue;
        await new Promise(isStill() ? soon : requestAnimationFrame);
        if (mine !== run) return false;
        pause = performance.now() + SLICE;
      }
      state.costs = found;
      return true;
    }
    return {
      state,
      layers,
      VIEWS,
      ROWS,
      compute,
      isOut,
      kept,
      price,
      query,
      row,
      turn,
      allBack() {
        dropped = new Uint8Array(N);
      },
      after: (layer) => looking.softmax(out.after[layer]),
      anyOut: () => dropped.some(Boolean),
      // With a probability too small the model is "not sure".
      answer: () => ({
        digit: answer,
        shares,
        sure: shares[answer] >= data.threshold,
        empty: !state.strokes.length
      }),
      image: () => image,
      seen: () => image.map((ink, i) => (isOut(patchOf(i)) ? 0 : ink))
    };
  };
})();

// How maps are read, and held against what a patch is worth: rows of attention weights, the rollout,
// the cost of taking a patch away, rank correlation.
(function () {
  "use strict";

  // One row of weights (N): of a head, of the mean of the heads (view "mean"), or of the rollout up
  // to this layer (Abnar and Zuidema 2020). `maps` is what the model gives: a (h, N, N) of each layer.
  function row({ heads, N }, maps, layer, view, query) {
    const mean = (of, q) => Float64Array.from({ length: N }, (_, k) => {
      let sum = 0;
      for (let head = 0; head < heads; head++) sum += maps[of][(head * N + q) * N + k];
      return sum / heads;
    });
    if (view === "mean") return mean(layer, query);
    if (view !== "rollout") return Float64Array.from(maps[layer].subarray((view * N + query) * N, (view * N + query + 1) * N));
    let share = new Float64Array(N);
    share[query] = 1;
    for (let of = layer; of >= 0; of--) { // down through the layers: half residual, half attention
      const below = new Float64Array(N);
      for (let q = 0; q < N; q++) {
        if (!share[q]) continue;
        const mixed = mean(of, q);
        mixed[q] += 1;
        const total = mixed.reduce((a, b) => a + b, 0);
        for (let k = 0; k < N; k++) below[k] += (share[q] * mixed[k]) / total;
      }
      share = below;
    }
    return share;
  }

  function softmax(logits) {
    const top = Math.max(...logits), shares = Float64Array.from(logits, (one) => Math.exp(one - top));
    const total = shares.reduce((a, b) => a + b, 0);
    return shares.map((one) => one / total);
  }

  // By how many nats the answer's log-probability falls without one more patch.
  function cost(net, image, asked, patch, answer) {
    const dropped = Uint8Array.from(asked.dropped);
    const before = softmax(net.forward(image, asked).logits)[answer];
    dropped[net.prefix + patch] = 1;
    return Math.log(before) - Math.log(softmax(net.forward(image, { ...asked, dropped }).logits)[answer]);
  }

  // Places in the order of size; equal values share their mean place.
  function ranks(values) {
    const order = [...values.keys()].toSorted((a, b) => values[a] - values[b]), places = new Float64Array(values.length);
    for (let start = 0; start < order.length;) {
      let end = start;
      while (end + 1 < order.length && values[order[end + 1]] === values[order[start]]) end++;
      for (let i = start; i <= end; i++) places[order[i]] = (start + end) / 2;
      start = end + 1;
    }
    return places;
  }

  // Spearman's; NaN where all values of one are equal.
  function rankCorrelation(one, other) {
    const centred = [one, other].map((values) => {
      const places = ranks(values), mean = (values.length - 1) / 2;
      return places.map((place) => place - mean);
    });
    const times = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
    return times(...centred) / Math.sqrt(times(centred[0], centred[0]) * times(centred[1], centred[1]));
  }

  globalThis.vitbook.live.looking = { cost, rankCorrelation, row, softmax };
})();

// How maps are read, and held against what a patch is worth: rows of attention weights, the rollout,
// the cost of taking a patch away, rank correlation.
(function () {
  "use strict";

  // The mean of the heads of each layer: (N, N) from (h, N, N).
  function means({ heads, N }, maps) {
    return maps.map((map) => {
      const mean = new Float64Array(N * N);
      for (let i = 0; i < heads * N * N; i++) mean[i % (N * N)] += map[i] / heads;
      return mean;
    });
  }

  // The rollout (Abnar and Zuidema 2020) after each layer: (N, N) from the means. Half of what a
  // token becomes is the residual, half is attention.
  function rollouts({ N }, mean) {
    let below = null;
    return mean.map((map) => {
      const whole = new Float64Array(N * N);
      for (let q = 0; q < N; q++) {
        let total = 1;
        for (let k = 0; k < N; k++) total += map[q * N + k];
        for (let j = 0; j < N; j++) {
          const share = (map[q * N + j] + (j === q ? 1 : 0)) / total;
          if (!below) whole[q * N + j] = share;
          else if (share) for (let k = 0; k < N; k++) whole[q * N + k] += share * below[j * N + k];
        }
      }
      below = whole;
      return whole;
    });
  }

  function softmax(logits) {
    const top = Math.max(...logits),
      shares = Float64Array.from(logits, (one) => Math.exp(one - top));
    const total = shares.reduce((a, b) => a + b, 0);
    return shares.map((one) => one / total);
  }

  // By how many nats the answer's log-probability falls without one more patch; `before` is its
  // probability with it.
  function cost(net, image, asked, patch, answer, before) {
    const dropped = Uint8Array.from(asked.dropped);
    dropped[net.prefix + patch] = 1;
    return (
      Math.log(before) - Math.log(softmax(net.forward(image, { ...asked, dropped }).logits)[answer])
    );
  }

  // Places in the order of size; equal values share their mean place.
  function ranks(values) {
    const order = [...values.keys()].toSorted((a, b) => values[a] - values[b]),
      places = new Float64Array(values.length);
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
      const places = ranks(values),
        mean = (values.length - 1) / 2;
      return places.map((place) => place - mean);
    });
    const times = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
    return (
      times(...centred) / Math.sqrt(times(centred[0], centred[0]) * times(centred[1], centred[1]))
    );
  }

  vitbook.live.looking = { cost, means, rankCorrelation, rollouts, softmax };
})();

// What can be chosen for a model that trains in the page, as words in an address.
(function () {
  "use strict";
  // Setting, label, its values. `live`: changes while it trains; everything else begins anew.
  const CHOICES = [
    [
      "task",
      "Task",
      {
        digits: "digits",
        large: "digits, large patches",
        lots: "digits, labels by lot",
        recall: "recall",
        pairs: "pairs"
      }
    ],
    ["positions", "Positions", { none: "none", learned: "learned", sincos: "waves" }, "live"],
    [
      "mixing",
      "Mixing",
      { attention: "attention", mlp: "MLP", conv: "convolution", mean: "even mean", none: "none" },
      "live"
    ],
    ["scaled", "Scores times 1/√d", { 1: "yes", 0: "no" }, "live"],
    ["heads", "Heads", { 1: "1", 2: "2", 4: "4", 8: "8" }],
    ["depth", "Blocks", { 1: "1", 2: "2", 4: "4", 6: "6" }],
    ["residual", "Residual stream", { 1: "yes", 0: "no" }, "live"],
    ["norm", "Layer norm", { before: "before", after: "after", none: "none" }, "live"],
    ["mlp", "MLP", { 1: "yes", 0: "no" }, "live"],
    ["rate", "Learning rate", { 0.001: "0.001", 0.004: "0.004", 0.04: "0.04", 0.4: "0.4" }, "live"],
    ["warmup", "Warm-up", { 0: "none", 20: "20 updates" }]
  ];
  const START = {
    task: "digits",
    positions: "learned",
    mixing: "attention",
    scaled: 1,
    heads: 4,
    depth: 2,
    residual: 1,
    norm: "before",
    mlp: 1,
    rate: 0.004,
    warmup: 20,
    seed: 0
  };
  const FIXED = { positionStd: 1, second: 0.99, hidden: 64, dim: 32 };

  const yes = (value) => Boolean(Number(value));

  // What engine.model is told, and what training.run is told.
  const settings = (one) => ({
    ...FIXED,
    seed: one.seed,
    positions: one.positions,
    mixing: one.mixing,
    scaled: yes(one.scaled),
    heads: Number(one.heads),
    depth: Number(one.depth),
    residual: yes(one.residual),
    norm: one.norm,
    mlp: yes(one.mlp)
  });
  const recipe = (one) => ({ rate: Number(one.rate), warmup: Number(one.warmup), batch: 32 });

  const knows = (key, value) =>
    key === "seed"
      ? /^\d{1,4}$/.test(value)
      : CHOICES.some(([known, , list]) => known === key && value in list);

  // A and B as an address says them: what A has that is not the start's, what B has that is not A's.
  function written({ A, B }) {
    const values = new URLSearchParams();
    for (const [key, value] of Object.entries(A))
      if (String(value) !== String(START[key])) values.set(key, value);
    for (const [key, value] of Object.entries(B ?? {}))
      if (String(value) !== String(A[key])) values.set(`B.${key}`, value);
    return String(values);
  }
  // The other way; `strange` are the words that mean nothing here.
  function read(text) {
    const A = { ...START },
      strange = [];
    let other = null;
    for (const [word, value] of new URLSearchParams(text)) {
      const [, of, key] = word.match(/^(B\.)?(.*)$/);
      if (!knows(key, value) || (of && key === "task")) strange.push(`${word}=${value}`);
      else if (of) other = { ...other, [key]: value };
      else A[key] = value;
    }
    return { A, B: other && { ...A, ...other }, strange };
  }

  vitbook.trainSettings = { CHOICES, START, settings, recipe, knows, written, read };
})();

// A softmax to take into one's hands: four scores on handles, temperature, width of the head and
// the factor; the weights, their entropy and the size of the softmax's own gradient follow.
vitbook.live.figure("softmax", function (stage) {
  "use strict";

  const { el, handle, number, table } = vitbook.live;
  const START = [2, 1, 0, -1], FAR = 4; // scores that the handles reach
  const WIDTHS = [4, 16, 64, 256, 1024], COLDEST = 0.1, HOTTEST = 10;
  const state = { scores: [...START], T: 1, d: WIDTHS[0], factor: true };

  // --- the mathematics of the page ---
  // A score s is q · k / √d; without the factor the softmax gets q · k itself.
  function find({ scores, T, d, factor }) {
    const times = factor ? 1 : Math.sqrt(d), given = scores.map((s) => s * times);
    const top = Math.max(...given), raised = given.map((s) => Math.exp((s - top) / T));
    const sum = raised.reduce((a, b) => a + b, 0), weights = raised.map((one) => one / sum);
    const entropy = -weights.reduce((all, w) => all + (w ? w * Math.log(w) : 0), 0);
    let squares = 0; // of the Jacobian diag(w) - w w^T
    weights.forEach((w, i) => weights.forEach((v, j) => { squares += ((i === j ? w : 0) - w * v) ** 2; }));
    return { given, weights, entropy: entropy + 0, gradient: Math.sqrt(squares), temperature: T / times };
  }

  const share = (weight) => (weight < 0.0005 ? "<0.001" : number(weight, weight < 0.0095 ? 3 : 2));
  const small = (value) => number(value, value >= 0.005 ? 2 : 5); // sizes that a sentence names
  const cold = (T) => number(T, T < 0.1 ? 3 : T < 1 ? 2 : 1);

  // --- the elements ---
  const rows = START.map((_, key) => {
    const track = el("div", { class: "live-track softmax-track" }, el("i", { class: "softmax-zero" }));
    const bar = el("i", { class: "softmax-fill" }), mark = el("i", { class: "softmax-mark" });
    const weight = el("b"), score = el("span", { "aria-hidden": "true" });
    const grip = handle({
      track, label: `Score of key ${key + 1}`, min: -FAR, max: FAR, step: 0.1, value: START[key], text: (value) => number(value, 1),
      ticks: key + 1 < START.length ? [] : [-FAR, 0, FAR].map((at) => [at, number(at, 0)]),
      change(value) { state.scores[key] = value; draw(); speak(`Key ${key + 1}: weight ${share(now.weights[key])}. `); }
    });
    track.append(grip.node);
    const node = el("div", { class: "softmax-row" }, el("span", { class: "softmax-key" }, `k${key + 1}`), track, score,
      el("span", { class: "softmax-bar", "aria-hidden": "true" }, bar, mark),
      el("span", {}, el("span", { class: "live-hidden" }, `weight of key ${key + 1}: `), weight));
    return { node, grip, bar, mark, weight, score };
  });
  const head = el("div", { class: "softmax-row softmax-head", "aria-hidden": "true" }, el("span"), el("span", {}, "score: drag"), el("span"), el("span", {}, "weight"), el("span"));

  const log = (T) => Math.log10(T), heat = el("div", { class: "live-track" }), heatSaid = el("b");
  const heatGrip = handle({
    track: heat, label: "Temperature T", min: log(COLDEST), max: log(HOTTEST), step: 0.05, value: 0, text: (value) => cold(10 ** value),
    ticks: [COLDEST, 1, HOTTEST].map((T) => [log(T), String(T)]),
    change(value) { state.T = 10 ** value; draw(); speak(`Temperature ${cold(state.T)}. `); }
  });
  heat.append(heatGrip.node);
  const wide = el("div", { class: "live-track" }), wideSaid = el("b");
  const wideGrip = handle({
    track: wide, label: "Width d of the head", min: 0, max: WIDTHS.length - 1, step: 1, value: 0, text: (value) => String(WIDTHS[value]),
    ticks: WIDTHS.map((d, at) => [at, String(d)]),
    change(value) { state.d = WIDTHS[value]; draw(); speak(`Width ${state.d}. `); }
  });
  wide.append(wideGrip.node);
  const factor = el("button", { type: "button", class: "live-button", "aria-pressed": "true", onclick() { state.factor = !state.factor; draw(); speak(state.factor ? "With the factor. " : "Without the factor. "); } });
  const back = el("button", { type: "button", class: "live-button", onclick() { set({}); } }, "Back to the start");
  const control = (name, said, track) => el("div", { class: "softmax-control" }, el("span", {}, name, " ", said), track);

  function meter(name, most) {
    const fill = el("i", { class: "softmax-fill" }), said = el("b"), mark = el("i", { class: "softmax-mark" });
    const node = el("div", { class: "softmax-meter" }, el("span", {}, name, " ", said), el("span", { class: "softmax-bar", "aria-hidden": "true" }, fill, mark));
    return { node, draw(value, before, words) { said.textContent = words; fill.style.width = `${(100 * value) / most}%`; mark.style.left = `${(100 * before) / most}%`; } };
  }
  const entropy = meter("entropy", Math.log(START.length)), gradient = meter("gradient of the softmax", 0.5);
  const told = el("p", { class: "softmax-told" });
  const values = table("The numbers as a table", ["key", "score", "given to the softmax", "weight", "moved by its own score"], () =>
    now.weights.map((w, key) => [`key ${key + 1}`, number(state.scores[key], 1), number(now.given[key] / state.T, 1), share(w), share(w * (1 - w))]));
  stage.box.append(el("div", { class: "softmax" },
    el("div", { class: "softmax-rows" }, head, ...rows.map((row) => row.node)),
    el("div", { class: "softmax-side" },
      control("temperature T =", heatSaid, heat), control("width d =", wideSaid, wide),
      el("div", { class: "softmax-buttons" }, factor, back)),
    el("div", { class: "softmax-meters" }, entropy.node, gradient.node, told), values.node));

  // --- drawing ---
  let now;
  function draw() {
    now = find(state);
    const plain = find({ ...state, T: 1, factor: true }); // the marks
    rows.forEach(({ bar, mark, weight, score }, key) => {
      score.textContent = number(state.scores[key], 1);
      bar.style.width = `${100 * now.weights[key]}%`;
      mark.style.left = `${100 * plain.weights[key]}%`;
      weight.textContent = share(now.weights[key]);
    });
    heatSaid.textContent = cold(state.T);
    wideSaid.textContent = String(state.d);
    factor.setAttribute("aria-pressed", String(state.factor));
    factor.textContent = state.factor ? "✓ with 1/√d" : "without 1/√d";
    entropy.draw(now.entropy, plain.entropy, `${small(now.entropy)} of ${number(Math.log(START.length))}`);
    gradient.draw(now.gradient, plain.gradient, `${small(now.gradient)} of 0.50`);
    told.textContent = sentence();
    values.update();
  }
  function sentence() {
    const largest = Math.max(...state.scores), times = state.factor ? 1 : Math.sqrt(state.d);
    return state.factor ? `The scores are divided by √d, so the width does not matter. Dashed: at T = 1.`
      : `The softmax gets ${number(largest * times, 1)} for the score ${number(largest, 1)}, as at temperature ${cold(now.temperature)} with the factor. Dashed: at T = 1, with the factor.`;
  }
  function speak(first) {
    stage.say(`${first}Weights ${now.weights.map(share).join(", ")}. Entropy ${small(now.entropy)}, gradient ${small(now.gradient)}.`);
  }

  // What a sentence asks for: t, d, factor (0 or 1), scores.
  function set(values) {
    const wanted = { scores: START.join(), t: "1", d: String(WIDTHS[0]), factor: "1", ...values };
    const scores = wanted.scores.split(",").map(Number), T = Number(wanted.t), d = Number(wanted.d);
    const strange = Object.keys(wanted).length > 4 || scores.length !== START.length || scores.some((s) => !(Math.abs(s) <= FAR));
    if (strange || !(T >= COLDEST && T <= HOTTEST) || !WIDTHS.includes(d)) throw new Error("softmax.js: there is no such setting");
    Object.assign(state, { scores, T, d, factor: wanted.factor === "1" });
    rows.forEach((row, key) => row.grip.set(scores[key]));
    heatGrip.set(log(T));
    wideGrip.set(WIDTHS.indexOf(d));
    draw();
    speak("");
  }

  draw();
  return { set, find };
});

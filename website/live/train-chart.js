// Curves against updates: the accuracy and the loss of one or two runs, with a mark where a part was
// changed and a dotted line for a guess.
(function () {
  "use strict";
  const { el, svg, number } = vitbook.live;
  const WIDE = 260,
    HIGH = 150,
    LEFT = 30,
    RIGHT = 44,
    TOP = 8,
    LOW = 20;

  // title: what is drawn; top: the end of the axis, or null for the largest value; guess: a value.
  function chart(title, unit, top, text) {
    const frame = svg("g", {}),
      lines = svg("g", {});
    const node = el(
      "div",
      { class: "train-chart" },
      el("p", {}, el("b", {}, title), ` ${unit}`),
      svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" }, frame, lines)
    );
    const label = (x, y, words, attributes) => svg("text", { x, y, ...attributes }, words);

    // runs: [{name, points: {key: [[update, value]]}, marks: [update]}]
    function draw(runs, keys, guess) {
      const all = runs.flatMap((run) => keys.flatMap((key) => run.points[key]));
      const end = Math.max(100, ...all.map(([at]) => at)),
        most = top ?? Math.max(guess * 1.15, ...all.map(([, value]) => value));
      const x = (at) => LEFT + (at / end) * (WIDE - LEFT - RIGHT),
        y = (value) => TOP + (1 - Math.min(1, value / most)) * (HIGH - TOP - LOW);
      const steps = top ? [0, 0.25, 0.5, 0.75, 1] : [0, most / 2, most];
      frame.replaceChildren(
        ...steps.map((value) =>
          svg("line", {
            x1: LEFT,
            x2: WIDE - RIGHT,
            y1: y(value),
            y2: y(value),
            class: "train-rule"
          })
        ),
        ...steps.map((value) =>
          label(LEFT - 4, y(value) + 3, text(value), { "text-anchor": "end" })
        ),
        ...[0, end].map((at) => label(x(at), HIGH - 6, at, { "text-anchor": "middle" })),
        svg("line", {
          x1: LEFT,
          x2: WIDE - RIGHT,
          y1: y(guess),
          y2: y(guess),
          class: "train-guess"
        }),
        label(WIDE - RIGHT + 4, y(guess) + 3, "guess", {})
      );
      lines.replaceChildren(
        ...runs.flatMap(({ name, points, marks }) => [
          ...marks.map((at) =>
            svg("line", {
              x1: x(at),
              x2: x(at),
              y1: TOP,
              y2: HIGH - LOW,
              class: `train-mark train-${name}`
            })
          ),
          ...keys.map((key, i) =>
            svg("polyline", {
              points: points[key].map(([at, value]) => `${x(at)},${y(value)}`).join(" "),
              class: `train-curve train-${name}${i ? " train-second" : ""}`
            })
          ),
          ...points[keys[0]].slice(-1).map(([at, value]) =>
            label(x(at) + 4, y(value) - 4, text(value, name), {
              class: `train-end train-${name}`
            })
          )
        ])
      );
    }
    return { node, draw };
  }

  const percent = (value) => `${number(100 * value, 0)}`;
  vitbook.trainChart = { chart, percent };
})();

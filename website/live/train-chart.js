// Curves against updates: the accuracy and the loss of one or two runs, with a mark where a part was
// changed and a dotted line for a guess.
(function () {
  "use strict";
  const { el, renew, svg, number, word } = vitbook.live;
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
      const end = 100 * Math.ceil(Math.max(1, ...all.map(([at]) => at)) / 100),
        most = top ?? Math.max(guess * 1.15, ...all.map(([, value]) => value));
      const x = (at) => LEFT + (at / end) * (WIDE - LEFT - RIGHT),
        y = (value) => TOP + (1 - Math.min(1, value / most)) * (HIGH - TOP - LOW);
      const steps = top ? [0, 0.25, 0.5, 0.75, 1] : [0, most / 2, most];
      renew(frame, `${end} ${most} ${guess}`, () => [
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
      ]);
      const of = runs.map(({ name, marks }) => [name, ...marks]);
      renew(lines, JSON.stringify([end, keys, of]), () =>
        of.flatMap(([name, ...marks]) => [
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
            svg("polyline", { class: `train-curve train-${name}${i ? " train-second" : ""}` })
          ),
          svg("text", { class: `train-end train-${name}` })
        ])
      );
      for (const { name, points } of runs) {
        lines.querySelectorAll(`polyline.train-${name}`).forEach((line, i) => {
          const drawn = points[keys[i]].map(([at, value]) => `${x(at)},${y(value)}`);
          line.setAttribute("points", drawn.join(" "));
        });
        const last = lines.querySelector(`text.train-${name}`),
          [at, value] = points[keys[0]].at(-1) ?? [];
        word(last, value === undefined ? "" : text(value, name));
        last.setAttribute("x", x(at ?? 0) + 4);
        last.setAttribute("y", y(value ?? 0) - 4);
      }
    }
    return { node, draw };
  }

  const percent = (value) => `${number(100 * value, 0)}`;
  vitbook.trainChart = { chart, percent };
})();

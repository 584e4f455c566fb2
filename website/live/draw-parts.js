// What "draw a digit" shows of the model: bars and the answer after each layer; every layer and head;
// and whether a map is right. Each part is {node, draw}.
(function () {
  "use strict";
  const { board, el, looking, number, pen, place, rove, svg } = globalThis.vitbook.live;
  const DEAR = 0.1,
    LITTLE = 0.01; // nats: the full colour; below it no patch matters
  const ten = [...Array(10).keys()];

  function percent(share) {
    const p = 100 * share;
    return `${p > 0 && p < 0.1 ? "<0.1" : p >= 99.95 || p === 0 ? Math.round(p) : p.toFixed(1)}\u202f%`;
  }
  const head = (text = "") => el("p", { class: "draw-head" }, text);
  const named = (view) => (typeof view === "number" ? `head ${view + 1}` : view);

  // For many maps: the colour of heat, and the ink of an image as a picture of its own size.
  function inked(image, root) {
    const [ink, heat] = ["ink", "heat"].map((name) =>
      getComputedStyle(root).getPropertyValue(`--live-${name}`)
    );
    const canvas = el("canvas", { width: pen.SIDE, height: pen.SIDE }),
      to = canvas.getContext("2d");
    to.fillStyle = ink;
    image.forEach((ink, i) => {
      if (ink < 0.06) return;
      to.globalAlpha = 0.6 * ink;
      to.fillRect(i % pen.SIDE, Math.floor(i / pen.SIDE), 1, 1);
    });
    return { heat, canvas };
  }
  // A map as shades, if there is one, with the ink over it.
  function paint(canvas, { heat, canvas: ink }, values, rows) {
    const to = canvas.getContext("2d"),
      side = canvas.width / rows,
      most = Math.max(...values);
    to.clearRect(0, 0, canvas.width, canvas.width);
    to.fillStyle = heat;
    values.forEach((value, p) => {
      to.globalAlpha = most > 0 ? value / most : 0;
      to.fillRect((p % rows) * side, Math.floor(p / rows) * side, side, side);
    });
    to.globalAlpha = 1;
    to.imageSmoothingEnabled = false;
    to.drawImage(ink, 0, 0, canvas.width, canvas.width);
  }

  function bars(model) {
    const reads = head(),
      list = ten.map((digit) => {
        const bar = el("span", { class: "draw-bar" }),
          text = el("span", { class: "draw-percent" });
        return {
          node: el(
            "li",
            {},
            el("b", {}, String(digit)),
            el("span", { class: "draw-track" }, bar),
            text
          ),
          bar,
          text
        };
      });
    const early = Array.from({ length: model.layers }, (_, l) => {
      const cells = ten.map(() => el("td", {}));
      return { node: el("tr", {}, el("th", { scope: "row" }, String(l + 1)), ...cells), cells };
    });
    const node = el(
      "div",
      { class: "draw-part draw-reads" },
      reads,
      el(
        "ul",
        { class: "draw-bars", "aria-label": "Probability of each digit" },
        ...list.map((one) => one.node)
      ),
      el(
        "table",
        { class: "draw-early" },
        el("caption", {}, "If it had to answer after layer \u2026"),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("td", {}),
            ...ten.map((digit) => el("th", { scope: "col" }, String(digit)))
          )
        ),
        el("tbody", {}, ...early.map((one) => one.node))
      )
    );
    function draw() {
      const { digit: answer, shares, sure, empty } = model.answer(),
        article = answer === 8 ? "an" : "a";
      reads.replaceChildren(
        ...(sure
          ? [`It reads ${article} `, el("b", { class: "draw-answer" }, String(answer))]
          : [
              el("b", { class: "draw-answer" }, "Not sure"),
              empty ? " \u2013 the board is empty" : ` \u2013 ${article} ${answer}?`
            ])
      );
      list.forEach(({ node: item, bar, text }, digit) => {
        bar.style.width = `${100 * shares[digit]}%`;
        text.textContent = percent(shares[digit]);
        item.classList.toggle("draw-best", digit === answer);
      });
    }
    function drawEarly() {
      early.forEach(({ cells }, l) => {
        const then = model.after(l),
          best = then.indexOf(Math.max(...then));
        cells.forEach((cell, digit) => {
          cell.style.setProperty("--share", `${100 * then[digit]}%`);
          cell.replaceChildren(
            digit === best ? String(digit) : "",
            el("span", { class: "live-said" }, ` ${percent(then[digit])}`)
          );
          cell.title = `probability of ${digit}: ${percent(then[digit])}`;
        });
      });
    }
    function spoken() {
      const { digit, shares, empty } = model.answer();
      return `${reads.textContent}${empty ? "" : `, probability ${percent(shares[digit])}`}. `;
    }
    return { node, draw, drawEarly, spoken, text: () => reads.textContent };
  }

  function everyView(model, pick) {
    const { VIEWS, state } = model;
    const thumbs = Array.from({ length: model.layers }, (_, l) =>
      VIEWS.map((v) => ({
        layer: l,
        view: v,
        canvas: el("canvas", { width: 56, height: 56, "aria-hidden": "true" })
      }))
    ).flat();
    const picks = thumbs.map((one) =>
      el(
        "button",
        {
          type: "button",
          class: "draw-thumb",
          role: "radio",
          "aria-label": `layer ${one.layer + 1}, ${named(one.view)}`,
          onclick: () => pick(one)
        },
        one.canvas
      )
    );
    const walls = el(
      "div",
      { class: "draw-thumbs", role: "radiogroup", "aria-label": "Layer and head" },
      ...picks
    );
    const walk = rove(walls, picks, VIEWS.length, (index) => pick(thumbs[index]));
    const header = el(
      "div",
      { class: "draw-thumbs draw-names", "aria-hidden": "true" },
      ...VIEWS.map((v) => el("span", {}, named(v)))
    );
    const rows = el(
      "div",
      { class: "draw-layers", "aria-hidden": "true" },
      ...Array.from({ length: model.layers }, (_, l) => el("span", {}, `layer ${l + 1}`))
    );
    function draw() {
      thumbs.forEach((one, index) => {
        const on = one.layer === state.layer && one.view === state.view;
        picks[index].setAttribute("aria-checked", String(on));
        if (on) walk(index);
      });
    }
    function drawMaps(over) {
      for (const one of thumbs)
        paint(one.canvas, over, model.row(one.layer, one.view).subarray(1), model.ROWS);
    }
    return {
      node: el(
        "div",
        { class: "draw-part draw-every" },
        head("Every layer and head"),
        header,
        rows,
        walls
      ),
      draw,
      drawMaps
    };
  }

  // The reader's guess, and what each patch was worth. changed(words): a patch was marked, or all are known.
  function mapTest(model, changed) {
    const { state, ROWS } = model,
      map = el("canvas", { width: 112, height: 112, "aria-hidden": "true" });
    const guess = board({
      rows: ROWS,
      columns: ROWS,
      label: "Your guess: which patch would the answer miss most?",
      pick: mark
    });
    const under = guess.node.querySelector("canvas");
    under.width = under.height = 112;
    const hide = el(
        "button",
        { type: "button", class: "live-button live-first", onclick: takeAll },
        "Take out each patch in turn"
      ),
      said = el("p", { class: "draw-told" });
    const legend = el("figcaption", {}),
      whose = el("figcaption", {});
    const pair = el(
      "div",
      { class: "draw-pair" },
      el("figure", {}, map, whose),
      el("figure", {}, guess.node, legend)
    );
    const node = el(
      "div",
      { class: "draw-part draw-test" },
      head("Is the map right?"),
      pair,
      el("div", {}, hide, said)
    );
    const ready = () => !state.costs && state.strokes.length > 0;

    function mark(patch) {
      if (model.isOut(patch)) return;
      state.guess = patch;
      changed(
        state.costs
          ? `Without ${place(patch, ROWS)} it is ${percent(left(patch))}. `
          : `Your guess: ${place(patch, ROWS)}. `
      );
    }
    async function takeAll() {
      if (ready() && (await model.price())) changed(`${verdict()} `);
    }
    // The probability that is left to the answer without a patch.
    const left = (patch) =>
      model.answer().shares[model.answer().digit] * Math.exp(-state.costs[patch]);

    function verdict() {
      const { digit, shares } = model.answer(),
        there = model.kept(),
        weights = there.map((p) => model.row()[1 + p]),
        lost = there.map((p) => state.costs[p]);
      const order = there.toSorted((a, b) => state.costs[b] - state.costs[a]),
        worth = order[0],
        first = there[weights.indexOf(Math.max(...weights))];
      const little = state.costs[worth] < LITTLE,
        nth = (patch) => `number ${1 + order.indexOf(patch)} of ${there.length}`,
        chance = number(1.96 / Math.sqrt(there.length - 1));
      return [
        little
          ? `No single patch matters here: without the one that counts most, ${place(worth, ROWS)}, ${digit} still has ${percent(left(worth))}.`
          : `Without ${place(worth, ROWS)} the answer loses most: ${digit} falls from ${percent(shares[digit])} to ${percent(left(worth))}.`,
        state.guess < 0
          ? ""
          : `Your patch, ${place(state.guess, ROWS)}, is ${nth(state.guess)}${little ? "" : `: without it ${percent(left(state.guess))}`}.`,
        `The map's first patch, ${place(first, ROWS)}, is ${nth(first)}. Rank correlation of map and loss: ${number(looking.rankCorrelation(weights, lost), 2, true)} (maps by chance: between \u2212${chance} and ${chance}, 95\u202f% of them).`
      ]
        .filter(Boolean)
        .join(" ");
    }
    function draw() {
      const { costs } = state;
      guess.patches.forEach((one, p) => {
        one.style.background =
          costs && !model.isOut(p)
            ? `color-mix(in srgb, var(--live-key) ${100 * Math.min(1, Math.max(0, costs[p] / DEAR))}%, var(--live-soft))`
            : "";
        one.classList.toggle("draw-gone", model.isOut(p));
        one.setAttribute(
          "aria-label",
          place(p, ROWS) +
            (model.isOut(p)
              ? ", taken out"
              : costs
                ? `: without it ${percent(left(p))} for ${model.answer().digit}`
                : "")
        );
      });
      guess.choose(state.guess);
      const at = {
        x: (state.guess % ROWS) + 0.05,
        y: Math.floor(state.guess / ROWS) + 0.05,
        width: 0.9,
        height: 0.9
      }; // over the ink
      guess.layer.replaceChildren(
        ...(state.guess < 0
          ? []
          : ["draw-halo", "draw-guess"].map((name) => svg("rect", { class: name, ...at })))
      );
      if (state.guess < 0) guess.patches[0].tabIndex = 0;
      whose.textContent = model.query()
        ? `what the map of the patch in ${place(model.query() - 1, ROWS)} promises`
        : "what the class token\u2019s map promises";
      legend.textContent = costs
        ? `what the answer loses; full colour: ${DEAR} nats or more`
        : "your guess: click a patch";
      hide.textContent = costs
        ? "Done: each patch was taken out in turn"
        : "Take out each patch in turn";
      hide.setAttribute("aria-disabled", String(!ready())); // and keeps the focus
      said.textContent = costs
        ? verdict()
        : state.strokes.length
          ? "Which patch would the answer miss most? Mark it on the board without colours. Then the model answers once without each patch."
          : "Draw something first.";
    }
    function drawMaps(over) {
      paint(map, over, model.row().subarray(1), ROWS);
      paint(under, over, [], ROWS);
    }
    return { node, draw, drawMaps };
  }

  globalThis.vitbook.live.drawParts = { bars, everyView, head, inked, mapTest, named, percent };
})();

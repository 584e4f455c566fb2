// Draw a digit: the ViT of the record `draw_digit` reads it, and shows where it looks.
(function () {
  "use strict";
  const { board, drawModel, drawParts, el, isStill, onTheme, number, pad, pen, place, svg, table } =
    globalThis.vitbook.live;
  const { head, named, percent } = drawParts;
  const ARROWS = 5; // of a map
  const START = "6"; // the drawing on the board: its answer misses one patch (website/live/draw.py)

  const button = (text, onclick, more) =>
    el("button", { type: "button", class: "live-button", onclick, ...more }, text);
  function toggle(text, change) {
    const node = el(
      "button",
      { type: "button", class: "draw-switch", role: "switch", "aria-checked": "false" },
      el("span", { class: "draw-knob", "aria-hidden": "true" }),
      text
    );
    node.addEventListener("click", () => change(node.getAttribute("aria-checked") !== "true"));
    return {
      node,
      set(on) {
        node.setAttribute("aria-checked", String(on));
      }
    };
  }

  // The patches with the map over them, and who looks.
  function mapOf(model, changed) {
    const { state, ROWS } = model;
    const sees = board({
      rows: ROWS,
      columns: ROWS,
      label: "Patches: choose who looks",
      pick: choose
    });
    const token = button("class token", () => choose(-1)),
      taken = button("", takeOut),
      back = button("All back", allBack);
    const told = el("p", { class: "draw-told" }),
      looks = head();
    const node = el(
      "div",
      { class: "draw-part" },
      looks,
      el("div", { class: "draw-token" }, token),
      sees.node,
      told,
      el("div", { class: "draw-row" }, taken, back)
    );
    const who = () =>
      model.query() ? `The patch in ${place(model.query() - 1, ROWS)}` : "The class token";
    const gone = () =>
      state.chosen >= 0 && model.isOut(state.chosen)
        ? `The patch in ${place(state.chosen, ROWS)} is out, so the class token looks. `
        : "";
    let strongest, most;

    function choose(patch) {
      state.chosen = patch;
      changed();
    }
    function takeOut() {
      model.turn(state.chosen);
      changed(true);
    }
    function allBack() {
      if (!model.anyOut()) return;
      model.allBack();
      changed(true);
    }
    function arrows(weights) {
      const query = model.query(),
        from = query
          ? [((query - 1) % ROWS) + 0.5, Math.floor((query - 1) / ROWS) + 0.5]
          : [ROWS / 2, -0.25];
      sees.layer.replaceChildren(
        ...strongest
          .filter((p) => 1 + p !== query)
          .flatMap((p) => {
            const to = [(p % ROWS) + 0.5, Math.floor(p / ROWS) + 0.5];
            const bent = [(from[0] + to[0]) / 2 + (to[0] - from[0]) / 4, (from[1] + to[1]) / 2];
            return [
              svg("path", {
                class: "draw-arrow",
                d: `M${from}Q${bent} ${to}`,
                "stroke-width": 0.02 + 0.1 * (weights[p] / most)
              }),
              svg("circle", { class: "draw-end", cx: to[0], cy: to[1], r: 0.07 })
            ];
          })
      );
    }
    function draw() {
      const row = model.row(),
        weights = row.subarray(1),
        of = `of ${state.view === "rollout" ? "the rollout" : "the attention"} of ${who().toLowerCase()}`;
      most = Math.max(...weights);
      strongest = model
        .kept()
        .toSorted((a, b) => weights[b] - weights[a])
        .slice(0, ARROWS);
      sees.patches.forEach((one, p) => {
        const out = model.isOut(p);
        one.style.background = out
          ? ""
          : `color-mix(in srgb, var(--live-heat) ${(100 * weights[p]) / most}%, var(--live-soft))`;
        one.classList.toggle("draw-gone", out);
        one.setAttribute(
          "aria-label",
          `${place(p, ROWS)}, ${out ? "taken out" : `${percent(weights[p])} ${of}`}`
        );
      });
      sees.choose(state.chosen);
      if (state.chosen < 0) sees.patches[0].tabIndex = 0;
      token.setAttribute("aria-pressed", String(!model.query()));
      arrows(weights);
      looks.textContent = `Where ${who().toLowerCase()} looks`;
      told.replaceChildren(
        gone(),
        `Layer ${state.layer + 1}, ${named(state.view)}: `,
        el("b", {}, percent(most)),
        ` on ${place(strongest[0] ?? 0, ROWS)}, `,
        el("b", {}, percent(row[model.query()])),
        " on itself."
      );
      taken.hidden = state.chosen < 0;
      taken.textContent =
        state.chosen < 0
          ? ""
          : model.isOut(state.chosen)
            ? `Put ${place(state.chosen, ROWS)} back`
            : `Take ${place(state.chosen, ROWS)} out`;
      back.setAttribute("aria-disabled", String(!model.anyOut())); // and keeps the focus
    }
    const spoken = () =>
      `${gone()}${who()}, layer ${state.layer + 1}, ${named(state.view)}: ${percent(most)} on ${place(strongest[0] ?? 0, ROWS)}.`;
    return {
      node,
      draw,
      drawImage() {
        sees.draw(model.seen(), pen.SIDE, pen.SIDE);
      },
      spoken
    };
  }

  globalThis.vitbook.live.figure("draw", function (stage, data) {
    const model = drawModel(data),
      { state, layers, VIEWS } = model;
    let later = 0;

    const paper = pad({
      label:
        "Board to draw on. Arrow keys move the pen, Space puts it down or lifts it, Backspace takes the last stroke back. The first stroke clears the example.",
      pen: pen.PEN,
      changed(strokes, width, words) {
        Object.assign(state, { strokes, width });
        compute(words);
      },
      said: stage.say
    });
    function take({ strokes, width }) {
      state.chosen = -1; // the class token looks at it first
      paper.set(strokes, width);
    }
    const samples = data.samples.map((one) => {
      const path = one.strokes
        .map((stroke) => `M${stroke.map((p) => p.join(" ")).join("L")}`)
        .join("");
      return el(
        "button",
        {
          type: "button",
          class: "draw-sample",
          "aria-label": `Take this drawing: ${one.label}`,
          onclick: () => take(one)
        },
        svg(
          "svg",
          { viewBox: "0 0 1 1", "aria-hidden": "true" },
          svg("path", { d: path, "stroke-width": one.width })
        )
      );
    });
    const placed = toggle("Position embeddings", (on) => {
      state.positions = on;
      compute();
    });
    const mixed = toggle("Shuffle the patches", (on) => {
      state.shuffle = on;
      compute();
    });
    const brief = head(),
      map = mapOf(model, (anew) => (anew ? compute() : show()));
    const left = el(
      "div",
      { class: "draw-part live-answer" },
      brief,
      paper.node,
      el(
        "div",
        { class: "draw-row" },
        button("Undo", () => paper.undo()),
        button("Clear", () => paper.set([]))
      ),
      el(
        "div",
        { class: "draw-samples", role: "group", "aria-label": "Drawings by hand" },
        ...samples
      ),
      placed.node,
      mixed.node
    );
    const reads = drawParts.bars(model),
      every = drawParts.everyView(model, pick),
      test = drawParts.mapTest(model, show);
    const numbers = table(
      "The map in numbers",
      ["patch", "weight", "what the answer loses, nats"],
      () =>
        [...model.row().subarray(1)].map((weight, p) => [
          place(p, model.ROWS),
          model.isOut(p) ? "taken out" : percent(weight),
          state.costs && !model.isOut(p) ? number(state.costs[p], 3, true) : "\u2013"
        ])
    );
    stage.box.append(
      el("div", { class: "draw-grid" }, left, map.node, reads.node, every.node, test.node),
      numbers.node
    );

    function compute(words) {
      const start = performance.now();
      model.compute();
      map.drawImage();
      show(words);
      performance.measure("draw-answer", { start });
    }
    function show(words = "") {
      for (const part of [map, reads, every, test]) part.draw();
      const { digit, shares, empty } = model.answer();
      brief.textContent = `Your board. ${reads.text()}${empty ? "" : `, ${percent(shares[digit])}`}`;
      placed.set(state.positions);
      mixed.set(state.shuffle);
      if (!later) later = requestAnimationFrame(showAll); // the answer first
      if (paper.isDown()) return;
      stage.say(words + reads.spoken() + map.spoken());
    }
    function showAll() {
      later = 0;
      const over = drawParts.inked(model.image(), stage.root);
      every.drawMaps(over);
      test.drawMaps(over);
      reads.drawEarly();
      numbers.update();
    }
    function pick({ layer, view }) {
      Object.assign(state, { layer, view });
      show();
    }
    onTheme(() => model.image() && showAll());

    take(data.samples.find((one) => one.label === START));
    return {
      set(values) {
        for (const [name, value] of Object.entries(values)) {
          if (name === "digit" && data.samples.some((one) => one.label === value))
            take(data.samples.find((one) => one.label === value));
          else if (name === "layer" && value >= 1 && value <= layers) state.layer = value - 1;
          else if (name === "head" && VIEWS.some((v) => v === value || String(v + 1) === value))
            state.view = VIEWS.find((v) => v === value || String(v + 1) === value);
          else if (name === "positions" && ["on", "off"].includes(value))
            state.positions = value === "on";
          else if (name === "shuffle" && ["on", "off"].includes(value))
            state.shuffle = value === "on";
          else throw new Error(`this figure has no ${name}=${value}`);
        }
        state.chosen = -1;
        compute();
        if ("layer" in values || "head" in values)
          map.node.scrollIntoView({ block: "center", behavior: isStill() ? "auto" : "smooth" }); // what was asked for is there
      }
    };
  });
})();

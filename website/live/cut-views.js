// What a reader chooses in a cut game besides an arrow: a layer and a head, seen small, and a glyph.
// Each gives {node, draw}.
(function () {
  "use strict";

  const { el, onTheme, place, rove, svg } = vitbook.live;
  const CELL = 14; // of the small maps, in pixels

  // Colours from paper to attention, as many as are needed, and those of glyphs and query.
  function colours(root) {
    const style = getComputedStyle(root),
      named = (name) => style.getPropertyValue(name).trim();
    const [low, high] = ["--cut-low", "--cut-high"].map((name) =>
      [1, 3, 5].map((at) => parseInt(named(name).slice(at, at + 2), 16))
    );
    const ramp = Array.from(
      { length: 64 },
      (_, i) => `rgb(${low.map((from, c) => Math.round(from + (i / 63) * (high[c] - from)))})`
    );
    return { ramp, ink: named("--live-ink"), frame: named("--live-query") };
  }

  function drawMap(pen, game, one, { ramp, ink, frame }) {
    const { N, columns, state } = game;
    for (let key = 0; key < N; key++) {
      const share = game.weightIn(game.now, one.layer, one.head, state.query, key);
      const left = (key % columns) * CELL,
        top = Math.floor(key / columns) * CELL;
      pen.fillStyle = ramp[Math.round(63 * Math.min(1, share))];
      pen.fillRect(left, top, CELL, CELL);
      pen.fillStyle = ink;
      if (state.glyphs.some((glyph) => glyph.patch === key))
        pen.fillRect(left + 5, top + 5, CELL - 10, CELL - 10);
      pen.strokeStyle = frame;
      pen.lineWidth = 2;
      if (key === state.query) pen.strokeRect(left + 1, top + 1, CELL - 2, CELL - 2);
    }
  }

  // Every head, small: the first of a row is the mean of the layer's heads.
  function heads(game, root) {
    const { L, h, rows, columns, state } = game,
      small = [];
    const node = el("div", { class: "cut-heads", role: "group", "aria-label": "Layer and head" });
    for (let layer = 0; layer < L; layer++) {
      for (let at = 0; at <= h; at++) {
        const head = at ? at - 1 : h,
          canvas = el("canvas", { width: columns * CELL, height: rows * CELL }),
          badge = el("span", { class: "cut-badge" });
        const button = el(
          "button",
          { type: "button", class: "cut-head", onclick: () => game.choose({ layer, head }) },
          canvas,
          el("small", { "aria-hidden": "true" }, at ? `head ${at}` : `L${layer + 1}, all`),
          badge
        );
        small.push({ button, pen: canvas.getContext("2d"), badge, layer, head });
        node.append(button);
      }
    }
    const walk = rove(
      node,
      small.map((one) => one.button),
      h + 1,
      (index) => game.choose({ layer: small[index].layer, head: small[index].head })
    );
    const isHere = (one) => one.layer === state.layer && one.head === state.head;
    let paint = colours(root);
    function draw() {
      for (const one of small) {
        drawMap(one.pen, game, one, paint);
        const cuts = game.cutsIn(one.layer, one.head);
        one.badge.textContent = cuts ? `✂ ${cuts}` : "";
        one.button.setAttribute("aria-pressed", String(isHere(one)));
        one.button.setAttribute(
          "aria-label",
          `layer ${one.layer + 1}, ${game.names(one.head)}${cuts ? `, ${cuts} cut` : ""}`
        );
      }
      walk(small.findIndex(isHere));
    }
    onTheme(() => {
      paint = colours(root);
      draw();
    });
    return { node, draw };
  }

  function glyphPicture({ ink, side }, kind) {
    const picture = svg("svg", { viewBox: `-1 -1 ${side + 2} ${side + 2}`, "aria-hidden": "true" });
    for (let i = 0; i < side * side; i++)
      if (ink[kind * side * side + i])
        picture.append(
          svg("rect", { x: i % side, y: Math.floor(i / side), width: 0.92, height: 0.92 })
        );
    return picture;
  }

  // All glyphs; one that is chosen takes the place of the query's.
  function palette(game) {
    function pick(kind) {
      const glyph = game.glyphHere();
      if (glyph && glyph.kind !== kind) game.change(glyph, kind);
    }
    const buttons = Array.from({ length: game.kinds }, (_, kind) =>
      el(
        "button",
        {
          type: "button",
          class: "cut-glyph",
          "aria-label": game.glyphNames[kind],
          title: game.glyphNames[kind],
          onclick: () => pick(kind)
        },
        glyphPicture(game, kind)
      )
    );
    const box = el(
        "div",
        { class: "cut-glyphs", role: "group", "aria-label": "Glyphs: change the one of the query" },
        ...buttons
      ),
      hint = el("small");
    const walk = rove(box, buttons, 8, () => {});
    function draw() {
      const glyph = game.glyphHere();
      buttons.forEach((one, kind) => {
        one.setAttribute("aria-pressed", String(Boolean(glyph) && glyph.kind === kind));
        one.setAttribute("aria-disabled", String(!glyph));
      });
      walk(glyph ? glyph.kind : 0);
      hint.textContent = glyph
        ? `change the ${game.glyphNames[glyph.kind]} in ${place(glyph.patch, game.columns)}`
        : "make a glyph's patch the query first";
    }
    return { node: el("div", {}, el("p", { class: "cut-title" }, "Glyphs ", hint), box), draw };
  }

  vitbook.live.cutViews = { heads, palette };
})();

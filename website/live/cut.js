// Cut the arrow: the matching-pairs ViT of the book, live. A reader moves a glyph, changes one, cuts
// an arrow, a head or all arrows to a patch, and compares what the map promised with what the cut did.
(function () {
  "use strict";

  const { cutBoard, cutGame, cutParts, cutViews, el, number, table } = vitbook.live;

  function buttons(game) {
    const { state, h } = game;
    const button = (text, onclick, first) =>
      el(
        "button",
        { type: "button", class: `live-button${first ? " live-first" : ""}`, onclick },
        text
      );
    const thickest = button("", game.cutStrongest, true),
      head = button("", game.cutHead),
      patch = button("Cut patch", game.cutPatch);
    const allBack = button("Restore all", game.restoreAll),
      next = button("Next image", game.next);
    function draw() {
      head.textContent = state.head === h ? "Cut layer" : "Cut head";
      head.setAttribute(
        "aria-label",
        `${head.textContent}: all arrows between patches in layer ${state.layer + 1}, ${game.names(state.head)}`
      );
      patch.setAttribute(
        "aria-label",
        `Cut patch: in all layers and heads no other patch may look at ${game.where(state.query)}`
      );
      thickest.textContent =
        state.head === h ? `✂ Cut the thickest arrow in ${h} heads` : "✂ Cut the thickest arrow";
      thickest.setAttribute("aria-disabled", String(game.strongest() < 0)); // and keeps the focus
      allBack.setAttribute("aria-disabled", String(!game.canRestore()));
    }
    return {
      node: el("div", { class: "cut-buttons" }, thickest, head, patch, allBack, next),
      draw
    };
  }

  function weights(game) {
    const { state } = game;
    return table(
      "The arrows as a table",
      ["from the query to", "weight untouched", "weight now", "cut"],
      () =>
        Array.from({ length: game.N }, (_, key) => [
          game.where(key),
          number(game.weight(game.base, state.query, key), 4),
          number(game.weight(game.now, state.query, key), 4),
          key === state.query ? "cannot be cut" : game.goneTo(state.query, key) ? "yes" : "no"
        ]),
      () =>
        `Layer ${state.layer + 1}, ${game.names(state.head)}${state.head === game.h ? " (their mean)" : ""}; query: ${game.where(state.query)}`
    );
  }

  function spoken(game) {
    const effect = game.state.cuts.length
      ? `The map promised ${number(game.promised)} of the weight ${number(game.rowsCut)}; the lead went from ${number(game.was, 2, true)} to ${number(game.lead, 2, true)}, ${cutParts.percent(game.way(game.was, game.lead))} of the way to the turn. `
      : "";
    return `${effect}${cutParts.spoken(game)} ${game.sentence()}`;
  }

  // What a sentence of the page may ask for, counted from 1 as the text counts:
  // image=1 layer=1 head=3 (or all) query=4-2 cut=1.3.4-2.3-4,... (layer, head, query, key; or only
  // the key of the chosen head).
  function ask(game, values) {
    const { state, rows, columns, L, h } = game;
    function patchOf(text) {
      const [row, column] = text.split("-").map(Number);
      if (!(row >= 1 && row <= rows && column >= 1 && column <= columns))
        throw new Error(`cut.js: no patch ${text}`);
      return (row - 1) * columns + column - 1;
    }
    const known = ["image", "layer", "head", "query", "cut"];
    for (const name of Object.keys(values))
      if (!known.includes(name)) throw new Error(`cut.js: nothing is called ${name}`);
    const image = Number(values.image ?? 1) - 1,
      layer = Number(values.layer ?? 1) - 1,
      head = values.head === "all" || !values.head ? h : Number(values.head) - 1;
    if (
      !(image >= 0 && image < game.pictures) ||
      !(layer >= 0 && layer < L) ||
      !(head >= 0 && head <= h)
    )
      throw new Error("cut.js: no such image, layer or head");
    game.open(image);
    Object.assign(state, { layer, head });
    if (values.query) state.query = patchOf(values.query);
    for (const one of (values.cut ?? "").split(",").filter(Boolean)) {
      const parts = one.split(".");
      if (parts.length === 4)
        Object.assign(state, {
          layer: Number(parts[0]) - 1,
          head: Number(parts[1]) - 1,
          query: patchOf(parts[2])
        });
      game.toggle(state.query, patchOf(parts.at(-1)));
    }
  }

  vitbook.live.figure("cut", function (stage, data) {
    const game = cutGame(data, (words) => {
      draw();
      stage.say(words ? words + spoken(game) : game.sentence());
    });
    game.open(0);
    game.state.head = game.boldest();
    const image = cutBoard.picture(game),
      actions = buttons(game),
      told = el("p", { class: "cut-told" }),
      answer = cutParts.guessing(game),
      promise = cutParts.promise(game);
    const heads = cutViews.heads(game, stage.root),
      palette = cutViews.palette(game),
      past = cutParts.past(game),
      values = weights(game);
    stage.box.classList.add("cut");
    stage.box.append(
      el(
        "p",
        { class: "cut-challenge" },
        el(
          "span",
          {},
          el("b", {}, "Challenge "),
          "turn the answer round with as few arrows as you can"
        ),
        promise.score
      ),
      answer.node,
      el("div", { class: "cut-stage" }, image.node, actions.node, told),
      el(
        "div",
        { class: "cut-side" },
        promise.cards,
        promise.lesson,
        el(
          "div",
          {},
          el(
            "p",
            { class: "cut-title" },
            "Layer and head ",
            el("small", {}, "seen from the query")
          ),
          heads.node
        ),
        palette.node
      ),
      past.node,
      el(
        "p",
        { class: "cut-keys" },
        "Keys: arrows move the query, with Shift its glyph; Tab goes to the arrows, Enter cuts or restores; 1 to " +
          game.h +
          " a head, 0 all; R restores all."
      ),
      values.node
    );
    cutBoard.keys(stage.box, game, image.focus);
    function draw() {
      for (const part of [image, answer, promise, heads, past, palette, actions]) part.draw();
      told.textContent = game.sentence();
      values.update();
      stage.root.dataset.lead = game.lead; // in full, for the tests
    }
    draw();
    return {
      set(asked) {
        ask(game, asked);
        draw();
        stage.say(spoken(game));
      }
    };
  });
})();

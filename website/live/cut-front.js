// Cut the arrow on the front page, from pictures where one arrow is enough to those that take more.
// The first cut is the reader's.
(function () {
  "use strict";

  const PAUSE = 1400; // milliseconds between the cuts of a way
  const { cutBoard, cutGame, cutParts, cutViews, el, isStill } = vitbook.live;
  const button = (text, onclick, name = "live-button") =>
    el("button", { type: "button", class: name, onclick }, text);

  // Pictures whose answer can be turned, the fewest arrows first: {index, cuts}.
  function levelsOf(pictures) {
    const levels = pictures
      .map((one, index) => ({ index, cuts: one.cuts }))
      .filter((one) => one.cuts.length);
    levels.sort((a, b) => a.cuts.length - b.cuts.length);
    return levels;
  }

  // What a reader is to do, or what came of it; in other views than those, what is drawn. `opening`: the
  // view with which the picture begins; `acted`: that in which the last thing was done.
  function told(game, lesson, opening, acted) {
    const cutAny = game.state.cuts.length > 0;
    if (cutAny && acted)
      return (
        lesson +
        (game.best && game.way(game.was, game.lead) < 1
          ? " Try the other shape, or another head."
          : "")
      );
    if (!game.best && acted) return "A picture of your own. Cut its arrows.";
    if (cutAny || !opening) return game.sentence();
    return game.best === 1
      ? "Your turn. The thick arrow is a patch that looks at the other shape. Cut it."
      : `Your turn. No single arrow turns this answer round; ${game.best} together do. Which?`;
  }

  vitbook.live.figure("cut-front", function (stage, data) {
    const levels = levelsOf(data.pictures),
      { box } = stage;
    const game = cutGame(data, (words) => {
      if (words) seen = view();
      draw();
      stage.say(
        words ? `${words}${sentence.textContent} ${cutParts.spoken(game)}` : game.sentence()
      );
    });
    const answer = cutParts.verdict(game),
      image = cutBoard.picture(game),
      heads = cutViews.heads(game, stage.root),
      promise = cutParts.promise(game);
    const sentence = el("p", { class: "cut-front-told" }),
      score = el("p", { class: "cut-score" });
    const cut = button("✂ Cut the thickest arrow", game.cutStrongest, "live-button live-first"),
      back = button("Restore", game.restoreAll),
      way = button("Show a way", showWay),
      next = button("Next picture", goOn);
    const view = () => [game.state.layer, game.state.head, game.state.query].join();
    const timers = []; // of cuts that are still to come
    let level = 0,
      seen = ""; // seen: the view in which the last thing was done

    function open(to) {
      level = to % levels.length;
      const {
        index,
        cuts: [[layer, head, query]]
      } = levels[level];
      game.open(index);
      Object.assign(game.state, { layer, head, query });
    }
    function goOn() {
      open(level + 1);
      draw();
      stage.say(`${sentence.textContent} ${cutParts.spoken(game)}`);
    }
    // The known cuts, one after another.
    function showWay() {
      open(level);
      draw();
      levels[level].cuts.forEach(([layer, head, query, key], at) => {
        const act = () => {
          Object.assign(game.state, { layer, head, query });
          game.toggle(query, key);
        };
        if (isStill()) act();
        else timers.push(setTimeout(act, PAUSE * (at + 0.5)));
      });
    }
    const parts = [image, answer, heads, promise],
      turned = () => game.way(game.was, game.lead) >= 1;
    function drawButtons() {
      score.textContent = `Picture ${level + 1} of ${levels.length}. Arrows cut: ${game.count()}. Fewest known: ${game.best || "–"}.`;
      for (const [one, isFirst] of [
        [cut, !turned()],
        [next, turned()]
      ])
        one.classList.toggle("live-first", isFirst);
      cut.setAttribute("aria-disabled", String(game.strongest() < 0)); // and keeps the focus
      back.setAttribute("aria-disabled", String(!game.canRestore()));
      stage.root.dataset.lead = game.lead; // in full, for the tests
    }
    function draw() {
      for (const part of parts) part.draw();
      sentence.textContent = told(
        game,
        promise.lesson.textContent,
        view() === levels[level].cuts[0].slice(0, 3).join(),
        view() === seen
      );
      sentence.classList.toggle("cut-won", turned());
      drawButtons();
    }
    box.classList.add("cut-front");
    box.append(
      answer.node,
      sentence,
      el("div", { class: "cut-stage" }, image.node),
      el(
        "div",
        { class: "cut-front-side" },
        el("div", { class: "cut-front-buttons" }, cut, back, way, next),
        score,
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
        )
      )
    );
    cutBoard.keys(box, game, image.focus);
    for (const name of ["pointerdown", "keydown"])
      box.addEventListener(name, () => timers.splice(0).forEach(clearTimeout), true);
    open(0);
    draw();
    return {
      set() {
        throw new Error("cut-front.js: no sentence sets this figure");
      }
    };
  });
})();

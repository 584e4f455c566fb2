// Cut the arrow on the front page: in a few seconds one cut turns an answer round, then it is the
// reader's turn, from pictures where one arrow is enough to those that take more.
(function () {
  "use strict";

  const PAUSE = 1400; // milliseconds between the cuts of a way
  const { cutBoard, cutGame, cutParts, cutViews, el, isStill } = vitbook.live;
  const button = (text, onclick, name = "live-button") => el("button", { type: "button", class: name, onclick }, text);

  // Pictures whose answer can be turned, the fewest arrows first: {index, cuts}.
  function levelsOf(pictures) {
    const levels = pictures.map((one, index) => ({ index, cuts: one.cuts })).filter((one) => one.cuts.length);
    levels.sort((a, b) => a.cuts.length - b.cuts.length);
    return levels;
  }

  // Scenes one after another: {seconds, words, act}. begin() is called before, end(broken) after them.
  function film(scenes, { begin, say, end }) {
    let timer = 0, aloud = false;
    function close(broken) {
      clearTimeout(timer);
      timer = 0;
      end(broken, aloud);
    }
    function show(at) {
      scenes[at].act();
      say(scenes[at].words, aloud);
      timer = setTimeout(at + 1 < scenes.length ? show : close, 1000 * scenes[at].seconds, at + 1 < scenes.length ? at + 1 : false);
    }
    function play(asked) {
      aloud = asked;
      begin();
      show(0);
    }
    return { play, stop: () => timer && close(true), get runs() { return timer > 0; } };
  }

  // What a reader is to do, or what came of it; in other views than those, what is drawn. `opening`: the
  // view with which the picture begins; `acted`: that in which the last thing was done.
  function told(game, lesson, opening, acted) {
    const cutAny = game.state.cuts.length > 0;
    if (cutAny && acted) return lesson + (game.best && game.way(game.was, game.lead) < 1 ? " Try the other shape, or another head." : "");
    if (!game.best && acted) return "A picture of your own. Cut its arrows.";
    if (cutAny || !opening) return game.sentence();
    return game.best === 1 ? "Your turn. The thick arrow is a patch that looks at the other shape. Cut it." : `Your turn. No single arrow turns this answer round; ${game.best} together do. Which?`;
  }

  vitbook.live.figure("cut-front", function (stage, data) {
    const levels = levelsOf(data.pictures), { box } = stage;
    const game = cutGame(data, (words) => {
      if (words) seen = view();
      if (motion.runs) return drawSlowly();
      draw();
      stage.say(words ? `${words}${sentence.textContent} ${cutParts.spoken(game)}` : game.sentence());
    });
    const answer = cutParts.verdict(game), image = cutBoard.picture(game), heads = cutViews.heads(game, stage.root), promise = cutParts.promise(game);
    const sentence = el("p", { class: "cut-front-told" }), score = el("p", { class: "cut-score" });
    const cut = button("✂ Cut the thickest arrow", game.cutStrongest, "live-button live-first"), back = button("Restore", game.restoreAll), way = button("Show a way", showWay), next = button("Next picture", goOn);
    const still = button("", () => (motion.runs ? motion.stop() : motion.play(true)), "front-still");
    const view = () => [game.state.layer, game.state.head, game.state.query].join();
    const timers = []; // of cuts that are still to come
    let level = 0, seen = ""; // seen: the view in which the last thing was done

    function open(to) {
      level = to % levels.length;
      const { index, cuts: [[layer, head, query]] } = levels[level];
      game.open(index);
      Object.assign(game.state, { layer, head, query });
    }
    function stopAll() {
      timers.splice(0).forEach(clearTimeout);
      motion.stop();
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
        const act = () => { Object.assign(game.state, { layer, head, query }); game.toggle(query, key); };
        if (isStill()) act();
        else timers.push(setTimeout(act, PAUSE * (at + 0.5)));
      });
    }
    const parts = [image, answer, heads], turned = () => game.way(game.was, game.lead) >= 1;
    function drawButtons() {
      score.textContent = `Picture ${level + 1} of ${levels.length}. Arrows cut: ${game.count()}. Fewest known: ${game.best || "–"}.`;
      for (const [one, isFirst] of [[cut, !turned()], [next, turned()]]) one.classList.toggle("live-first", isFirst);
      cut.setAttribute("aria-disabled", String(game.strongest() < 0)); // and keeps the focus
      back.setAttribute("aria-disabled", String(!game.canRestore()));
      stage.root.dataset.lead = game.lead; // in full, for the tests
    }
    function draw() {
      for (const part of [...parts, promise]) part.draw();
      sentence.textContent = told(game, promise.lesson.textContent, view() === levels[level].cuts[0].slice(0, 3).join(), view() === seen);
      sentence.classList.toggle("cut-won", turned());
      drawButtons();
    }
    // A part at a time: while nobody asked for it, the page must stay ready to answer.
    function drawSlowly() {
      [...parts.map((part) => part.draw), drawButtons].forEach((one, at) => setTimeout(one, 90 * at));
    }
    function caption(words, aloud) {
      sentence.textContent = words;
      if (aloud) stage.say(words);
    }
    const scene = (seconds, words, act) => ({ seconds, words, act });
    const motion = film([
      scene(2.2, "Two shapes. Are they the same? A small Vision Transformer says: different.", () => { open(0); draw(); box.classList.add("cut-front-bare"); }),
      scene(2.6, "Its patches look at each other. One looks hard at the other shape: the thick arrow.", () => box.classList.remove("cut-front-bare")),
      scene(3.2, "Cut this one arrow, and it says: same.", () => game.toggle(game.state.query, levels[0].cuts[0][3]))
    ], {
      begin() { still.textContent = "Stop motion"; },
      say: caption,
      end(broken, aloud) {
        box.classList.remove("cut-front-bare");
        still.textContent = "Replay";
        if (broken) draw();
        else caption(`Your turn. “Next picture” takes ${levels[1].cuts.length} arrows. Which?`, aloud);
      }
    });

    box.classList.add("cut-front");
    box.append(answer.node, sentence, el("div", { class: "cut-stage" }, image.node),
      el("div", { class: "cut-front-side" }, el("div", { class: "cut-front-buttons" }, cut, back, way, next), score,
        el("div", {}, el("p", { class: "cut-title" }, "Layer and head ", el("small", {}, "seen from the query")), heads.node)));
    cutBoard.keys(box, game, image.focus);
    for (const name of ["pointerdown", "keydown"]) box.addEventListener(name, stopAll, true);
    open(0);
    draw();
    if (!isStill()) {
      stage.root.prepend(still);
      motion.play(false);
    }
    return { set() { throw new Error("cut-front.js: no sentence sets this figure"); } };
  });
})();

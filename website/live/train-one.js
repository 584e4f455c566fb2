// One experiment of "train one here", small: a prediction, a chart, a button. A sentence of the page
// may set another one.
vitbook.live.figure("train-one", function (stage, data) {
  "use strict";
  const { decode, el, isStill } = vitbook.live;
  const { chart, percent } = vitbook.trainChart;
  const { runs, starts } = vitbook.trainRuns;
  const arrays = Object.fromEntries(
    ["images", "labels", "glyphs"].map((name) => [name, decode(data[name])])
  );
  let loaded = [],
    one = null,
    session = null,
    playing = false,
    seed = 0;

  const button = el("button", { type: "button", class: "live-button live-first", onclick: press });
  const whole = el("a", {}, "All parts, and other experiments");
  const accuracy = chart("Right answers", "in percent, against updates", 1, percent);
  const trials = vitbook.trainExperiments(data.experiments, {
    open,
    play: () => playing || play(true)
  });
  stage.box.append(
    el(
      "div",
      { class: "train-one" },
      trials.asks,
      el("p", { class: "train-bar" }, button, whole),
      accuracy.node
    )
  );

  function open(next) {
    one = next;
    session = runs(starts(one, seed), loaded, arrays, one);
    playing = false;
    trials.set(one);
    const page = document.querySelector('a[href*="train.html"]')?.href.split("#")[0];
    whole.hidden = !page;
    whole.href = `${page}#train:experiment=${one.id}&seed=${seed}`;
    draw();
  }
  const ended = () => session.all[0].run.steps >= one.until;
  function press() {
    if (!ended()) return play(!playing);
    seed += 1;
    open(one);
    play(true);
  }
  function play(on) {
    playing = on;
    if (on) requestAnimationFrame(frame);
    draw();
  }
  function frame() {
    if (!playing) return;
    const until = performance.now() + (isStill() ? 500 : 12);
    while (playing && !document.hidden && performance.now() < until) {
      if (!session.update()) continue;
      playing = false;
      trials.ended(session.values());
      stage.say("The run has ended.");
    }
    draw();
    requestAnimationFrame(frame);
  }
  function draw() {
    const { steps } = session.all[0].run;
    button.textContent = ended() ? "Again, another seed" : playing ? "Pause" : "Play";
    accuracy.draw(session.curves(), ["held"], session.all[0].task.guess);
    stage.root.dataset.steps = steps;
  }

  button.disabled = true;
  const find = (id) => data.experiments.find((each) => each.id === id);
  const ready = Promise.all([0, 1].map(() => vitbook.engine.load(400, vitbook.kernel))).then(
    (both) => {
      loaded = both;
      button.disabled = false;
      open(one ?? find("cut-positions"));
    }
  );
  return {
    ready,
    set({ experiment }) {
      const next = find(experiment);
      if (!next) throw new Error(`there is no experiment ${experiment}`);
      one = next;
      if (loaded.length) open(one);
    }
  };
});

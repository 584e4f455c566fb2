// One experiment of "train one here", small: a prediction, a chart, a button. A sentence of the page
// may set another one.
vitbook.live.figure("train-one", function (stage, data) {
  "use strict";
  if (!vitbook.trainWork) document.head.append(vitbook.live.el("script", {}, data.scripts));
  const { decode, el, isStill } = vitbook.live;
  const { chart, percent } = vitbook.trainChart;
  const arrays = Object.fromEntries(
    ["images", "labels", "glyphs"].map((name) => [name, decode(data[name])])
  );
  const employed = vitbook.trainWork.employ(arrays, data.scripts),
    ask = async (...question) => (await employed)(...question);
  let one = null,
    state = null, // the last answer
    playing = false,
    going = false,
    round = 0, // an answer to a question from before it is too late
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

  async function tell(...question) {
    const mine = round,
      answer = await ask(...question);
    if (mine !== round) return;
    state = answer;
    if (answer.values) {
      playing = false;
      trials.ended(answer.values, seed);
      stage.say("The run has ended.");
    }
    draw();
  }
  async function open(next) {
    one = next;
    playing = false;
    const mine = (round += 1);
    await tell("begin", vitbook.trainRuns.starts(one, seed), one);
    if (mine !== round) return;
    trials.set(one);
    const page = document.querySelector('a[href*="train.html"]')?.href.split("#")[0];
    whole.hidden = !page;
    whole.href = `${page}#train:experiment=${one.id}&seed=${seed}`;
  }
  const ended = () => state.runs[0].steps >= one.until;
  function press() {
    if (!ended()) return play(!playing);
    seed += 1;
    open(one);
    play(true);
  }
  function play(on) {
    playing = on;
    draw();
    go();
  }
  async function go() {
    if (going) return;
    going = true;
    while (playing) {
      await new Promise(requestAnimationFrame);
      if (playing) await tell("train", Infinity, isStill() ? 500 : undefined);
    }
    going = false;
  }
  function draw() {
    const [{ steps, task }] = state.runs;
    button.textContent = ended() ? "Again, another seed" : playing ? "Pause" : "Play";
    accuracy.draw(state.curves, ["held"], task.guess);
    stage.root.dataset.steps = steps;
  }

  button.disabled = true;
  const find = (id) => data.experiments.find((each) => each.id === id);
  const ready = employed.then(() => {
    button.disabled = false;
    return open(one ?? find("cut-positions"));
  });
  return {
    ready,
    set({ experiment }) {
      const next = find(experiment);
      if (!next) throw new Error(`there is no experiment ${experiment}`);
      return open(next);
    }
  };
});

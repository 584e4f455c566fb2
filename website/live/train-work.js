// Who trains for a figure: a worker, or the page itself where none can be made. Questions and answers
// are plain data, in one order. This script and those that it needs come as text in the figure's data
// (train.py): from a file, too, a worker can be made of a text.
(function () {
  "use strict";
  const PAGES = 400, // of 64 kB, for each model
    SLICE = { worker: 25, page: 16 }, // milliseconds of work between two answers at full speed
    SHOWN = 6; // held-out images that are looked at, the last of them the reader's own

  // The questions, by name.
  async function answers(arrays, slice) {
    const loaded = await Promise.all([0, 1].map(() => vitbook.engine.load(PAGES, vitbook.kernel)));
    let plan = null, // the experiment that runs
      session = null,
      own = null; // a digit that the reader has drawn: (8, 8) from -1 to 1

    // All that there is to draw of a run.
    function seen({ name, one, task, run, marks, rows }) {
      const { shape, channels, darkest, guess, guessLoss, patches, held } = task,
        each = shape.grid ** 2 * shape.inputs,
        inputs = held.inputs.slice(0, SHOWN * each);
      if (own && patches) inputs.set(patches(own), (SHOWN - 1) * each);
      const logits = run.net.forward(inputs, SHOWN).slice(),
        { labels, targets, images } = held,
        answered = SHOWN * (labels.length / (held.inputs.length / each));
      return {
        name,
        one,
        marks,
        rows,
        logits,
        over: !logits.every(Number.isFinite), // no answer comes of it any more
        inputs,
        steps: run.steps,
        weights: run.net.weights,
        maps: run.net.maps.map((map) => map.slice()),
        differences: Array.from({ length: SHOWN }, (_, image) => run.net.differences(image)),
        task: {
          shape,
          channels,
          darkest,
          guess,
          guessLoss,
          images: images?.slice(0, SHOWN),
          labels: labels.slice(0, answered),
          targets: targets?.slice(0, answered),
          drawable: Boolean(patches)
        }
      };
    }
    // anew: other parts, other images; values: what an experiment read that has ended.
    const look = (anew = false, values = null) => ({
      anew,
      values,
      curves: session.curves(),
      runs: session.all.map(seen)
    });

    return {
      look,
      begin(chosen, planned) {
        plan = planned && { ...planned };
        session = vitbook.trainRuns.runs(chosen, loaded, arrays, plan);
        return { fast: loaded[0].fast, ...look() };
      },
      // So many updates of each, or those of so many milliseconds: one at least, none after the end.
      train(updates, time = slice) {
        const until = performance.now() + time,
          { run } = session.all[0],
          from = run.steps;
        let ended = false;
        do ended = session.update();
        while (!ended && run.steps < from + updates && performance.now() < until);
        const cut = Boolean(plan?.cuts.some(([at]) => from < at && at <= run.steps));
        return look(cut, ended ? session.values() : null);
      },
      // A part becomes another one, which no experiment foresaw.
      set(name, key, value) {
        if (plan) Object.assign(plan, { cuts: [], reads: [], until: null });
        session.set(name, key, value);
        return look(true);
      },
      draw(digit) {
        own = digit;
        return look(true);
      },
      file() {
        const { run, task, one } = session.all[0];
        return vitbook.training.safetensors(run.net, task.shape, task.channels, {
          ...Object.fromEntries(Object.entries(one).map(([key, value]) => [key, String(value)])),
          updates: String(run.steps)
        });
      },
      tensors: () => session.all[0].run.net.tensors(),
      // All of an experiment at once, with a seed: what it reads, in percent.
      trial(planned, seed, choosing) {
        const { runs, starts } = vitbook.trainRuns,
          chosen = starts(planned, seed),
          one = runs(chosen, loaded, arrays, planned, { choosing, drawn: false });
        while (!one.update());
        return one.values();
      }
    };
  }

  // In the worker: the arrays come first, then questions.
  function serve() {
    async function first({ data: arrays }) {
      const all = await answers(arrays, SLICE.worker);
      addEventListener("message", ({ data: [what, ...given] }) =>
        postMessage(all[what](...given), [])
      );
      postMessage("ready", []);
    }
    addEventListener("message", first, { once: true });
  }

  function worker(arrays, scripts) {
    const text = ["globalThis.vitbook = {};", scripts, "vitbook.trainWork.serve();"],
      there = new Worker(URL.createObjectURL(new Blob(text, { type: "text/javascript" }))),
      waiting = [];
    function ask(...question) {
      there.postMessage(question, []);
      return new Promise((...ends) => waiting.push(ends));
    }
    return new Promise((done, fail) => {
      function failed(event) {
        event.preventDefault(); // the page does the work
        fail(new Error(event.message));
      }
      function ready() {
        there.removeEventListener("error", failed);
        there.addEventListener("message", ({ data }) => waiting.shift()[0](data));
        there.addEventListener("error", (event) => {
          event.preventDefault(); // who asked is told
          waiting.shift()[1](new Error(event.message));
        });
        done(ask);
      }
      there.addEventListener("message", ready, { once: true });
      there.addEventListener("error", failed);
      there.postMessage(arrays, []);
    });
  }

  // arrays: images, labels, glyphs; scripts: their text. Gives ask(question, ...), which gives a
  // promise of the answer.
  async function employ(arrays, scripts) {
    try {
      return await worker(arrays, scripts);
    } catch {
      const all = await answers(arrays, SLICE.page);
      return async (what, ...given) => all[what](...given);
    }
  }

  vitbook.trainWork = { employ, serve, SHOWN };
})();

// A Vision Transformer that trains in the page. The drawing is the interface: a part is a button that
// is cut or put back while it trains; a second model beside it has the same seed, data and order.
vitbook.live.figure("train", function (stage, data) {
  "use strict";
  const { el, decode, isStill, number, onTheme, table } = vitbook.live;
  const { chart, percent } = vitbook.trainChart;
  const PAGES = 400, // of 64 kB, for each model
    FRAME = 24, // milliseconds of work in a frame at full speed
    SHOWN = 6; // images to choose from

  // --- What can be chosen. `live`: while it trains; everything else begins anew.
  const CHOICES = [
    ["task", "Task", { digits: "digits", recall: "recall", pairs: "pairs" }],
    ["positions", "Positions", { none: "none", learned: "learned", sincos: "waves" }, "live"],
    [
      "mixing",
      "Mixing",
      { attention: "attention", mlp: "MLP", conv: "convolution", mean: "even mean", none: "none" },
      "live"
    ],
    ["scaled", "Scores times 1/√d", { 1: "yes", 0: "no" }, "live"],
    ["heads", "Heads", { 1: "1", 2: "2", 4: "4", 8: "8" }],
    ["depth", "Blocks", { 1: "1", 2: "2", 4: "4", 6: "6" }],
    ["residual", "Residual stream", { 1: "yes", 0: "no" }, "live"],
    ["norm", "Layer norm", { before: "before", after: "after", none: "none" }, "live"],
    ["mlp", "MLP", { 1: "yes", 0: "no" }, "live"],
    ["rate", "Learning rate", { 0.001: "0.001", 0.004: "0.004", 0.04: "0.04", 0.4: "0.4" }, "live"]
  ];
  const START = {
    task: "digits",
    positions: "learned",
    mixing: "attention",
    scaled: 1,
    heads: 4,
    depth: 2,
    residual: 1,
    norm: "before",
    mlp: 1,
    rate: 0.004,
    seed: 0
  };
  const WORDS = {
    digits: "Digits. Handwritten digits of 8 × 8 pixels, patches of 2 × 2. Which digit is it?",
    recall:
      "Recall. The white dot in a patch stands where, in the whole picture, another patch stands. Each patch answers with that patch’s colour.",
    pairs: "Matching pairs. Are the two glyphs the same?"
  };
  const FIXED = { positionStd: 1, second: 0.99, hidden: 64, dim: 32 };
  const arrays = {
    images: decode(data.images),
    labels: decode(data.labels),
    glyphs: decode(data.glyphs)
  };
  const makeTask = {
    digits: () => vitbook.training.digits(arrays),
    recall: () => vitbook.training.recall(),
    pairs: () => vitbook.training.pairs(arrays)
  };

  // --- One model: its run, its drawing
  const chosen = { A: { ...START }, B: null };
  let loaded = [],
    runs = [],
    playing = false,
    speed = "even",
    image = 0,
    asks = 5,
    setting = "A",
    due = 0,
    touched = false, // then the address follows
    told = 0;

  const settingsOf = (one) => ({
    ...FIXED,
    seed: one.seed,
    positions: one.positions,
    mixing: one.mixing,
    scaled: Boolean(Number(one.scaled)),
    heads: Number(one.heads),
    depth: Number(one.depth),
    residual: Boolean(Number(one.residual)),
    norm: one.norm,
    mlp: Boolean(Number(one.mlp))
  });

  // --- The state is the address: what A has that is not the start's, what B has that is not A's
  const MARK = "#train:";
  function written() {
    const values = new URLSearchParams();
    for (const [key, value] of Object.entries(chosen.A))
      if (String(value) !== String(START[key])) values.set(key, value);
    for (const [key, value] of Object.entries(chosen.B ?? {}))
      if (String(value) !== String(chosen.A[key])) values.set(`B.${key}`, value);
    return `${MARK}${values}`;
  }
  const knows = (key, value) =>
    key === "seed"
      ? /^\d{1,4}$/.test(value)
      : CHOICES.some(([known, , list]) => known === key && value in list);
  // Takes what the address says; the parts of it that mean nothing here.
  function read(hash) {
    const strange = [];
    for (const [written, value] of new URLSearchParams(hash.slice(MARK.length))) {
      const [, of, key] = written.match(/^(B\.)?(.*)$/);
      if (!knows(key, value) || (of && key === "task")) strange.push(`${written}=${value}`);
      else if (of) chosen.B = { ...(chosen.B ?? chosen.A), [key]: value };
      else chosen.A[key] = value;
    }
    return strange;
  }

  function begin() {
    runs = Object.entries(chosen)
      .filter(([, one]) => one)
      .map(([name, one], i) => {
        const task = makeTask[chosen.A.task]();
        const recipe = { rate: Number(one.rate), warmup: 20, batch: 32 };
        const run = vitbook.training.run(task, settingsOf(one), loaded[i], recipe);
        return {
          name,
          one,
          task,
          run,
          marks: [],
          points: { held: [], known: [], loss: [] },
          sum: 0,
          count: 0
        };
      });
    runs.forEach(measure);
    shown();
  }

  function shown() {
    const { pathname, search } = location;
    if (touched) history.replaceState(null, "", `${pathname}${search}${written()}`);
    build();
    draw();
  }

  function measure(one) {
    const { held, known } = one.run.accuracy();
    one.points.held.push([one.run.steps, held]);
    one.points.known.push([one.run.steps, known]);
    if (one.count) one.points.loss.push([one.run.steps, one.sum / one.count]);
    one.sum = one.count = 0;
  }

  function update() {
    for (const one of runs) {
      one.sum += one.run.step();
      one.count += 1;
      const { steps } = one.run;
      if (steps % (steps < 100 ? 5 : 20) === 0) measure(one);
    }
  }

  function frame(now) {
    if (!playing) return;
    if (document.hidden || now < due) return requestAnimationFrame(frame);
    const until = speed === "full" ? performance.now() + FRAME : 0;
    do update();
    while (performance.now() < until);
    due = speed === "slow" ? now + 250 : isStill() ? now + 1000 : 0;
    draw();
    if (now - told > 10000) {
      told = now; // for who listens: not every step
      speak();
    }
    requestAnimationFrame(frame);
  }

  function play(on) {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (on) requestAnimationFrame(frame);
    else speak();
  }

  const speak = () =>
    stage.say(
      runs
        .map(({ name, run, points }) => {
          const [, held] = points.held.at(-1);
          return `${runs.length > 1 ? `${name}, ` : ""}${run.steps} updates, ${percent(held)} % of the held-out answers right.`;
        })
        .join(" ")
    );

  // A part is changed in this run, or a new run begins.
  function change(name, key, value) {
    const one = chosen[name] ?? chosen.A,
      live = CHOICES.find(([known]) => known === key)?.[3];
    one[key] = value;
    touched = true;
    if (key === "task") for (const each of Object.values(chosen)) if (each) each.task = value;
    if (!live || runs[0].run.steps === 0) return begin();
    const here = runs.find((run) => run.name === name);
    here.run.net.set(settingsOf(one));
    here.run.setRate(Number(one.rate));
    here.marks.push(here.run.steps);
    measure(here);
    shown();
  }

  // --- The elements
  const button = el(
    "button",
    { type: "button", class: "live-button live-first", onclick: () => play(!playing) },
    "Play"
  );
  const step = el(
    "button",
    {
      type: "button",
      class: "live-button",
      onclick() {
        play(false);
        update();
        draw();
        speak();
      }
    },
    "One step"
  );
  const again = el(
    "button",
    {
      type: "button",
      class: "live-button",
      onclick: () => {
        play(false);
        begin();
      }
    },
    "Start again"
  );
  const compare = el(
    "button",
    {
      type: "button",
      class: "live-button",
      onclick() {
        chosen.B = chosen.B
          ? null
          : { ...chosen.A, mixing: chosen.A.mixing === "mean" ? "attention" : "mean" };
        setting = chosen.B ? "B" : "A";
        compare.textContent = chosen.B ? "Only A" : "Compare with a copy";
        begin();
      }
    },
    "Compare with a copy"
  );
  const copy = el(
    "button",
    {
      type: "button",
      class: "live-button",
      async onclick() {
        touched = true;
        shown();
        try {
          await navigator.clipboard.writeText(location.href);
          stage.say("The link to this setting is copied.");
        } catch {
          prompt("The link to this setting", location.href); // no clipboard here
        }
      }
    },
    "Copy link"
  );
  const WHOLE = { mixing: "attention", scaled: 1, residual: 1, norm: "before", mlp: 1 };
  function file() {
    const { run, task, one } = runs[0];
    return vitbook.training.safetensors(run.net, task.shape, task.channels, {
      ...Object.fromEntries(Object.entries(one).map(([key, value]) => [key, String(value)])),
      updates: String(run.steps)
    });
  }
  const take = el(
    "button",
    {
      type: "button",
      class: "live-button",
      title: "The weights of A, for PyTorch",
      onclick() {
        const address = URL.createObjectURL(file());
        el("a", {
          href: address,
          download: `${chosen.A.task}-${runs[0].run.steps}.safetensors`
        }).click();
        setTimeout(() => URL.revokeObjectURL(address), 1000);
      }
    },
    "Take it out"
  );
  const counted = el("b", {}, "0");
  const pace = el(
    "select",
    { class: "train-select", "aria-label": "Speed", onchange: () => (speed = pace.value) },
    ...Object.entries({ slow: "slow", even: "60 a second", full: "full speed" }).map(
      ([value, words]) => el("option", { value, selected: value === speed }, words)
    )
  );
  const seed = el("input", {
    class: "train-select",
    type: "number",
    min: 0,
    max: 9999,
    value: 0,
    "aria-label": "Seed",
    onchange() {
      touched = true;
      for (const one of Object.values(chosen)) if (one) one.seed = Number(seed.value) || 0;
      begin();
    }
  });
  const words = el("p", { class: "train-words" }),
    slowly = el(
      "p",
      { class: "train-note", hidden: true },
      "This browser runs the plain path, which takes several times as long for the same numbers."
    );
  const unknown = el("p", { class: "train-note", role: "status", hidden: true });
  const panel = el("div", { class: "train-panel" });
  const models = el("div", { class: "train-models" });
  const accuracy = chart("Accuracy", "in percent, against updates", 1, percent);
  const loss = chart("Loss", "in training, nats", null, (value) => number(value, 1));
  const bar = el(
    "div",
    { class: "train-bar" },
    button,
    step,
    again,
    el("span", { class: "train-count" }, counted, " updates"),
    pace,
    el("label", {}, "Seed ", seed),
    compare,
    copy,
    take
  );
  const curves = table(
    "The curves as a table",
    ["Run and updates", "held out", "in training", "loss, nats"],
    () =>
      runs.flatMap(({ name, points }) =>
        points.held.map(([at, held], i) => [
          `${name}, ${at}`,
          `${percent(held)} %`,
          `${percent(points.known[i][1])} %`,
          i ? number(points.loss[i - 1][1], 3) : "none yet"
        ])
      )
  );
  stage.box.append(
    el(
      "div",
      { class: "train" },
      el("div", {}, words, slowly, unknown),
      bar,
      panel,
      models,
      el("div", { class: "train-charts" }, accuracy.node, loss.node, curves.node)
    )
  );

  function control([key, label, list, live]) {
    const one = chosen[setting] ?? chosen.A;
    const select = el(
      "select",
      {
        class: "train-select",
        onchange: () => change(chosen[setting] ? setting : "A", key, select.value)
      },
      ...Object.entries(list).map(([value, text]) =>
        el("option", { value, selected: String(one[key]) === value }, text)
      )
    );
    return el("label", { class: live ? "train-live" : "" }, label, select);
  }

  // The drawing of a model: each part a button.
  function part(name, key, label, off, on, is, short = label) {
    return el(
      "button",
      {
        type: "button",
        class: `train-part${is ? "" : " train-cut"}`,
        "aria-pressed": String(is),
        "aria-label": label,
        title: is ? `Cut: ${label}` : `Put back: ${label}`,
        onclick: () => change(name, key, is ? off : on)
      },
      short
    );
  }
  const SHORT = { attention: "A", mlp: "T", conv: "C", mean: "µ" }; // where blocks are many
  const LABELS = CHOICES.find(([key]) => key === "mixing")[2];
  const kept = {}; // what stood in a place before it was cut

  function block(one, l) {
    const { name } = one,
      s = one.one,
      mixes = s.mixing !== "none";
    if (mixes) kept[name] = s.mixing;
    const maps = el("div", { class: "train-maps" });
    if (s.mixing === "attention")
      for (let h = 0; h < Number(s.heads); h++)
        maps.append(el("canvas", { width: 4, height: 4, "aria-hidden": "true" }));
    const differ = el("i"),
      many = Number(s.depth) > 2,
      mixing = mixes ? s.mixing : (kept[name] ?? "attention");
    return {
      maps: [...maps.children],
      differ,
      node: el(
        "div",
        { class: "train-block" },
        maps,
        el(
          "div",
          { class: "train-parts" },
          part(
            name,
            "mixing",
            LABELS[mixing],
            "none",
            mixing,
            mixes,
            many ? SHORT[mixing] : undefined
          ),
          part(name, "mlp", "MLP", 0, 1, Boolean(Number(s.mlp)), many ? "M" : undefined)
        ),
        el(
          "div",
          { class: "train-differ", title: `How different the tokens are after block ${l + 1}` },
          differ
        )
      )
    };
  }

  function build() {
    compare.textContent = chosen.B ? "Only A" : "Compare with a copy";
    seed.value = chosen.A.seed;
    words.replaceChildren(WORDS[chosen.A.task]);
    const who = el(
      "div",
      { class: "train-who", hidden: !chosen.B },
      "These set",
      ...["A", "B"].map((name) =>
        el(
          "button",
          {
            type: "button",
            class: `live-button train-${name}`,
            "aria-pressed": String(setting === name),
            onclick() {
              setting = name;
              build();
              draw();
            }
          },
          name
        )
      )
    );
    panel.replaceChildren(
      who,
      ...CHOICES.map(control),
      el("p", { class: "train-note" }, "• changes while it trains; all else begins anew.")
    );
    models.replaceChildren(
      ...runs.map((one) => {
        const s = one.one;
        one.picture = el("canvas", { class: "train-picture", "aria-hidden": "true" });
        one.blocks = Array.from({ length: Number(s.depth) }, (_, l) => block(one, l));
        one.score = el("b");
        one.answer = el("div", { class: "train-answer" });
        one.size = el("small");
        const images = el(
          "div",
          { class: "train-images", role: "radiogroup", "aria-label": "Image" },
          ...Array.from({ length: SHOWN }, (_, i) =>
            el(
              "button",
              {
                type: "button",
                role: "radio",
                "aria-checked": String(i === image),
                "aria-label": `Image ${i + 1}`,
                onclick() {
                  image = i;
                  build();
                  draw();
                }
              },
              el("canvas", {})
            )
          )
        );
        one.images = [...images.querySelectorAll("canvas")];
        one.picture.addEventListener("click", (event) => {
          const box = one.picture.getBoundingClientRect(),
            { grid } = one.task.shape;
          asks =
            Math.floor(((event.clientY - box.top) / box.height) * grid) * grid +
            Math.floor(((event.clientX - box.left) / box.width) * grid);
          draw();
        });
        return el(
          "div",
          { class: `train-model train-${one.name}` },
          el(
            "p",
            { class: "train-title" },
            el("b", { class: "train-letter" }, one.name),
            one.size,
            el("span", { class: "train-score" }, "held out ", one.score)
          ),
          el(
            "div",
            { class: `train-stream${Number(s.residual) ? "" : " train-broken"}` },
            el("div", { class: "train-in" }, images, one.picture),
            el(
              "div",
              { class: "train-parts train-first" },
              part(one.name, "positions", "place", "none", "learned", s.positions !== "none"),
              part(
                one.name,
                "residual",
                Number(s.residual) ? "+" : "×",
                0,
                1,
                Boolean(Number(s.residual))
              )
            ),
            ...one.blocks.map((b) => b.node),
            one.answer
          )
        );
      })
    );
  }

  // --- Drawing what changes
  function paint(canvas, grid, colour) {
    canvas.width = canvas.height = grid;
    const pen = canvas.getContext("2d");
    for (let i = 0; i < grid * grid; i++) {
      pen.fillStyle = colour(i);
      pen.fillRect(i % grid, Math.floor(i / grid), 1, 1);
    }
  }
  // The pixels of an image of the task, from its patches in a row.
  function pixels(one, i, canvas) {
    const { grid, inputs } = one.task.shape,
      { task } = chosen.A,
      channels = task === "recall" ? 3 : 1,
      side = Math.sqrt(inputs / channels),
      all = one.task.held.inputs,
      low = task === "pairs" ? 0 : -1;
    paint(canvas, grid * side, (p) => {
      const [row, column] = [Math.floor(p / (grid * side)), p % (grid * side)];
      const patch = Math.floor(row / side) * grid + Math.floor(column / side),
        at =
          (i * grid * grid + patch) * inputs + ((row % side) * side + (column % side)) * channels;
      const value = (c) =>
        Math.round(255 * Math.min(1, Math.max(0, (all[at + c] - low) / (1 - low))));
      if (channels === 3) return `rgb(${value(0)},${value(1)},${value(2)})`;
      return `color-mix(in srgb, ${ink} ${value(0) / 2.55}%, ${paper})`;
    });
  }
  let ink = "",
    paper = "";

  function draw() {
    const style = getComputedStyle(stage.root);
    ink = style.getPropertyValue("--live-ink").trim();
    paper = style.getPropertyValue("--live-soft").trim();
    counted.textContent = runs[0].run.steps.toLocaleString("en");
    for (const one of runs) {
      const { task, run, one: s } = one,
        { grid, inputs, classes, read } = task.shape,
        N = grid * grid,
        hot = style.getPropertyValue(one.name === "A" ? "--live-query" : "--live-heat").trim();
      const each = N * inputs,
        logits = run.net.forward(task.held.inputs.subarray(0, SHOWN * each), SHOWN).slice();
      one.images.forEach((canvas, i) => pixels(one, i, canvas));
      pixels(one, image, one.picture);
      one.picture.style.setProperty("--asks-row", Math.floor(asks / grid));
      run.net.maps.forEach((map, l) =>
        one.blocks[l].maps.forEach((canvas, h) => {
          const at = ((image * Number(s.heads) + h) * N + asks) * N;
          const most = Math.max(...map.subarray(at, at + N));
          paint(
            canvas,
            grid,
            (p) =>
              `color-mix(in srgb, ${hot} ${(100 * map[at + p]) / Math.max(most, 0.25)}%, ${paper})`
          );
        })
      );
      run.net.differences(image).forEach((share, l) => {
        one.blocks[l].differ.style.width = `${100 * share}%`;
      });
      const [, held] = one.points.held.at(-1);
      one.score.textContent = `${percent(held)} %`;
      one.size.textContent = ` ${run.net
        .tensors()
        .reduce((sum, t) => sum + t.values.length, 0)
        .toLocaleString("en")} weights`;
      answer(one, logits, classes, read, N);
    }
    const drawn = runs.map(({ name, points, marks }) => ({ name, points, marks }));
    accuracy.draw(drawn, ["held", "known"], runs[0].task.guess);
    take.hidden = Object.entries(WHOLE).some(([key, is]) => String(chosen.A[key]) !== String(is));
    curves.update();
    loss.draw(drawn, ["loss"], runs[0].task.guessLoss);
  }

  const COLOURS = ["#cc1a1a", "#1a991a", "#1a33cc", "#ccb31a"];
  function answer(one, logits, classes, read, N) {
    const best = (at) => {
      let most = 0;
      for (let c = 1; c < classes; c++) if (logits[at + c] > logits[at + most]) most = c;
      return most;
    };
    if (read === "each") {
      const right = Array.from({ length: N }, (_, p) => best((image * N + p) * classes));
      one.answer.replaceChildren(
        el(
          "div",
          { class: "train-colours" },
          ...right.map((c, p) => {
            const cell = el("i", {}, one.task.held.labels[image * N + p] === c ? "" : "×");
            cell.style.background = COLOURS[c];
            return cell;
          })
        ),
        el(
          "small",
          {},
          `${right.filter((c, p) => one.task.held.labels[image * N + p] === c).length} of ${N} answers right`
        )
      );
      return;
    }
    const row = logits.subarray(image * classes, (image + 1) * classes),
      top = Math.max(...row),
      sum = row.reduce((all, value) => all + Math.exp(value - top), 0);
    one.answer.replaceChildren(
      ...Array.from(row, (value, c) => {
        const bar = el("i");
        bar.style.width = `${(60 * Math.exp(value - top)) / sum}%`;
        return el(
          "p",
          { class: c === one.task.held.labels[image] ? "train-true" : "" },
          `${c} `,
          bar
        );
      })
    );
  }

  const parts = [button, step, again, compare];
  for (const one of parts) one.disabled = true;
  const ready = Promise.all([0, 1].map(() => vitbook.engine.load(PAGES, vitbook.kernel))).then(
    (both) => {
      loaded = both;
      for (const one of parts) one.disabled = false;
      if (!both[0].fast) slowly.hidden = false;
      const strange = location.hash.startsWith(MARK) ? read(location.hash) : [];
      if (strange.length) {
        unknown.textContent = `The link also says ${strange.join(", ")}, which means nothing here.`;
        unknown.hidden = false;
      }
      begin();
      onTheme(draw);
    }
  );
  return {
    ready,
    set(values) {
      for (const [key, value] of Object.entries(values)) {
        if (!knows(key, String(value))) throw new Error(`train knows no ${key} ${value}`);
        chosen.A[key] = value;
      }
      begin();
    },
    // For tests and the console: so many updates at once, and what the curves hold.
    learn(updates) {
      for (let i = 0; i < updates; i++) update();
      draw();
    },
    told: () => runs.map(({ name, run, points }) => ({ name, steps: run.steps, ...points })),
    task: () => runs[0].task,
    net: () => runs[0].run.net,
    file
  };
});

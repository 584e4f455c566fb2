// A Vision Transformer that trains in the page. The drawing is the interface: a part is a button that
// is cut or put back while it trains; a second model beside it has the same seed, data and order.
vitbook.live.figure("train", function (stage, data) {
  "use strict";
  const { board, decode, el, isStill, number, onTheme, pad, pen, svg, table } = vitbook.live;
  const { chart, percent } = vitbook.trainChart;
  const { CHOICES, START, knows, read, written } = vitbook.trainSettings;
  const PAGES = 400, // of 64 kB, for each model
    FRAME = 24, // milliseconds of work in a frame at full speed
    SHOWN = 6, // images to choose from
    WIDE = 0.13; // the pen for one's own digit, in sides of the board

  const WORDS = {
    digits: "Digits. Handwritten digits of 8 × 8 pixels, patches of 2 × 2. Which digit is it?",
    recall:
      "Recall. The white dot in a patch stands where, in the whole picture, another patch stands. Each patch answers with that patch’s colour.",
    pairs: "Matching pairs. Are the two glyphs the same?"
  };
  const arrays = {
    images: decode(data.images),
    labels: decode(data.labels),
    glyphs: decode(data.glyphs)
  };
  const MARK = "#train:"; // of an address that says the state

  // --- One model: its run, its drawing
  const chosen = { A: { ...START }, B: null };
  let loaded = [],
    session = null,
    runs = [],
    playing = false,
    speed = "even",
    image = 0,
    asks = 5,
    setting = "A",
    due = 0,
    touched = false, // then the address follows
    told = 0,
    planned = null, // the experiment that runs
    own = null; // a digit that the reader has drawn: (8, 8) from -1 to 1

  const before = []; // runs of this visit that came to an end: setting, updates, held out
  function begin() {
    if (runs[0]?.run.steps)
      before.push(
        ...runs.map(({ run, rows, said }) => [said, run.steps, `${percent(rows.at(-1).held)} %`])
      );
    session = vitbook.trainRuns.runs(chosen, loaded, arrays, planned);
    runs = session.all;
    trials.set(planned);
    shown();
  }

  function shown() {
    const { pathname, search } = location,
      { id } = planned ?? {},
      state = id ? `experiment=${id}&seed=${chosen.A.seed}` : written(chosen);
    if (touched) history.replaceState(null, "", `${pathname}${search}${MARK}${state}`);
    build();
    draw();
  }

  // True where an experiment has come to its end.
  function update() {
    const ended = session.update();
    if (planned?.cuts.some(([at]) => at === runs[0].run.steps)) shown();
    if (!ended) return false;
    play(false);
    trials.ended(session.values());
    return true;
  }
  function open(one, seed = chosen.A.seed) {
    play(false);
    planned = one;
    Object.assign(chosen, vitbook.trainRuns.starts(one, seed));
    setting = "A";
    touched = true;
    begin();
  }

  function frame(now) {
    if (!playing) return;
    if (document.hidden || now < due) return requestAnimationFrame(frame);
    const until = speed === "full" ? performance.now() + FRAME : 0;
    while (!update() && performance.now() < until);
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
        .map(({ name, run, rows }) => {
          const held = percent(rows.at(-1).held);
          return `${runs.length > 1 ? `${name}, ` : ""}${run.steps} updates, ${held} % of the held-out answers right.`;
        })
        .join(" ")
    );

  // The reader changes a part, which no experiment foresaw: in this run, or a new one begins.
  function change(name, key, value) {
    const one = chosen[name] ?? chosen.A,
      live = CHOICES.find(([known]) => known === key)?.[3];
    planned = null;
    trials.set(null);
    touched = true;
    one[key] = value;
    if (key === "task") for (const each of Object.values(chosen)) if (each) each.task = value;
    if (!live || runs[0].run.steps === 0) return begin();
    session.set(name, key, value);
    shown();
  }

  const trials = vitbook.trainExperiments(data.experiments, {
    open,
    play: () => playing || play(true)
  });

  // --- The elements
  const press = (words, onclick, more = {}) =>
    el("button", { type: "button", class: "live-button", onclick, ...more }, words);
  const button = press("Play", () => play(!playing), { class: "live-button live-first" });
  const step = press("One step", () => {
    play(false);
    update();
    draw();
    speak();
  });
  const again = press("Start again", () => {
    play(false);
    if (planned) open(planned);
    else begin();
  });
  const compare = press("Compare with a copy", () => {
    const other = chosen.A.mixing === "mean" ? "attention" : "mean";
    chosen.B = chosen.B ? null : { ...chosen.A, mixing: other };
    setting = chosen.B ? "B" : "A";
    touched = true;
    planned = null;
    begin();
  });
  const copy = press("Copy link", async () => {
    touched = true;
    shown();
    try {
      await navigator.clipboard.writeText(location.href);
      stage.say("The link to this setting is copied.");
    } catch {
      prompt("The link to this setting", location.href); // no clipboard here
    }
  });
  const WHOLE = { mixing: "attention", scaled: 1, residual: 1, norm: "before", mlp: 1 };
  function file() {
    const { run, task, one } = runs[0];
    return vitbook.training.safetensors(run.net, task.shape, task.channels, {
      ...Object.fromEntries(Object.entries(one).map(([key, value]) => [key, String(value)])),
      updates: String(run.steps)
    });
  }
  const take = press(
    "Take it out",
    () => {
      const address = URL.createObjectURL(file());
      const name = `${chosen.A.task}-${runs[0].run.steps}.safetensors`;
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    },
    { title: "The weights of A, for PyTorch" }
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
      if (planned) open(planned);
      else begin();
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
    { class: "train-bar train-first-bar" },
    button,
    step,
    again,
    el("span", { class: "train-count" }, counted, " updates")
  );
  const more = el(
    "div",
    { class: "train-bar" },
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
      runs.flatMap(({ name, rows }) =>
        rows.map(({ at, held, known, loss }) => [
          `${name}, ${at}`,
          `${percent(held)} %`,
          `${percent(known)} %`,
          loss === null ? "no update since" : number(loss, 3)
        ])
      )
  );
  const sheet = pad({
    label:
      "Board for a digit. Arrow keys move the pen, Space puts it down or lifts it, Backspace takes the last stroke back.",
    pen: WIDE,
    changed(strokes) {
      own = strokes.length ? vitbook.training.small(pen.drawn(strokes, WIDE)) : null;
      image = SHOWN - 1;
      build();
      draw();
    },
    said: stage.say
  });
  const drawn = el(
    "details",
    { class: "live-table train-own" },
    el("summary", {}, "Draw your own digit"),
    sheet.node,
    press("Clear", () => sheet.set([]))
  );
  const earlier = table(
    "Your runs",
    ["Setting, as a link says it", "updates", "held out"],
    () => before
  );
  stage.box.append(
    el(
      "div",
      { class: "train" },
      el("div", {}, trials.node, trials.asks, words, slowly, unknown),
      el("div", { class: "train-top" }, bar, more),
      panel,
      models,
      el(
        "div",
        { class: "train-charts" },
        accuracy.node,
        loss.node,
        curves.node,
        earlier.node,
        drawn
      )
    )
  );

  function control([key, label, list, live]) {
    const one = chosen[setting] ?? chosen.A;
    const select = el(
      "select",
      {
        class: "train-select",
        "data-place": key,
        onchange: () => change(chosen[setting] ? setting : "A", key, select.value)
      },
      ...Object.entries(list).map(([value, text]) =>
        el("option", { value, selected: String(one[key]) === value }, text)
      )
    );
    return el("label", { class: live ? "train-live" : "" }, label, select);
  }

  // The drawing of a model: each part a button.
  function part(name, at, key, label, off, on, is, short = label) {
    return el(
      "button",
      {
        type: "button",
        class: `train-part${is ? "" : " train-cut"}`,
        "data-place": `${name} ${at} ${key}`,
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
        maps.append(
          el(
            "span",
            { class: "train-map", "aria-hidden": "true" },
            el("canvas", {}),
            svg("svg", {})
          )
        );
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
            l,
            "mixing",
            LABELS[mixing],
            "none",
            mixing,
            mixes,
            many ? SHORT[mixing] : undefined
          ),
          part(name, l, "mlp", "MLP", 0, 1, Boolean(Number(s.mlp)), many ? "M" : undefined)
        ),
        el(
          "div",
          { class: "train-differ", title: `How different the tokens are after block ${l + 1}` },
          differ
        )
      )
    };
  }

  // Whoever works with keys finds the place again when the elements are made anew.
  function build() {
    const place =
      stage.box.contains(document.activeElement) && document.activeElement.dataset.place;
    make();
    pictures();
    if (place) stage.box.querySelector(`[data-place="${place}"]`)?.focus();
  }

  function make() {
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
            "data-place": `set ${name}`,
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
        one.board = board({
          rows: one.task.shape.grid,
          columns: one.task.shape.grid,
          label: "The patch that asks",
          pick(patch) {
            asks = patch;
            draw();
          }
        });
        one.board.node.classList.add("train-picture");
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
                "data-place": `${one.name} image ${i}`,
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
            el("div", { class: "train-in" }, images, one.board.node),
            el(
              "div",
              { class: "train-parts train-first" },
              part(one.name, "", "positions", "place", "none", "learned", s.positions !== "none"),
              part(
                one.name,
                "",
                "residual",
                "residual stream",
                0,
                1,
                Boolean(Number(s.residual)),
                Number(s.residual) ? "+" : "×"
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
  // A frame around the patch that asks; a dashed one around the patch that it names.
  function frames(layer, grid, names) {
    const frame = (patch, kind) =>
      svg("rect", {
        x: patch % grid,
        y: Math.floor(patch / grid),
        width: 1,
        height: 1,
        class: kind
      });
    layer.setAttribute("viewBox", `0 0 ${grid} ${grid}`);
    layer.replaceChildren(
      frame(asks, "train-asks"),
      ...(names === undefined ? [] : [frame(names, "train-named")])
    );
  }

  // The images to choose from, patches in a row: held-out ones, the last of them the reader's own.
  const isOwn = ({ task }) => own && task.patches && image === SHOWN - 1;
  function pictures() {
    const style = getComputedStyle(stage.root);
    ink = style.getPropertyValue("--live-ink").trim();
    paper = style.getPropertyValue("--live-soft").trim();
    for (const one of runs) {
      const { held, patches, shape } = one.task;
      one.inputs = held.inputs.slice(0, SHOWN * shape.grid ** 2 * shape.inputs);
      if (own && patches) one.inputs.set(patches(own), (SHOWN - 1) * own.length);
      one.images.forEach((canvas, i) => pixels(one, i, canvas));
      pixels(one, image, one.board.node.querySelector("canvas"));
    }
  }

  // The pixels of one of them.
  function pixels(one, i, canvas) {
    const { channels, darkest: low } = one.task,
      { grid, inputs } = one.task.shape,
      side = Math.sqrt(inputs / channels),
      all = one.inputs;
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
    counted.textContent = runs[0].run.steps.toLocaleString("en");
    for (const one of runs) {
      const { task, run, one: s } = one,
        { grid, classes, read } = task.shape,
        N = grid * grid,
        hot = style.getPropertyValue(one.name === "A" ? "--live-query" : "--live-heat").trim();
      const logits = run.net.forward(one.inputs, SHOWN).slice();
      one.board.choose(asks);
      const names = task.held.targets?.[image * N + asks]; // the patch it ought to look at
      frames(one.board.layer, grid, names);
      run.net.maps.forEach((map, l) =>
        one.blocks[l].maps.forEach((cell, h) => {
          frames(cell.querySelector("svg"), grid, names);
          const at = ((image * Number(s.heads) + h) * N + asks) * N;
          const most = Math.max(...map.subarray(at, at + N));
          paint(
            cell.querySelector("canvas"),
            grid,
            (p) =>
              `color-mix(in srgb, ${hot} ${(100 * map[at + p]) / Math.max(most, 0.25)}%, ${paper})`
          );
        })
      );
      run.net.differences(image).forEach((share, l) => {
        one.blocks[l].differ.style.width = `${100 * share}%`;
      });
      one.score.textContent = `${percent(one.rows.at(-1).held)} %`;
      one.size.textContent = ` ${run.net.weights.toLocaleString("en")} weights`;
      answer(one, logits, classes, read, N);
    }
    const lines = session.curves();
    accuracy.draw(lines, ["held", "known"], runs[0].task.guess);
    take.hidden = Object.entries(WHOLE).some(([key, is]) => String(chosen.A[key]) !== String(is));
    curves.update();
    earlier.update();
    drawn.hidden = !runs[0].task.patches;
    loss.draw(lines, ["loss"], runs[0].task.guessLoss);
  }

  const COLOURS = vitbook.training.COLORS.map(
    (rgb) => `rgb(${rgb.map((share) => Math.round(255 * share))})`
  );
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
          { class: !isOwn(one) && c === one.task.held.labels[image] ? "train-true" : "" },
          `${c} `,
          bar
        );
      })
    );
  }

  // What an address says: an experiment, or a setting of one's own.
  function arrive(said) {
    const asked = new URLSearchParams(said),
      one = data.experiments.find(({ id }) => id === asked.get("experiment"));
    if (one) asked.delete("experiment");
    const { strange, A, B } = read(String(asked));
    if (one) open(one, A.seed);
    else {
      Object.assign(chosen, { A, B });
      begin();
    }
    return { strange };
  }

  const parts = [button, step, again, compare];
  for (const one of parts) one.disabled = true;
  trials.node.inert = true;
  const ready = Promise.all([0, 1].map(() => vitbook.engine.load(PAGES, vitbook.kernel))).then(
    (both) => {
      loaded = both;
      for (const one of parts) one.disabled = false;
      trials.node.inert = false;
      if (!both[0].fast) slowly.hidden = false;
      const said = location.hash.startsWith(MARK) ? location.hash.slice(MARK.length) : "";
      const { strange } = arrive(said);
      if (strange.length) {
        unknown.textContent = `The link also says ${strange.join(", ")}, which means nothing here.`;
        unknown.hidden = false;
      }
      onTheme(() => {
        pictures();
        draw();
      });
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
    told: () => runs.map(({ name, run, rows }) => ({ name, steps: run.steps, rows })),
    // All of an experiment at once, with a seed: what it reads, in percent.
    trial(id, seed, choosing = false) {
      const one = data.experiments.find((each) => each.id === id),
        { runs, starts } = vitbook.trainRuns,
        session = runs(starts(one, seed), loaded, arrays, one, { choosing, drawn: false });
      while (!session.update());
      begin(); // its memory was used
      return session.values();
    },
    task: () => runs[0].task,
    net: () => runs[0].run.net,
    file
  };
});

// A Vision Transformer that trains in the page. The drawing is the interface: a part is a button that
// is cut or put back while it trains; a second model beside it has the same seed, data and order.
vitbook.live.figure("train", function (stage, data) {
  "use strict";
  if (!vitbook.trainWork) document.head.append(vitbook.live.el("script", {}, data.scripts));
  const { board, decode, el, isStill, number, onTheme, pad, pen, renew, svg, table, word } =
    vitbook.live;
  const { chart, percent } = vitbook.trainChart;
  const { CHOICES, START, knows, read, written } = vitbook.trainSettings;
  const { employ, SHOWN } = vitbook.trainWork;
  const WIDE = 0.13; // the pen for one's own digit, in sides of the board

  const DIGITS = (size) =>
    `Handwritten digits of 8 × 8 pixels, patches of ${size} × ${size}. Which digit is it?`;
  const WORDS = {
    digits: `Digits. ${DIGITS(2)}`,
    large: `Large patches. ${DIGITS(4)}`,
    lots: `Labels by lot. ${DIGITS(2)} For the training images a lot has decided; the held-out ones keep their true labels.`,
    recall:
      "Recall. The white dot in a patch stands where, in the whole picture, another patch stands. Each patch answers with that patch’s colour.",
    pairs: "Matching pairs. Are the two glyphs the same?"
  };
  const OVER = "The numbers ran over: infinite, or none. Start again.";
  const HINT = "Click a part: it is cut, in every block.";
  const DOES = {
    positions: "Adds to each patch a vector that stands for its place.",
    residual: "Each part adds to the stream; without it, a part replaces what came in.",
    attention: "Each patch takes a mean of all, with weights that the picture decides.",
    mlp: "Mixes the patches, in the same way for every picture.",
    conv: "Each patch takes from the patches around it, alike everywhere.",
    mean: "Each patch takes the plain mean of all patches.",
    MLP: "A network that works on each patch alone."
  };
  const arrays = {
    images: decode(data.images),
    labels: decode(data.labels),
    glyphs: decode(data.glyphs)
  };
  const MARK = "#train:"; // of an address that says the state

  // --- What is asked of the one that trains (train-work.js), and its last answer
  const chosen = { A: { ...START }, B: null };
  const employed = employ(arrays, data.scripts),
    ask = async (...question) => (await employed)(...question);
  let runs = [], // what there is to draw of each, and its elements
    lines = [], // as a chart draws them
    round = 0, // an answer to a question from before it is too late
    playing = false,
    going = false,
    speed = "even",
    image = 0,
    asks = 5,
    whole = false, // the maps show all patches that ask, a row for each
    setting = "A",
    touched = false, // then the address follows
    planned = null, // the experiment that runs
    own = null; // a digit that the reader has drawn: (8, 8) from -1 to 1

  // Ask, and draw the answer.
  async function tell(...question) {
    const mine = round,
      answer = await ask(...question);
    if (mine !== round) return;
    take(answer);
    if (answer.anew) shown();
    else draw();
    if (!answer.values) return;
    play(false);
    trials.ended(answer.values, chosen.A.seed);
  }
  function take({ runs: seen, curves }) {
    lines = curves;
    seen.forEach((now, i) => Object.assign(runs[i], now));
    for (const { name, one } of seen) chosen[name] = one;
  }

  // In which settings one model is not another, in words.
  const named = (one, than = START) =>
    CHOICES.filter(([key]) => String(one[key]) !== String(than[key]))
      .map(([key, label, list]) => `${label}: ${list[one[key]]}`)
      .join(", ");

  const before = []; // runs of this visit that came to an end: held out, updates, setting
  async function begin() {
    const mine = (round += 1);
    if (runs[0]?.steps)
      for (const { words, marks, steps, rows } of runs) {
        const changed = marks.length ? `, changed at ${marks.join(", ")}` : "";
        const held = `${percent(rows.at(-1).held)} %`;
        before.push([before.length + 1, held, steps, words + changed]);
      }
    const answer = await ask("begin", chosen, planned);
    if (mine !== round) return;
    slowly.hidden = answer.fast;
    runs = answer.runs.map(() => ({}));
    take(answer);
    for (const { name, one } of answer.runs) {
      const said = planned ? planned.name : named(one) || "the first model",
        of = runs.length > 1 ? `, ${name}` : "";
      runs.find((run) => run.name === name).words = `${said}${of}, seed ${one.seed}`;
    }
    asks = Math.min(asks, runs[0].task.shape.grid ** 2 - 1); // a task may have fewer patches
    plan();
    shown();
  }

  function plan() {
    trials.set(planned);
    all.classList.toggle("train-asking", Boolean(planned));
  }

  function shown() {
    const { pathname, search } = location,
      { A, B } = chosen,
      copied = B && !named(B, A) ? `&B.mixing=${B.mixing}` : "", // an exact copy is a B, too
      state = planned ? `experiment=${planned.id}&seed=${A.seed}` : written(chosen) + copied;
    if (touched) history.replaceState(null, "", `${pathname}${search}${MARK}${state}`);
    build();
    draw();
  }

  function open(one, seed = chosen.A.seed) {
    play(false);
    if (one !== planned && speed === "slow") pace.value = speed = "even"; // to wait for minutes
    planned = one;
    Object.assign(chosen, vitbook.trainRuns.starts(one, seed));
    setting = "A";
    touched = true;
    return begin();
  }

  function play(on) {
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    if (on) go();
    else speak();
  }
  async function go() {
    if (going) return;
    going = true;
    for (let due = 0, told = 0; ;) {
      const now = await new Promise(requestAnimationFrame);
      if (!playing) break;
      if (document.hidden || now < due) continue;
      const slow = speed === "slow",
        rare = isStill() && !slow; // what changes changes once a second, by as much
      due = slow ? now + 250 : rare ? now + 1000 : 0;
      await tell("train", speed === "full" ? Infinity : rare ? 60 : 1, ...(rare ? [900] : []));
      if (now - told > 10000) {
        told = now; // for who listens: not every step
        speak();
      }
    }
    going = false;
  }

  const speak = () =>
    stage.say(
      runs
        .map(({ name, steps, rows, over }) => {
          const held = percent(rows.at(-1).held);
          return `${runs.length > 1 ? `${name}, ` : ""}${steps} updates, ${held} % of the held-out answers right.${over ? ` ${OVER}` : ""}`;
        })
        .join(" ")
    );

  // The reader changes a part, which no experiment foresaw: in this run, or a new one begins.
  function change(name, key, value) {
    const one = chosen[name] ?? chosen.A,
      live = CHOICES.find(([known]) => known === key)?.[3];
    const { top } = models.getBoundingClientRect();
    planned = null;
    plan();
    scrollBy(0, models.getBoundingClientRect().top - top); // the question goes, the finger stays
    touched = true;
    one[key] = value;
    if (key === "task") for (const each of Object.values(chosen)) if (each) each.task = value;
    if (!live || runs[0].steps === 0) return begin();
    round += 1;
    return tell("set", name, key, value);
  }

  const trials = vitbook.trainExperiments(data.experiments, {
    open,
    play() {
      if (!playing) play(true);
      trials.asks.scrollIntoView({ behavior: isStill() ? "instant" : "smooth", block: "start" });
    }
  });

  // --- The elements
  const press = (words, onclick, more = {}) =>
    el("button", { type: "button", class: "live-button", onclick, ...more }, words);
  const button = press("Play", () => play(!playing), { class: "live-button live-first" });
  const step = press("One step", () => {
    play(false);
    tell("train", 1).then(speak);
  });
  const again = press("Start again", () => {
    play(false);
    if (planned) open(planned);
    else begin();
  });
  const other = () => (chosen.A.mixing === "mean" ? "attention" : "mean");
  const compare = press("", () => {
    chosen.B = chosen.B ? null : { ...chosen.A, mixing: other() };
    setting = chosen.B ? "B" : "A";
    touched = true;
    planned = null;
    begin();
  });
  const first = press(
    "Back to the first model",
    () => {
      play(false);
      planned = null;
      Object.assign(chosen, { A: { ...START }, B: null });
      setting = "A";
      touched = true;
      begin();
    },
    { class: "train-name" }
  );
  function copies(label, what, text) {
    const button = press(label, async () => {
      const told = text();
      try {
        await navigator.clipboard.writeText(told);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = label), 2000);
        stage.say(`${what} is copied.`);
      } catch {
        prompt(what, told); // no clipboard here
      }
    });
    return button;
  }
  const copy = copies("Copy link", "The link to this setting", () => {
    touched = true;
    shown();
    return location.href;
  });
  const WHOLE = { mixing: "attention", scaled: 1, residual: 1, norm: "before", mlp: 1 };
  const out = press(
    "Take it out",
    async () => {
      const address = URL.createObjectURL(await ask("file"));
      const name = `${chosen.A.task}-${runs[0].steps}.safetensors`;
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 1000);
    },
    { title: "The weights of A, for PyTorch" }
  );
  const every = press(
    "All patches",
    () => {
      whole = !whole;
      every.textContent = whole ? "One patch" : "All patches";
      draw();
    },
    { title: "What the maps show: what one patch asks, or a row for each" }
  );
  const counted = el("b", {}, "0"),
    unit = el("span", {}, "updates");
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
    differs = el("p", { class: "train-differs" }),
    hint = el("p", { class: "train-note train-hint" }, HINT),
    slowly = el(
      "p",
      { class: "train-note", hidden: true },
      `This browser runs the plain path: the same numbers take about ${data.slower} times as long.`
    );
  const unknown = el("p", { class: "train-note", role: "status", hidden: true });
  const panel = el("div", { class: "train-panel" });
  const models = el("div", { class: "train-models" });
  for (const kind of ["pointerover", "focusin"])
    models.addEventListener(kind, ({ target }) => {
      hint.textContent = target.closest(".train-part")?.title ?? HINT;
    });
  const accuracy = chart("Accuracy", "in percent, thin as in training", 1, percent);
  const loss = chart("Loss", "in training, nats", null, (value) =>
    value < 1e4 ? number(value, 1) : value.toExponential(0)
  );
  const bar = el(
    "div",
    { class: "train-bar train-first-bar" },
    button,
    step,
    again,
    el("span", { class: "train-count" }, counted, " ", unit)
  );
  const more = el(
    "div",
    { class: "train-bar train-more" },
    pace,
    el("label", {}, "Seed ", seed),
    every,
    compare,
    copy,
    out
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
          loss === null ? "no update since" : Number.isFinite(loss) ? number(loss, 3) : "ran over"
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
      tell("draw", own);
    },
    said: stage.say
  });
  const beside = el("div", { class: "train-beside" }),
    lots = el("p", { class: "train-note" }, "It learns labels drawn by lot: expect no digits.");
  const drawn = el(
    "details",
    { class: "live-table train-own", ontoggle: () => runs.length && draw() },
    el("summary", {}, "Draw your own digit"),
    el("div", { class: "train-drawn" }, sheet.node, beside),
    lots,
    press("Clear", () => sheet.set([]))
  );
  const columns = ["Run", "held out", "updates", "model"],
    earlier = table("Your runs", columns, () => before);
  earlier.node.append(
    copies("Copy table", "The table of your runs", () =>
      [columns, ...before].map((row) => row.join("\t")).join("\n")
    )
  );
  const all = el(
    "div",
    { class: "train" },
    trials.node,
    trials.asks,
    accuracy.node,
    el("div", { class: "train-say" }, words, differs, slowly, unknown, hint),
    bar,
    models,
    more,
    el("div", { class: "train-charts" }, loss.node, curves.node, earlier.node, drawn),
    panel
  );
  stage.box.append(all);

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
    const does = DOES[key === "mixing" ? on : key === "mlp" ? "MLP" : key];
    return el(
      "button",
      {
        type: "button",
        class: `train-part${is ? "" : " train-cut"}`,
        "data-place": `${name} ${at} ${key}`,
        "aria-pressed": String(is),
        "aria-label": label,
        title: `${is ? "Cut" : "Put back"}: ${label}. ${does}`,
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
    if (s.mixing === "attention") one.room = Math.ceil(s.heads / 2);
    if (one.room) maps.style.setProperty("--rows", one.room); // their room stays after a cut
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
    const than = LABELS[other()];
    compare.textContent = chosen.B ? "Only A" : `Compare with ${than}`;
    compare.title = chosen.B ? "" : "A and B begin anew, with the same images in the same order";
    const [news, newer] = [named(chosen.A), chosen.B && named(chosen.B, chosen.A)];
    differs.replaceChildren(
      news ? `A differs from the first model: ${news}. ` : "A is the first model. ",
      newer ? `B differs from A: ${newer}. ` : newer === "" ? "B is as A. " : "",
      news || chosen.B ? first : ""
    );
    if (document.activeElement !== seed) seed.value = chosen.A.seed; // else it is being typed
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
        [one.score, one.known] = [el("b"), el("b")];
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
            s.task === "lots"
              ? el("span", { class: "train-known" }, "in training ", one.known)
              : "",
            el("span", { class: "train-score" }, "held out ", one.score)
          ),
          el(
            "div",
            {
              class: `train-stream${Number(s.residual) ? "" : " train-broken"}${s.depth > 2 ? " train-many" : ""}`
            },
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
                "residual"
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
    if (canvas.width !== grid || canvas.height !== grid) canvas.width = canvas.height = grid;
    const pen = canvas.getContext("2d");
    for (let i = 0, last = null; i < grid * grid; i++) {
      const now = colour(i);
      if (now !== last) pen.fillStyle = last = now;
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
    renew(layer, `${whole} ${grid} ${asks} ${names}`, () => {
      layer.setAttribute("viewBox", `0 0 ${grid} ${grid}`);
      if (whole) return [];
      return [
        frame(asks, "train-asks"),
        ...(names === undefined ? [] : [frame(names, "train-named")])
      ];
    });
  }

  const shades = (colour) =>
    Array.from({ length: 51 }, (_, i) => `color-mix(in srgb, ${colour} ${2 * i}%, ${paper})`);
  function pictures() {
    const style = getComputedStyle(stage.root);
    ink = style.getPropertyValue("--live-ink").trim();
    paper = style.getPropertyValue("--live-soft").trim();
    hot = {
      A: shades(style.getPropertyValue("--live-query").trim()),
      B: shades(style.getPropertyValue("--live-heat").trim())
    };
    for (const one of runs) {
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
  let ink = "", // read once: a question for a style in mid-drawing makes the browser lay out the page
    paper = "",
    hot = {};

  function hide(node, is) {
    if (node.hidden !== is) node.hidden = is;
  }
  function draw() {
    const { steps } = runs[0],
      of = planned && steps <= planned.until ? `of ${planned.until} ` : "";
    word(counted, steps.toLocaleString("en"));
    word(unit, `${of}updates`);
    for (const one of runs) {
      const { task, one: s } = one,
        { grid, classes, read } = task.shape,
        N = grid * grid;
      one.board.choose(asks);
      const names = task.targets?.[image * N + asks]; // the patch it ought to look at
      frames(one.board.layer, grid, names);
      one.maps.forEach((map, l) =>
        one.blocks[l].maps.forEach((cell, h) => {
          frames(cell.querySelector("svg"), grid, names);
          const side = whole ? N : grid,
            at = ((image * Number(s.heads) + h) * N + (whole ? 0 : asks)) * N,
            cells = map.subarray(at, at + side * side),
            most = Math.max(0.25, ...cells);
          paint(
            cell.querySelector("canvas"),
            side,
            (p) => hot[one.name][Math.round((50 * cells[p]) / most) || 0]
          );
        })
      );
      one.differences[image].forEach((share, l) => {
        one.blocks[l].differ.style.transform = `scaleX(${share || 0})`;
      });
      const { held, known } = one.rows.at(-1);
      word(one.score, `${percent(held)} %`);
      word(one.known, `${percent(known)} %`);
      word(one.size, ` ${one.weights.toLocaleString("en")} weights`);
      answer(one, classes, read, N);
    }
    accuracy.draw(lines, ["held", "known"], runs[0].task.guess);
    const parted = ([key, is]) => String(chosen.A[key]) !== String(is);
    hide(out, Object.entries(WHOLE).some(parted));
    curves.update();
    earlier.update();
    hide(drawn, !runs[0].task.drawable);
    hide(lots, chosen.A.task !== "lots");
    const shown = drawn.open && !drawn.hidden ? runs : [];
    beside.style.visibility = own ? "" : "hidden"; // their room is kept: the board stays under the pen
    renew(beside, String(shown.map(({ name }) => name)), () =>
      shown.map(({ name }) => el("div", { class: `train-answer train-${name}` }))
    );
    shown.forEach((one, i) => shares(beside.children[i], one, SHOWN - 1));
    loss.draw(lines, ["loss"], runs[0].task.guessLoss);
  }

  const COLOURS = vitbook.training.COLORS.map(
    (rgb) => `rgb(${rgb.map((share) => Math.round(255 * share))})`
  );
  function answer(one, classes, read, N) {
    const { logits, over } = one;
    if (over) return renew(one.answer, OVER, () => [el("p", { class: "train-over" }, OVER)]);
    if (read !== "each") return shares(one.answer, one, image);
    const best = (at) => {
      let most = 0;
      for (let c = 1; c < classes; c++) if (logits[at + c] > logits[at + most]) most = c;
      return most;
    };
    const found = Array.from({ length: N }, (_, p) => best((image * N + p) * classes)),
      right = found.map((c, p) => one.task.labels[image * N + p] === c);
    renew(one.answer, `${found}, ${right}`, () => [
      el(
        "div",
        { class: "train-colours" },
        ...found.map((c, p) => {
          const cell = el("i", {}, right[p] ? "" : "×");
          cell.style.background = COLOURS[c];
          return cell;
        })
      ),
      el("small", {}, `${right.filter(Boolean).length} of ${N} answers right`)
    ]);
  }

  // The answer to an image, a bar for each class. Their lengths cost no layout.
  function shares(box, one, i) {
    const { classes } = one.task.shape,
      row = one.logits.subarray(i * classes, (i + 1) * classes),
      top = Math.max(...row),
      sum = row.reduce((all, value) => all + Math.exp(value - top), 0),
      truth = own && one.task.drawable && i === SHOWN - 1 ? null : one.task.labels[i];
    renew(box, `${classes} ${truth}`, () =>
      Array.from(row, (_, c) =>
        el("p", { class: c === truth ? "train-true" : "" }, `${c} `, el("i"))
      )
    );
    row.forEach((value, c) => {
      box.children[c].lastChild.style.transform = `scaleX(${Math.exp(value - top) / sum})`;
    });
  }

  // What an address says: an experiment, or a setting of one's own.
  async function arrive(said) {
    const asked = new URLSearchParams(said),
      one = data.experiments.find(({ id }) => id === asked.get("experiment"));
    if (one) asked.delete("experiment");
    const { strange, A, B } = read(String(asked));
    if (!one) Object.assign(chosen, { A, B });
    await (one ? open(one, A.seed) : begin());
    if (!strange.length) return;
    unknown.textContent = `The link also says ${strange.join(", ")}, which means nothing here.`;
    unknown.hidden = false;
  }

  const parts = [button, step, again, compare];
  for (const one of parts) one.disabled = true;
  trials.node.inert = true;
  const said = location.hash.startsWith(MARK) ? location.hash.slice(MARK.length) : "";
  const ready = arrive(said).then(() => {
    for (const one of parts) one.disabled = false;
    trials.node.inert = false;
    onTheme(() => {
      pictures();
      draw();
    });
  });
  return {
    ready,
    set(values) {
      for (const [key, value] of Object.entries(values)) {
        if (!knows(key, String(value))) throw new Error(`train knows no ${key} ${value}`);
        chosen.A[key] = value;
      }
      return begin();
    },
    // For tests, the console and train.py: so many updates at once; what is seen of all runs; all of
    // an experiment at once, with a seed: what it reads, in percent.
    learn: (updates) => tell("train", updates, Infinity),
    async told() {
      await tell("look");
      return runs.map(({ name, steps, rows, task, logits, inputs }) => {
        return { name, steps, rows, task, logits: [...logits], inputs: [...inputs] };
      });
    },
    async trial(id, seed, choosing = false) {
      const one = data.experiments.find((each) => each.id === id),
        found = await ask("trial", one, seed, choosing);
      await begin(); // its memory was used
      return found;
    },
    ask
  };
});

// Sixteen keys on the histogram of q · k, and a line from each to its bar. It asks first, with a ring
// on the largest bar; then the reader widens the vectors, divides by the root, and draws others.
vitbook.live.figure("softmax", function (stage, data) {
  "use strict";

  const { decodeAll, drag, el, handle, isStill, number, svg, table } = vitbook.live;
  const { scores, counts, typical } = decodeAll(data.arrays),
    { widths } = data;
  const KEYS = 16,
    DRAWS = scores.length / KEYS / widths.length,
    BINS = counts.length / widths.length;
  const START = widths.indexOf(4),
    ASKED = widths.length - 1,
    NEAR = 0.1,
    FIRST = 0.7; // where the ring stands first
  const ID = stage.root.dataset.predict,
    here = { answers: {} };
  const kept = globalThis.kept ?? {
    load: () => here,
    change(edit) {
      edit(here);
      sync();
    }
  };
  const SHOWN = 48,
    EDGE = 4; // scores on the axis; the histogram ends at four roots of d
  const TOP = 24,
    AXIS = 98,
    BARS = 186,
    FOOT = 266; // heights in the drawing, in pixels
  const CASE = { at: ASKED, divided: false, draw: 0 },
    state = { ...CASE, at: START };
  let guess = null,
    moved = false,
    open = false,
    skipped = false,
    tried = false,
    last = { kind: "start" };

  // The scores in their order, and their softmax.
  function find({ at, divided, draw }) {
    const by = divided ? Math.sqrt(widths[at]) : 1;
    const given = Array.from(
      { length: KEYS },
      (_, key) => scores[(draw * KEYS + key) * widths.length + at] / by
    ).toSorted((a, b) => a - b);
    const raised = given.map((s) => Math.exp(s - given[KEYS - 1])),
      sum = raised.reduce((a, b) => a + b, 0);
    return {
      given,
      weights: raised.map((one) => one / sum),
      size: typical[at] / by,
      edge: (EDGE * Math.sqrt(widths[at])) / by
    };
  }
  const best = (found) => found.weights[KEYS - 1];

  const share = (weight) => number(weight, 2),
    size = (value) => `±${number(value, value < 9.95 ? 1 : 0)}`;
  const italic = (word) => el("i", {}, word);
  const strong = (words) => el("b", {}, words),
    of = (d) => `${d} ${d === 1 ? "number" : "numbers"}`;
  const value = (words) => Number(words.replace("±", ""));
  const change = (from, to) =>
    from === to
      ? `is still ${to}`
      : `${value(to) > value(from) ? "grew" : "fell"} from ${from} to ${to}`;
  function lead({ given }) {
    const by = number(given[KEYS - 1] - given[KEYS - 2], 2),
      left = Math.exp(-Number(by));
    return [
      `The best key leads the next by ${by}: the next gets e`,
      el("sup", {}, `−${by}`),
      left < 0.0001 ? ", less than 0.0001," : ` = ${number(left, left < 0.01 ? 4 : 2)}`,
      " of its weight."
    ];
  }
  function told() {
    const { kind, before } = last,
      d = widths[state.at];
    if (!open)
      return ["A head compares two vectors number by number: here 4 numbers, in a common ViT 64."];
    const sizes = before && change(size(before.size), size(now.size)),
      most = before && change(share(best(before)), share(best(now)));
    if (kind === "asked") {
      return [
        "You said ",
        strong(share(guess)),
        ", it is ",
        strong(share(best(now))),
        `. From 4 to ${d} numbers a typical score ${sizes}. `,
        ...lead(now),
        " ",
        takeBack
      ];
    }
    if (kind === "wide" && last.from !== d)
      return [
        `From ${last.from} to ${of(d)} a typical score ${sizes}, the largest weight ${most}. `,
        ...lead(now)
      ];
    if (kind === "divided")
      return [
        state.divided
          ? `Divided by √${d} = ${number(Math.sqrt(d), Number.isInteger(Math.sqrt(d)) ? 0 : 2)}`
          : "Not divided",
        `, a typical score ${sizes}, and the largest weight ${most}.`
      ];
    if (kind === "drawn") {
      const all = Array.from({ length: DRAWS }, (_, draw) =>
        best(find({ ...state, draw }))
      ).toSorted((a, b) => a - b);
      return [
        `Another query, sixteen other keys: the largest weight ${most}. In ${DRAWS} draws it lies between ${share(all[0])} and ${share(all[DRAWS - 1])} here.`
      ];
    }
    return [
      `At ${of(d)} a typical score is ${size(now.size)}, and the largest weight ${share(best(now))}. `,
      ...lead(now)
    ];
  }
  function todo() {
    if (!open)
      return [
        "With 4 numbers the best of 16 keys gets ",
        strong(share(best(now))),
        ". How much will the best get with ",
        strong("256"),
        moved ? "? Keep your guess." : "? Drag the ring."
      ];
    if (state.divided)
      return tried
        ? ["One query is one sample: take another draw."]
        : ["Now change ", italic("d"), " again. Does the largest weight follow?"];
    if (state.at < ASKED) return ["Widen the vectors to 256 numbers."];
    return [
      best(now) < 0.9 ? "No key takes everything here" : "One key takes nearly everything",
      ". Now divide the scores by √",
      italic("d"),
      "."
    ];
  }

  const picture = svg("svg", { "aria-hidden": "true", height: FOOT + 6 });
  const add = (tag, kind, more) =>
      picture.appendChild(svg(tag, { class: `softmax-${kind}`, ...more })),
    each = (...one) => Array.from({ length: KEYS }, () => add(...one));
  const pile = add("path", "pile"),
    axis = add("path", "axis"),
    reach = add("path", "reach"),
    pairs = add("text", "note"),
    reached = add("text", "strong");
  const room = each("rect", "room"),
    fills = each("rect", "fill"),
    lines = each("path", "line"),
    centred = { "text-anchor": "middle" };
  const ticks = [-40, -20, 0, 20, 40].map((at) => [at, add("text", "tick", centred)]);
  for (const [at, node] of ticks) node.textContent = number(at, 0);
  const dots = each("circle", "dot", { r: 4.5 }),
    marks = each("path", "mark"),
    most = add("text", "strong", centred);
  const ring = el("div", {
    class: "live-handle softmax-ring",
    role: "slider",
    "aria-label": "Your guess",
    "aria-orientation": "vertical",
    "aria-valuemin": 0,
    "aria-valuemax": 1
  });
  const said = el("span", { class: "softmax-said", "aria-hidden": "true" }),
    column = el("div", { class: "softmax-column" });
  const plot = el("div", { class: "softmax-plot" }, picture, column, said, ring);

  const put = (node, values) => Object.entries(values).forEach((one) => node.setAttribute(...one));
  function paint(found, before, at) {
    const W = plot.clientWidth || 600,
      step = W / KEYS,
      wide = Math.min(32, 0.55 * step),
      x = (s) => W / 2 + (s / SHOWN) * (W / 2 - 8);
    const height = (w) => w * (FOOT - BARS),
      here = counts.subarray(at * BINS, (at + 1) * BINS),
      bin = (2 * found.edge) / BINS;
    picture.setAttribute("width", W);
    const stairs = [...here]
      .map((count, i) => [i * bin - found.edge, AXIS - (count / 255) * (AXIS - TOP)])
      .filter(([s]) => s >= -SHOWN && s + bin <= SHOWN);
    put(pile, {
      d: `M${x(stairs[0][0])} ${AXIS}${stairs.map(([s, y]) => `V${y}H${x(s + bin)}`).join("")}V${AXIS}Z`
    });
    put(axis, { d: `M0 ${AXIS}H${W}` });
    put(reach, { d: `M${x(-found.size)} 6v10m0-5H${x(found.size)}m0-5v10` });
    put(reached, { x: x(found.size) + 8, y: 16 });
    put(pairs, { x: 0, y: 16 });
    for (const [s, node] of ticks) put(node, { x: x(s), y: AXIS + 19 });
    found.given.forEach((s, i) => {
      const middle = (i + 0.5) * step,
        w = found.weights[i];
      const tall = Math.max(1.5, height(w)),
        lies = { x: middle - wide / 2, width: wide };
      put(room[i], { ...lies, y: BARS, height: FOOT - BARS });
      put(fills[i], { ...lies, y: FOOT - tall, height: tall });
      put(dots[i], { cx: x(s), cy: AXIS });
      put(lines[i], {
        d: `M${x(s)} ${AXIS + 5}C${x(s)} ${AXIS + 50} ${middle} ${BARS - 62} ${middle} ${BARS - (i < KEYS - 1 ? 3 : 36)}`
      });
      put(marks[i], {
        d: before ? `M${middle - wide / 2 - 3} ${FOOT - height(before.weights[i])}h${wide + 6}` : ""
      });
    });
    put(most, { x: W - step / 2, y: BARS - 22 });
    for (const node of [ring, column]) node.style.left = `${W - step / 2}px`;
    said.style.right = `${step / 2 + 22}px`;
  }

  const keep = el("button", {
    type: "button",
    class: "live-button live-first",
    onclick: () => look()
  });
  const sure = [
    [50, "a guess"],
    [70, "fairly"],
    [99, "certain"]
  ].map(([level, words]) =>
    el("button", { type: "button", class: "live-button", onclick: () => look(level) }, words)
  );
  const surely = el(
    "span",
    { class: "softmax-sure", role: "group", "aria-label": "Say how sure you are, and look" },
    ...sure
  );
  const link = (words, onclick) =>
    el("button", { type: "button", class: "softmax-link", onclick }, words);
  const skip = link("skip, and look", () => {
    skipped = true;
    sync();
    go({ ...CASE }, leaves()); // what was asked
    wide.node.focus();
  });
  const skipAll = link("read without guessing", () =>
    kept.change((page) => {
      page.read = true;
    })
  );
  const words = el("small", { "aria-hidden": "true" }, "or say how sure:");
  const looks = el("div", { class: "softmax-look" }, keep, words, surely);
  const skips = el("div", { class: "softmax-skips" }, skip, globalThis.kept ? skipAll : "");
  const asks = el("div", { class: "softmax-asks" }, skips, looks);
  const track = el("div", { class: "live-track" }),
    named = el("b", {});
  const wide = handle({
    track,
    label: "Numbers in each vector, d",
    min: 0,
    max: ASKED,
    step: 1,
    value: START,
    text: (at) => String(widths[at]),
    ticks: widths.map((d, at) => [at, String(d)]).filter((_, at) => at % 2 === 0),
    change(at) {
      if (at === state.at) return;
      if (state.divided) tried = true;
      go({ at }, grabbed ?? leaves());
    }
  });
  track.append(wide.node);
  const leaves = () => ({ kind: "wide", from: widths[state.at], before: now });
  let grabbed = null; // one drag is one move
  track.addEventListener(
    "pointerdown",
    () => {
      grabbed = leaves();
    },
    true
  );
  for (const name of ["pointerup", "pointercancel"])
    addEventListener(name, () => {
      grabbed = null;
    });
  const divide = el(
    "button",
    {
      type: "button",
      class: "softmax-switch",
      role: "switch",
      "aria-checked": "false",
      onclick: () => go({ divided: !state.divided }, { kind: "divided", before: now })
    },
    el("i", {}),
    el("span", {}, "divide by √", italic("d"))
  );
  const other = el(
    "button",
    {
      type: "button",
      class: "live-button",
      onclick: () => go({ draw: (state.draw + 1) % DRAWS }, { kind: "drawn", before: now })
    },
    "Another draw"
  );
  const plays = el(
    "div",
    { class: "softmax-plays" },
    el("div", { class: "softmax-wide" }, el("span", {}, italic("d"), " = ", named), track),
    el("div", { class: "softmax-two" }, divide, other)
  );
  const takeBack = link("take it back", forget);
  const before = el("span", {}, "dashed: before");
  const above = el("p", { class: "softmax-todo" }),
    below = el("p", { class: "softmax-told" });
  const values = table("As a table", ["key", "given to the softmax", "weight"], () =>
    now.given.map((s, key) => [`key ${key + 1}`, number(s, 2), number(now.weights[key], 4)])
  );
  stage.box.append(
    el(
      "div",
      { class: "softmax" },
      above,
      plot,
      el(
        "p",
        { class: "softmax-note" },
        el("span", {}, "Sixteen weights, smallest score first"),
        before
      ),
      el("div", { class: "softmax-controls" }, asks, plays),
      below,
      values.node
    )
  );

  let at = FIRST;
  function aim(to) {
    [at, moved] = [Math.min(1, Math.max(0, Math.round(to * 100) / 100)), true];
    draw();
  }
  const from = (event) =>
    (FOOT - (event.clientY - plot.getBoundingClientRect().top)) / (FOOT - BARS);
  let grip = 0; // the ring does not jump
  drag(ring, {
    start(event) {
      grip = at - from(event);
    },
    move: (event) => aim(from(event) + grip)
  });
  drag(column, {
    start: (event) => !open && event.pointerType !== "touch" && aim(from(event)),
    move: (event) => aim(from(event))
  });
  ring.addEventListener("keydown", (event) => {
    const by = {
      ArrowLeft: -0.01,
      ArrowDown: -0.01,
      ArrowRight: 0.01,
      ArrowUp: 0.01,
      PageDown: -0.1,
      PageUp: 0.1,
      Home: -at,
      End: 1 - at
    }[event.key];
    if (event.key === "Enter" && moved) look();
    if (by === undefined) return;
    event.preventDefault();
    aim(at + by);
  });
  function look(level) {
    const one = { said: String(at), mark: Number(Math.abs(at - best(find(CASE))) <= NEAR) };
    if (level) one.sure = level;
    kept.change(({ answers }) => {
      answers[ID] = one;
    });
    wide.node.focus({ preventScroll: true });
  }
  function forget() {
    [moved, at, skipped] = [false, FIRST, false];
    kept.change(({ answers }) => delete answers[ID]);
    (open ? wide.node : ring).focus();
  }
  // What the page keeps of its reader says whether the figure is open.
  function sync() {
    const { answers, read } = kept.load(),
      one = answers[ID],
      was = open,
      old = guess;
    guess = one && Number(one.said) >= 0 ? Number(one.said) : null;
    open = skipped || Boolean(read) || guess !== null;
    if (open === was && guess === old) return;
    const start = { ...CASE, at: START };
    if (guess !== null) go(CASE, { kind: "asked", before: find(start) });
    else go(start, { kind: "start" });
  }
  document.addEventListener("kept-changed", sync);

  let now = find(state),
    drawn = now,
    timer = 0;
  function go(values, move) {
    Object.assign(state, values);
    last = move;
    now = find(state);
    wide.set(state.at);
    draw();
    stage.say(`${above.textContent} ${below.textContent}`);
    cancelAnimationFrame(timer);
    const begin = performance.now(),
      old = drawn,
      to = now,
      mix = (a, b, t) => a + (b - a) * t,
      all = (name, t) => to[name].map((one, i) => mix(old[name][i], one, t));
    (function frame() {
      const t = isStill() ? 1 : Math.min(1, (performance.now() - begin) / 350),
        soft = t * t * (3 - 2 * t);
      drawn =
        t === 1
          ? to
          : {
              given: all("given", soft),
              weights: all("weights", soft),
              size: mix(old.size, to.size, soft),
              edge: mix(old.edge, to.edge, soft)
            };
      paint(drawn, last.before, state.at);
      if (t < 1) timer = requestAnimationFrame(frame);
    })();
  }
  function draw() {
    const asked = guess !== null && Object.keys(CASE).every((one) => CASE[one] === state[one]),
      shown = (open ? guess : at) ?? 0;
    above.replaceChildren(...todo());
    below.replaceChildren(...told());
    pairs.textContent = `${state.divided ? "q · k / √d" : "q · k"} of 6,000 pairs`;
    reached.textContent = `typical: ${size(now.size)}`;
    most.textContent = share(best(now));
    named.textContent = String(widths[state.at]);
    divide.setAttribute("aria-checked", String(state.divided));
    [asks.inert, plays.inert] = [open, !open];
    [skips.inert, looks.inert] = [moved, !moved];
    ring.hidden = open && !asked;
    ring.classList.toggle("softmax-kept", open);
    ring.classList.toggle("softmax-moved", moved);
    ring.tabIndex = open ? -1 : 0;
    ring.style.top = `${FOOT - shown * (FOOT - BARS)}px`;
    put(ring, {
      "aria-valuenow": shown,
      "aria-valuetext": moved || open ? share(shown) : "no guess yet",
      "aria-disabled": open
    });
    keep.textContent = moved ? `Keep ${share(at)}` : "Look";
    said.hidden = ring.hidden;
    said.style.top = ring.style.top;
    said.textContent = open ? `you: ${share(shown)}` : moved ? share(at) : "your guess first";
    before.classList.toggle("softmax-off", !last.before);
    values.update();
  }

  // What a sentence asks for: d, divided (0 or 1), draw, counted from 0.
  function set(wanted) {
    const { d = "4", divided = "0", draw: draws = "0", ...strange } = wanted;
    const to = { at: widths.indexOf(Number(d)), divided: divided === "1", draw: Number(draws) };
    if (Object.keys(strange).length || to.at < 0 || !(to.draw >= 0 && to.draw < DRAWS))
      throw new Error("softmax.js: there is no such setting");
    skipped = true;
    sync();
    go(to, { kind: "set" });
  }

  new ResizeObserver(() => paint(drawn, last.before, state.at)).observe(plot);
  draw();
  paint(drawn, null, state.at);
  sync();
  return { set, find };
});

// The bill of the merge: the products behind a layer's scores as blocks of true area, once with two
// matrices, once with one M for each head, once without keys. A block's width is what its product
// costs once, its height how many times it is paid. Until its prediction is open, it shows two
// matrices alone.
vitbook.live.figure("bill", function (stage) {
  "use strict";

  const { el, handle, number, table } = vitbook.live;
  const WIDTHS = [48, 96, 192, 384, 768, 1536],
    HEADS = [1, 2, 3, 4, 6, 8, 12, 16],
    TOKENS = [50, 197, 577, 1025, 4097];
  const STEPS = 8; // of the tokens that ask, from one to all
  const START = { D: 4, h: 6, N: 1, n: STEPS },
    KINDS = ["queries", "keys", "scores"];
  const WAYS = {
    separate: ["two matrices"],
    merged: ["one ", el("i", {}, "M"), " for each head"],
    reordered: ["two matrices, no keys"]
  };
  const NAMES = { separate: "separate", merged: "merged", reordered: "re\u2011ordered" };
  const state = { ...START },
    ask = stage.root.querySelector(".predict");
  let last = null,
    begun = null; // the last move; where a drag began

  // --- the counts of the page ---
  function find({ D, h, N, n }) {
    const once = { queries: n * D * D, keys: N * D * D, scores: n * N * D };
    const times = { separate: [1, 1, 1], merged: [h, 0, h], reordered: [2, 0, h] };
    const total = Object.fromEntries(
      Object.entries(times).map(([way, each]) => [
        way,
        KINDS.reduce((sum, kind, i) => sum + each[i] * once[kind], 0)
      ])
    );
    return {
      once,
      times,
      total,
      numbers: { separate: 2 * D * D, merged: h * D * D, reordered: 2 * D * D }
    };
  }
  const asking = (N, step) => Math.round(N ** (step / STEPS));
  const sizes = ({ D, h, N, n } = state) => ({
    D: WIDTHS[D],
    h: HEADS[h],
    N: TOKENS[N],
    n: asking(TOKENS[N], n)
  });
  const isOpen = () => !ask || ask.classList.contains("is-open");

  // --- words ---
  const whole = (value) => value.toLocaleString("en");
  function amount(value) {
    if (value < 1e6) return whole(value);
    return `${value < 9.95e6 ? number(value / 1e6, 1) : whole(Math.round(value / 1e6))} million`;
  }
  const ratio = (value) =>
    value >= 0.995 ? number(value, value >= 9.95 ? 0 : 1) : String(Number(value.toPrecision(2)));
  const plural = (count, one, many) => (count === 1 ? `one ${one}` : `${whole(count)} ${many}`);
  const least = ({ total }) =>
    Object.keys(total).filter((way) => total[way] === Math.min(...Object.values(total)));

  function todo({ h, N, n }) {
    const [best] = least(now),
      all = n === N;
    if (all && h > 1)
      return "Now let a single token ask, as the class token does in a ViT’s last layer: pull the last slider to 1.";
    if (all) return "With one head the merge pays. Make two heads of it: does it still?";
    if (h === 1)
      return "One head, as wide as its tokens. Make twelve of it: which bill stays small?";
    if (best === "separate")
      return "Making keys is worth it again. Let fewer tokens ask, or merge all heads into one.";
    return n === 1
      ? "The keys were nearly the whole bill. Let more tokens ask, until two matrices are the cheapest."
      : "Let more tokens ask, until two matrices are the cheapest.";
  }
  function moved(before, after, way) {
    const [from, to] = [amount(before.total[way]), amount(after.total[way])];
    return from === to
      ? `${NAMES[way]} stays at ${to}`
      : `${NAMES[way]} ${after.total[way] > before.total[way] ? "grows" : "falls"} from ${from} to ${to}`;
  }
  function told({ h, N, n }) {
    if (!isOpen())
      return [
        `Two matrices take ${amount(now.total.separate)} multiplications: ${KINDS.map((kind) => `${amount(now.once[kind])} for ${kind}`).join(", ")}.`
      ];
    const best = least(now),
      of = now.total[best[0]] / now.total.separate;
    const cheapest = [
      " Cheapest: ",
      el("b", {}, best.map((way) => NAMES[way]).join(" and ")),
      best[0] === "separate" ? "." : `, ${ratio(of)} of separate.`
    ];
    if (last)
      return [
        `${last.words}: ${Object.keys(WAYS)
          .map((way) => moved(last.before, now, way))
          .join("; ")}.`,
        ...cheapest
      ];
    const who =
      n === N
        ? `All ${whole(N)} tokens ask`
        : n === 1
          ? `One of ${whole(N)} tokens asks`
          : `${whole(n)} of ${whole(N)} tokens ask`;
    return [
      `${who}. ${h === 1 ? "The" : "Each"} head’s `,
      el("i", {}, "M"),
      ` takes ${amount(now.once.queries)} multiplications before any score, as many as the W`,
      el("sub", {}, "Q"),
      h === 1 ? " does." : ` of all ${h} heads.`,
      ...cheapest
    ];
  }

  // --- the elements ---
  const line = el("p", { class: "bill-todo" }),
    below = el("p", { class: "bill-told" });
  const prices = KINDS.map(() => el("b", {}));
  const legend = el(
    "p",
    { class: "bill-legend" },
    el("span", {}, "Paid once:"),
    ...KINDS.map((kind, i) => el("span", { class: `bill-${kind}` }, `${kind} `, prices[i]))
  );
  const rows = Object.entries(WAYS).map(([way, words]) => {
    const blocks = KINDS.map((kind) => el("i", { class: `bill-block bill-${kind}` })),
      said = el("span", { class: "live-hidden" });
    const chart = el("div", { class: "bill-chart", "aria-hidden": "true" }, ...blocks),
      total = el("b"),
      factor = el("span"),
      more = el("small");
    const name = el(
      "p",
      { class: "bill-name" },
      el("b", {}, NAMES[way]),
      " ",
      el("small", {}, ...words)
    );
    return {
      way,
      chart,
      blocks,
      total,
      factor,
      more,
      said,
      node: el(
        "div",
        { class: `bill-row bill-${way}` },
        name,
        said,
        chart,
        el("p", { class: "bill-total" }, total, factor, more)
      )
    };
  });
  function control(key, label, list, text) {
    const track = el("div", { class: "live-track" }),
      said = el("b");
    const show = () => {
      said.textContent = text();
    };
    const grip = handle({
      track,
      label,
      min: 0,
      max: list - 1,
      step: 1,
      value: START[key],
      text: () => text(),
      change(value) {
        if (value === state[key]) return;
        const { before, was } = begun ?? { before: now, was: sizes() };
        state[key] = value;
        grip.set(value); // its words are those of the new state
        const here = sizes();
        last =
          here[key] === was[key]
            ? null
            : {
                before,
                words: {
                  D: `Width ${whole(was.D)} to ${whole(here.D)}`,
                  h: `Heads ${was.h} to ${here.h}`,
                  N: `Tokens ${whole(was.N)} to ${whole(here.N)}${here.n === here.N ? "" : `, of which ${whole(here.n)} ${here.n === 1 ? "asks" : "ask"}`}`,
                  n: `Tokens that ask ${whole(was.n)} to ${whole(here.n)}`
                }[key]
              };
        draw();
        stage.say(below.textContent);
      }
    });
    track.append(grip.node);
    track.addEventListener(
      "pointerdown",
      () => {
        begun = { before: now, was: sizes() };
      },
      true
    ); // one drag is one move
    for (const name of ["pointerup", "pointercancel"])
      track.addEventListener(
        name,
        () => {
          begun = null;
        },
        true
      );
    return {
      grip,
      show,
      key,
      node: el("div", { class: "bill-control" }, el("span", {}, said), track)
    };
  }
  const controls = [
    control("D", "Width D of the tokens", WIDTHS.length, () => `width ${whole(sizes().D)}`),
    control(
      "h",
      "Heads",
      HEADS.length,
      () => `${plural(sizes().h, "head", "heads")}, ${whole(sizes().D / sizes().h)} wide`
    ),
    control("N", "Tokens", TOKENS.length, () => `${whole(sizes().N)} tokens`),
    control("n", "Tokens that ask", STEPS + 1, () => {
      const { n, N } = sizes();
      return n === N ? `all ${whole(N)} ask` : n === 1 ? "one asks" : `${whole(n)} ask`;
    })
  ];
  const values = table(
    "The numbers as a table",
    ["way", ...KINDS, "in all", "numbers to learn"],
    () =>
      rows.map(({ way }) => [
        NAMES[way],
        ...(isOpen() || way === "separate"
          ? [
              ...now.times[way].map((times, i) => whole(times * now.once[KINDS[i]])),
              whole(now.total[way]),
              whole(now.numbers[way])
            ]
          : [])
      ])
  );
  stage.box.append(
    el(
      "div",
      { class: "bill" },
      line,
      legend,
      el("div", { class: "bill-rows" }, ...rows.map((row) => row.node)),
      el("div", { class: "bill-controls" }, ...controls.map((one) => one.node)),
      below,
      values.node
    )
  );

  // --- drawing ---
  let now;
  function draw() {
    const here = sizes(),
      open = isOpen();
    now = find(here);
    const sum = KINDS.reduce((all, kind) => all + now.once[kind], 0),
      share = (value) => `${(100 * value) / sum}%`;
    stage.box.classList.toggle("bill-asks", !open);
    stage.box.classList.toggle(
      "bill-elsewhere",
      !ask || !open || KEYS.some((key) => state[key] !== START[key])
    );
    const highest = Math.max(here.h, 2);
    prices.forEach((price, i) => {
      price.textContent = amount(now.once[KINDS[i]]);
    });
    for (const { way, chart, blocks, total, factor, more, said } of rows) {
      const hidden = !open && way !== "separate",
        times = now.times[way],
        of = now.total[way] / now.total.separate;
      chart.style.setProperty("--rows", Math.max(...times) / highest);
      let left = 0;
      blocks.forEach((block, i) => {
        const once = now.once[KINDS[i]];
        block.style.left = share(left);
        block.style.width = share(once);
        block.style.height = hidden ? "0" : `calc(var(--high) * ${times[i] / highest})`;
        block.style.setProperty("--strip", `calc(var(--high) / ${highest})`);
        left += once;
      });
      total.textContent = hidden ? "" : amount(now.total[way]);
      factor.textContent = hidden || way === "separate" ? "" : `, ${ratio(of)} times`;
      more.textContent = hidden ? "" : `${amount(now.numbers[way])} numbers to learn`;
      said.textContent = hidden
        ? "your guess first"
        : KINDS.map((kind, i) =>
            times[i] ? `${kind} ${whole(times[i])} times ${whole(now.once[kind])}` : `no ${kind}`
          ).join(", ") + ` multiplications; in all ${whole(now.total[way])}`;
    }
    for (const { show, grip } of controls) {
      show();
      grip.node.hidden = !open;
    }
    line.replaceChildren(open ? todo(here) : "");
    below.replaceChildren(...told(here));
    values.update();
  }
  const KEYS = Object.keys(START);

  // What a sentence asks for: width, heads, tokens, and how many of them ask, "all" or 1.
  function set(values) {
    const wanted = { width: "768", heads: "12", tokens: "197", ask: "all", ...values };
    const at = {
      D: WIDTHS.indexOf(Number(wanted.width)),
      h: HEADS.indexOf(Number(wanted.heads)),
      N: TOKENS.indexOf(Number(wanted.tokens)),
      n: { all: STEPS, 1: 0 }[wanted.ask] ?? -1
    };
    if (Object.keys(wanted).length > 4 || Object.values(at).some((index) => index < 0))
      throw new Error("bill.js: there is no such setting");
    if (!isOpen()) ask.querySelector(".ask-skip").click(); // else bars and question lie over each other
    Object.assign(state, at);
    last = null;
    draw();
    for (const { grip, key } of controls) grip.set(state[key]);
    stage.say(below.textContent);
  }

  if (ask) {
    addEventListener("beforeprint", () => stage.root.querySelector(".live-still").before(ask)); // on paper it comes first
    addEventListener("afterprint", () => stage.box.prepend(ask));
    new MutationObserver(() => {
      if (!isOpen()) {
        stage.say(""); // what was to be said tells the answer
        Object.assign(state, START);
        last = null;
        for (const { grip, key } of controls) grip.set(state[key]);
      }
      draw();
    }).observe(ask, { attributes: true, attributeFilter: ["class"] });
  }
  draw();
  return { set, find };
});

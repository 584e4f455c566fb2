// The patch size as a slider: the grid over a photograph, the tokens, and what they cost beside a
// patch size that was kept.
(function () {
  "use strict";

  const { live } = vitbook,
    { el, handle, number, svg, table } = live;
  const SMALLEST = 6; // dots of the picture: a finer grid would be a veil
  const LABELLED = [1, 8, 16, 32]; // stops of the slider that are named, and the last
  const PARTS = [
    ["embedding", "ps-embedding", "embedding"],
    ["token", "ps-token", "token by token"],
    ["pairs", "ps-pairs", "pairs of tokens"]
  ];

  // Multiplications in the matrix products for one square image with three channels, in L blocks of
  // width D whose MLP is four times as wide.
  function cost({ side, p, D, L }) {
    const N = (side / p) ** 2;
    const parts = {
      embedding: side * side * 3 * D,
      token: 12 * L * N * D * D,
      pairs: 2 * L * N * N * D
    };
    return { N, ...parts, all: parts.embedding + parts.token + parts.pairs };
  }

  // 12,345,678 -> "12.3 million"
  function big(value) {
    const [unit, word] = [
      [1e15, " quadrillion"],
      [1e12, " trillion"],
      [1e9, " billion"],
      [1e6, " million"],
      [1, ""]
    ].find(([one]) => value >= one) || [1, ""];
    return unit === 1 ? value.toLocaleString("en-US") : (value / unit).toFixed(1) + word;
  }
  function bytes(value) {
    const [unit, word] = [
      [2 ** 40, "TiB"],
      [2 ** 30, "GiB"],
      [2 ** 20, "MiB"],
      [2 ** 10, "KiB"]
    ].find(([one]) => value >= one) || [1, "bytes"];
    return `${(value / unit).toFixed(unit === 1 ? 0 : 1)} ${word}`;
  }
  const times = (ratio) =>
    ratio < 0.0005
      ? "less than 0.001"
      : ratio < 10
        ? number(ratio, ratio < 1 ? 3 : 2)
        : ratio < 1000
          ? ratio.toFixed(0)
          : big(Math.round(ratio));
  const tokens = (N) => `${N.toLocaleString("en-US")} token${N === 1 ? "" : "s"}`;
  const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`;

  live.figure("patch-size", function (stage, data) {
    const names = Object.keys(data.models);
    const state = { model: "ViT-B", side: data.sides[0], p: 16 };
    let kept = { ...state };
    const sizes = (side) =>
      Array.from({ length: side }, (_, i) => i + 1).filter((p) => side % p === 0);
    const cost_of = ({ model, side, p }) =>
      cost({ side, p, D: data.models[model][0], L: data.models[model][1] });
    const named = ({ model, side, p }) => `${model}, ${side} pixels, P = ${p}`;

    // --- the picture ---
    const image = new Image(),
      canvas = el("canvas", { class: "ps-picture", role: "img" });
    let pixels = null;
    image.addEventListener("load", () => {
      canvas.width = image.width;
      canvas.height = image.height;
      const pen = canvas.getContext("2d", { willReadFrequently: true });
      pen.drawImage(image, 0, 0);
      pixels = pen.getImageData(0, 0, image.width, image.height);
      draw();
    });
    image.src = data.photograph;

    // Each patch in its mean colour: what one token could say with three numbers.
    function mosaic(cells) {
      const { width, height } = pixels,
        sums = new Float64Array(cells * cells * 4);
      for (let y = 0; y < height; y++) {
        const row = Math.floor((y * cells) / height) * cells;
        for (let x = 0; x < width; x++) {
          const to = 4 * (row + Math.floor((x * cells) / width)),
            from = 4 * (y * width + x);
          for (let c = 0; c < 3; c++) sums[to + c] += pixels.data[from + c];
          sums[to + 3]++;
        }
      }
      const made = new ImageData(width, height);
      for (let y = 0; y < height; y++) {
        const row = Math.floor((y * cells) / height) * cells;
        for (let x = 0; x < width; x++) {
          const from = 4 * (row + Math.floor((x * cells) / width)),
            to = 4 * (y * width + x);
          for (let c = 0; c < 3; c++) made.data[to + c] = sums[from + c] / sums[from + 3];
          made.data[to + 3] = 255;
        }
      }
      return made;
    }
    function draw() {
      if (!pixels) return;
      const pen = canvas.getContext("2d"),
        cells = state.side / state.p,
        gap = canvas.width / cells;
      const fine = gap < SMALLEST;
      pen.putImageData(means.checked && !fine ? mosaic(cells) : pixels, 0, 0);
      means.disabled = fine;
      note.textContent = fine ? `${cells} patches in a row: too small to draw here.` : "";
      canvas.setAttribute(
        "aria-label",
        cells === 1 ? "A temple, in one patch" : `A temple, cut into ${cells} by ${cells} patches`
      );
      if (fine || means.checked) return;
      pen.strokeStyle = "rgba(255, 255, 255, 0.8)";
      pen.lineWidth = Math.min(1.5, gap / 8);
      pen.beginPath();
      for (let i = 1; i < cells; i++) {
        pen.moveTo(i * gap, 0);
        pen.lineTo(i * gap, canvas.height);
        pen.moveTo(0, i * gap);
        pen.lineTo(canvas.width, i * gap);
      }
      pen.stroke();
    }

    // --- what is chosen ---
    function choice(label, options, text, key) {
      const select = el(
        "select",
        { class: "ps-select", onchange: () => change({ [key]: options[select.selectedIndex] }) },
        ...options.map((one) => el("option", {}, text(one)))
      );
      return {
        node: el("label", { class: "ps-label" }, `${label} `, select),
        show: () => {
          select.selectedIndex = options.indexOf(state[key]);
        }
      };
    }
    const model = choice("Model", names, String, "model"),
      side = choice("Image", data.sides, (one) => `${one} \u00d7 ${one}`, "side");
    const means = el("input", { type: "checkbox", onchange: draw });
    const note = el("p", { class: "ps-note" }),
      slide = el("div"),
      read = el("p", { class: "ps-read" });
    let knob = null;
    function new_knob() {
      // the sizes that divide the image, one step each
      const all = sizes(state.side),
        track = el("div", { class: "live-track" });
      knob = handle({
        track,
        ticks: all.map((p, at) => [at, LABELLED.includes(p) || p === state.side ? String(p) : ""]),
        label: "Side of a patch, in pixels",
        min: 0,
        max: all.length - 1,
        step: 1,
        value: all.indexOf(state.p),
        text: (at) => `${all[at]} pixels, ${tokens(cost_of({ ...state, p: all[at] }).N)}`,
        change: (at) => change({ p: all[at] })
      });
      knob.side = state.side;
      track.append(knob.node);
      slide.replaceChildren(track);
    }

    // --- what it costs ---
    const bars = ["", ""].map(() =>
      svg("svg", {
        class: "ps-bar",
        viewBox: "0 0 100 1",
        preserveAspectRatio: "none",
        "aria-hidden": "true"
      })
    );
    const now = el("p", { class: "ps-line" }),
      then = el("p", { class: "ps-line ps-kept" }),
      ratio = el("p", { class: "ps-ratio" });
    const legend = el(
      "p",
      { class: "ps-legend" },
      ...PARTS.flatMap(([, look, word]) => [el("i", { class: look }), `${word}  `])
    );
    const keep = el(
      "button",
      {
        type: "button",
        class: "live-button",
        onclick: () => {
          kept = { ...state };
          update();
          stage.say(`From now on compared with ${named(kept)}.`);
        }
      },
      "Compare with this one"
    );
    const facts = table(
      "Every patch size of this image",
      ["P", "tokens", "multiplications", "pairs of tokens", "a head\u2019s map, float32"],
      () =>
        sizes(state.side).map((p) => {
          const one = cost_of({ ...state, p });
          return [
            String(p),
            one.N.toLocaleString("en-US"),
            big(one.all),
            percent(one.pairs / one.all),
            bytes(4 * one.N ** 2)
          ];
        })
    );

    function bar(one, most) {
      let x = 0;
      return PARTS.map(([key, look]) => {
        const width = (100 * one[key]) / most,
          rect = svg("rect", { class: look, x, y: 0, width, height: 1 });
        x += width;
        return rect;
      });
    }
    function update() {
      const one = cost_of(state),
        other = cost_of(kept),
        most = Math.max(one.all, other.all);
      if (knob === null || knob.side !== state.side) new_knob();
      knob.set(sizes(state.side).indexOf(state.p));
      model.show();
      side.show();
      const cells = state.side / state.p;
      read.textContent = `P = ${state.p}: ${cells} \u00b7 ${cells} = ${tokens(one.N)} of ${(3 * state.p ** 2).toLocaleString("en-US")} numbers`;
      [one, other].forEach((cost, which) => bars[which].replaceChildren(...bar(cost, most)));
      now.textContent = `Now: ${big(one.all)} multiplications, ${percent(one.pairs / one.all)} of them for pairs of tokens`;
      then.textContent = `Compared with ${named(kept)}: ${big(other.all)}, ${percent(other.pairs / other.all)} for pairs`;
      ratio.textContent = `${times(one.N / other.N)} times the tokens, ${times(one.all / other.all)} times the multiplications, ${times((one.N / other.N) ** 2)} times a head\u2019s map`;
      facts.update();
      draw();
      return `${ratio.textContent}. ${now.textContent}.`; // the handle itself says the tokens
    }
    function change(to) {
      Object.assign(state, to);
      kept.side = state.side; // one compares within an image
      for (const one of [state, kept]) while (one.side % one.p) one.p--; // the next smaller that divides
      stage.say(update());
    }

    stage.box.append(
      el(
        "div",
        { class: "ps" },
        el(
          "div",
          {},
          canvas,
          el(
            "p",
            { class: "ps-choices" },
            el("label", { class: "ps-label" }, means, " each patch in its mean colour")
          ),
          note
        ),
        el(
          "div",
          {},
          el("p", { class: "ps-choices" }, model.node, side.node),
          read,
          slide,
          ratio,
          now,
          bars[0],
          then,
          bars[1],
          legend,
          keep
        )
      ),
      facts.node
    );
    update();

    return {
      state,
      cost,
      set(values) {
        const whole = (key, allowed) => {
          const value = Number(values[key]);
          if (!allowed.includes(value))
            throw new Error(`${key} must be one of ${allowed}, not ${values[key]}`);
          return value;
        };
        const to = "side" in values ? { side: whole("side", data.sides) } : {};
        const possible = sizes(to.side || state.side);
        if ("kept" in values) kept = { ...state, ...to, p: whole("kept", possible) };
        change({ ...to, ...("p" in values ? { p: whole("p", possible) } : {}) });
      }
    };
  });

  live.patchCost = cost;
})();

// What live figures share: loading, decoding, a board of patches, handles, tables, speech. A page
// with figures loads this script only; what a figure needs comes when the figure comes near.
//
//   vitbook.live.figure("cut", function (stage, data) { ...; return { set(values) {} }; });
//
// is how a figure begins. `stage.box` is the element to fill, `stage.say(text)` speaks, `data` is
// what its data script gave (website/live). `set` gets what a sentence asks for, and throws an Error
// for what it does not know.
//
// A page has one kit, for its document. Each output of a notebook has a kit of its own: there
// `vitbook` is a name of the output's script (output.js), and says in what the kit works, `home`, and
// which element has the theme's mark, `page`.
(function (vitbook) {
  "use strict";

  const { home = document, page = document.documentElement } = vitbook;

  const SLIP = 8,
    KNOB = 12; // pixels: how far a finger that rests may move; half a handle
  const figures = new Map(),
    files = new Map(),
    scripts = new Map(),
    running = new Map();

  // --- data ---

  // Numbers of half precision, 65,536 at most, worked out once each.
  const HALVES = new Float32Array(65536);
  for (let i = 0; i < 65536; i++) {
    const power = (i >> 10) & 31,
      rest = i & 1023,
      sign = i >> 15 ? -1 : 1;
    HALVES[i] = sign * (power ? (1 + rest / 1024) * 2 ** (power - 15) : rest * 2 ** -24);
  }
  const CRC = Uint32Array.from({ length: 256 }, (_, i) => {
    let c = i;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
    return c;
  });
  function checksum(bytes) {
    let c = 0xffffffff;
    for (const byte of bytes) c = CRC[(c ^ byte) & 255] ^ (c >>> 8);
    return (c ^ 0xffffffff) >>> 0;
  }
  // {shape, u8, f16 or f32, sum} -> Uint8Array or Float32Array (website/live/pack.py).
  function decode(packed) {
    const kind = ["u8", "f16", "f32"].find((one) => one in packed);
    const text = atob(packed[kind]),
      bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    const count = packed.shape.reduce((a, b) => a * b, 1);
    if (
      checksum(bytes) !== packed.sum ||
      bytes.length !== count * { u8: 1, f16: 2, f32: 4 }[kind]
    ) {
      throw new Error("its data are damaged");
    }
    if (kind === "u8") return bytes;
    const view = new DataView(bytes.buffer),
      values = new Float32Array(count);
    for (let i = 0; i < count; i++)
      values[i] =
        kind === "f32" ? view.getFloat32(4 * i, true) : HALVES[view.getUint16(2 * i, true)];
    return values;
  }
  function decodeAll(all) {
    return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, decode(one)]));
  }

  // --- elements ---

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (typeof value === "boolean" && name in node) node[name] = value;
      else node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  }
  // el("p", {class: "x", onclick: f}, "text", child)
  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }
  // Makes the children of a node anew, unless they were made for the same words before.
  const made = new WeakMap();
  function renew(node, of, make) {
    if (made.get(node) === of) return;
    made.set(node, of);
    node.replaceChildren(...make());
  }
  // The same with words alone: nothing enters or leaves the page, so its styles are not asked again.
  function word(node, text) {
    const words = node.firstChild ?? node.appendChild(new Text(""));
    if (words.data !== text) words.data = text;
  }
  function place(patch, columns) {
    return `row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;
  }
  // A number with a true minus; with its sign, if asked.
  function number(value, digits = 2, signed = false) {
    const text = Math.abs(value).toFixed(digits),
      zero = Number(text) === 0;
    return (value < 0 && !zero ? "\u2212" : signed && !zero ? "+" : "") + text;
  }
  const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Calls back when the page's or the system's theme changes, and before and after printing.
  function onTheme(call) {
    new MutationObserver(call).observe(page, {
      attributes: true,
      attributeFilter: ["data-theme"]
    });
    for (const query of ["(prefers-color-scheme: dark)", "print"])
      matchMedia(query).addEventListener("change", call);
  }

  // One of several is in the order of Tab; arrow keys walk among them, in rows of `columns`.
  // pick(index) is called when the walk arrives. Returns the function that says which is chosen.
  function rove(box, items, columns, pick) {
    function choose(index) {
      items.forEach((item, i) => {
        item.tabIndex = i === index ? 0 : -1;
      });
    }
    box.addEventListener("keydown", (event) => {
      const from = items.indexOf(event.target.closest("button, [tabindex]"));
      if (from < 0) return;
      const column = from % columns;
      const step = {
        ArrowLeft: column ? -1 : 0,
        ArrowRight: column + 1 < columns ? 1 : 0,
        ArrowUp: -columns,
        ArrowDown: columns
      }[event.key];
      let to = step === undefined ? { Home: 0, End: items.length - 1 }[event.key] : from + step;
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      if (!items[to]) to = from;
      choose(to);
      items[to].focus();
      pick(to);
    });
    return choose;
  }

  // Something that is drawn along: move(event) while the pointer is down, end(event) when it is up.
  // With `hold` a finger rests for so many milliseconds first, then held() is called: one that moves
  // before scrolls the page, one that goes up before taps.
  function drag(node, { start, move, end, hold = 0, held }) {
    let drawn = false;
    const keep = (event) => drawn && event.preventDefault(); // the page stays, and no menu opens
    if (hold)
      for (const name of ["touchmove", "contextmenu"])
        node.addEventListener(name, keep, { passive: false });
    node.addEventListener("pointerdown", (event) => {
      if (event.button || (start && start(event) === false)) return;
      const stop = new AbortController(),
        options = { signal: stop.signal },
        waits = hold && event.pointerType === "touch";
      const timer = waits ? setTimeout(begin, hold) : 0;
      function begin() {
        drawn = true;
        node.setPointerCapture(event.pointerId);
        if (waits && held) held();
      }
      function leave() {
        clearTimeout(timer);
        stop.abort();
      }
      node.addEventListener(
        "pointermove",
        (next) => {
          if (drawn) move(next);
          else if (Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) > SLIP)
            leave();
        },
        options
      );
      for (const name of ["pointerup", "pointercancel"]) {
        node.addEventListener(
          name,
          (last) => {
            leave();
            if (drawn && end) end(last);
            drawn = false;
          },
          options
        );
      }
      if (!waits) begin();
    });
  }

  // A handle on a horizontal track: pointer, a click or tap on the track, arrow keys, Page keys, Home
  // and End. Returns {node, set(value)}; `text(value)` is what is spoken, `change(value)` is called.
  // `ticks` are drawn below the track: [[value, words]].
  function handle({ track, label, min, max, step, value, text, change, ticks = [] }) {
    const share = (at) => `${(100 * (at - min)) / (max - min)}%`;
    for (const [at, words] of ticks) {
      const tick = el("span", { class: "live-tick", "aria-hidden": "true" }, words);
      tick.style.left = share(at);
      track.append(tick);
    }
    const node = el("div", {
      class: "live-handle",
      role: "slider",
      tabindex: "0",
      "aria-label": label,
      "aria-valuemin": min,
      "aria-valuemax": max
    });
    function set(to) {
      value = Math.min(max, Math.max(min, Math.round(to / step) * step));
      node.style.left = share(value);
      node.setAttribute("aria-valuenow", value);
      node.setAttribute("aria-valuetext", text(value));
    }
    function moved(to) {
      set(to);
      change(value);
    }
    function move(event) {
      const box = track.getBoundingClientRect();
      moved(min + ((event.clientX - box.left) / box.width) * (max - min));
    }
    const beside = (event) => !node.hidden && !node.contains(event.target);
    drag(node, { move });
    drag(track, {
      start(event) {
        const pressed = beside(event) && event.pointerType !== "touch"; // a finger may want to scroll
        if (pressed) move(event);
        return pressed;
      },
      move
    });
    let up = null; // where the pointer went up: a browser pulls taps towards the handle
    track.addEventListener(
      "pointerup",
      (event) => {
        up = event.clientX;
      },
      true
    );
    track.addEventListener("click", () => {
      if (up === null || node.hidden) return;
      const { left, width } = node.getBoundingClientRect();
      if (Math.abs(up - left - width / 2) > KNOB) move({ clientX: up });
      else change(value); // this is where it shall stand
      up = null;
      node.focus({ preventScroll: true });
    });
    node.addEventListener("keydown", (event) => {
      const by = {
        ArrowLeft: -step,
        ArrowDown: -step,
        ArrowRight: step,
        ArrowUp: step,
        PageDown: -10 * step,
        PageUp: 10 * step,
        Home: min - value,
        End: max - value
      }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      moved(value + by);
    });
    set(value);
    return { node, set };
  }

  // An image as patches: dots of ink on a canvas, a button for each patch, and a layer of SVG whose
  // unit is a patch. `pick(patch)` is called for a click and for the arrow keys.
  function board({ rows, columns, label, pick }) {
    const canvas = el("canvas", { "aria-hidden": "true" });
    const layer = svg("svg", {
      viewBox: `0 0 ${columns} ${rows}`,
      class: "live-layer",
      "aria-hidden": "true"
    });
    const patches = Array.from({ length: rows * columns }, (_, p) =>
      el("button", {
        type: "button",
        class: "live-patch",
        role: "radio",
        "aria-checked": "false",
        "aria-label": place(p, columns),
        onclick: () => pick(p)
      })
    );
    const grid = el(
      "div",
      { class: "live-patches", role: "radiogroup", "aria-label": label },
      ...patches
    );
    grid.style.gridTemplate = `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
    const node = el("div", { class: "live-patch-board" }, canvas, grid, layer);
    node.style.aspectRatio = `${columns} / ${rows}`;
    const walk = rove(grid, patches, columns, pick);
    let shown = null;
    function draw(image, height, width) {
      shown = { image, height, width };
      const side = Math.max(4, Math.ceil(960 / Math.max(height, width))),
        pen = canvas.getContext("2d");
      canvas.width = width * side;
      canvas.height = height * side;
      pen.fillStyle = getComputedStyle(canvas).color;
      for (let i = 0; i < height * width; i++) {
        const ink = image[i],
          dot = side * 0.9 * (0.25 + 0.75 * ink);
        if (ink < 0.06) continue;
        pen.globalAlpha = 0.25 + 0.75 * ink;
        pen.fillRect(
          ((i % width) + 0.5) * side - dot / 2,
          (Math.floor(i / width) + 0.5) * side - dot / 2,
          dot,
          dot
        );
      }
    }
    function choose(patch) {
      walk(patch);
      patches.forEach((button, p) => button.setAttribute("aria-checked", String(p === patch)));
    }
    // The patch under a pointer, or -1.
    function under(event) {
      const box = node.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * columns),
        row = Math.floor(((event.clientY - box.top) / box.height) * rows);
      return row < 0 || row >= rows || column < 0 || column >= columns
        ? -1
        : row * columns + column;
    }
    onTheme(() => shown && draw(shown.image, shown.height, shown.width));
    return { node, grid, patches, layer, draw, choose, under };
  }

  // What the figure shows, as a table below it: rows(), and what they are of, of(), are asked while it
  // is open.
  function table(title, header, rows, of) {
    const body = el("tbody"),
      caption = el("caption");
    const head = el("tr", {}, ...header.map((word) => el("th", { scope: "col" }, word)));
    const fold = el(
      "details",
      { class: "live-table" },
      el("summary", {}, title),
      el(
        "div",
        { class: "live-scroll", tabindex: "0", role: "region", "aria-label": title },
        el("table", {}, of ? caption : "", el("thead", {}, head), body)
      )
    );
    function update() {
      if (!fold.open) return;
      if (of) caption.textContent = of();
      body.replaceChildren(
        ...rows().map(([first, ...rest]) =>
          el("tr", {}, el("th", { scope: "row" }, first), ...rest.map((cell) => el("td", {}, cell)))
        )
      );
    }
    fold.addEventListener("toggle", update);
    return { node: fold, update };
  }

  // --- starting ---

  function load(address) {
    if (!scripts.has(address)) {
      scripts.set(
        address,
        new Promise((done, fail) => {
          const script = el("script", { src: address });
          script.async = false; // in their order
          script.addEventListener("load", done);
          script.addEventListener("error", () =>
            fail(new Error(`the file ${address.split("?")[0].split("/").pop()} is missing`))
          );
          document.head.append(script);
        })
      );
    }
    return scripts.get(address);
  }

  async function begin(root) {
    await Promise.all(JSON.parse(root.dataset.scripts).map(load));
    const { live, source } = root.dataset;
    if (!figures.has(live)) throw new Error("its script is damaged");
    if (source && !files.has(source)) throw new Error("its data are damaged");
    const said = el("p", { class: "live-said", "aria-live": "polite" }),
      asked = root.querySelector(".live-box"), // with its prediction, which stays where it is
      box = asked ?? root.appendChild(el("div", { class: "live-box" })); // in the page's colours
    let timer = 0;
    const stage = {
      root,
      box,
      say(text) {
        // once the reader has stopped moving
        clearTimeout(timer);
        timer = setTimeout(() => {
          said.textContent = text;
        }, 250);
      }
    };
    root.append(said);
    try {
      const figure = figures.get(live)(stage, files.get(source));
      if (figure?.ready) {
        box.hidden = true; // the still stands until there is something to see
        await figure.ready;
        box.hidden = false;
      }
      return figure;
    } catch (error) {
      box.replaceWith(...box.querySelectorAll(".predict"));
      throw error;
    } finally {
      root.querySelector(".live-still").hidden = box.isConnected;
      root.classList.toggle("live-running", box.isConnected);
    }
  }

  function run(root) {
    if (!running.has(root)) {
      running.set(
        root,
        begin(root).catch((error) => {
          root
            .querySelector(".live-still")
            .before(
              el(
                "p",
                { class: "live-failed", role: "status" },
                `This figure cannot run here: ${error.message}. Loading the page again may help. What it shows:`
              )
            );
          return null;
        })
      );
    }
    return running.get(root);
  }

  function follow(event) {
    const link = event.target.closest(".live-set"),
      root = link && home.querySelector(link.hash ?? link.value); // a button's, in a notebook
    if (!root) return;
    event.preventDefault();
    run(root).then((figure) => {
      const answer = root.querySelector(".live-answer"); // a tall figure's: the rest may be off the screen
      (answer || root).scrollIntoView({
        block: answer ? "center" : "nearest",
        behavior: isStill() ? "auto" : "smooth"
      });
      if (figure) figure.set(JSON.parse(link.dataset.set));
    });
  }

  Object.assign(vitbook, {
    live: {
      board,
      decode,
      decodeAll,
      drag,
      el,
      handle,
      isStill,
      number,
      onTheme,
      place,
      renew,
      rove,
      svg,
      table,
      word,
      data(name, value) {
        files.set(name, value);
      },
      figure(name, start) {
        figures.set(name, start);
      }
    }
  });

  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        near.unobserve(entry.target);
        run(entry.target);
      }
    },
    { rootMargin: "500px" }
  );
  for (const root of home.querySelectorAll("[data-live]")) near.observe(root);
  home.addEventListener("click", follow);
})(typeof vitbook === "undefined" ? (globalThis.vitbook = {}) : vitbook);

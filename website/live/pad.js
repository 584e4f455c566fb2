// A pad to draw on: with mouse, finger or pen, or with a pen that keys move.
(function () {
  "use strict";
  const { drag, el, svg } = globalThis.vitbook.live;
  const STEP = 0.04,
    LEAST = 0.012; // in sides of the pad: of an arrow key, between two points
  const PLACES = Math.round(1 / STEP); // columns and rows, as they are spoken

  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const within = (value) => Math.min(1, Math.max(0, value));
  const counted = (value) => Math.min(PLACES, 1 + Math.floor(value / STEP + 1e-6));

  // changed(strokes, width, words) is called after each change, once a frame at most; words are to be
  // spoken first. said(words) is called for each move of the keys' pen. What `set` gave is an
  // example: the first stroke takes its place, and undo brings it back.
  globalThis.vitbook.live.pad = function ({ label, pen, changed, said }) {
    let strokes = [],
      width = pen,
      down = false,
      waiting = false,
      at = [0.5, 0.3],
      example = false,
      replaced = null,
      words = "";
    const ink = svg("g", { class: "draw-ink" }),
      tip = svg("circle", { class: "draw-tip", r: width / 2 });
    const node = el(
      "div",
      {
        class: "draw-pad",
        tabindex: "0",
        role: "application",
        "aria-label": `${label} It has ${PLACES} columns and ${PLACES} rows.`
      },
      svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, ink, tip)
    );

    function point() {
      tip.setAttribute("cx", at[0]);
      tip.setAttribute("cy", at[1]);
      tip.classList.toggle("draw-down", down);
    }
    function show() {
      // the board and the answer, once a frame
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        point();
        ink.setAttribute("stroke-width", width);
        ink.replaceChildren(
          ...strokes.map((stroke) =>
            svg("path", {
              d: `M${stroke.map((p) => p.join(" ")).join("L")}${stroke.length === 1 ? "h0" : ""}`
            })
          )
        );
        const first = words;
        words = "";
        changed(strokes, width, first);
      });
    }
    function begin(where) {
      if (example) {
        replaced = [strokes, width];
        strokes = [];
        example = false;
      }
      if (!strokes.length) width = pen;
      strokes.push([where]);
      show();
    }
    function extend(where) {
      const stroke = strokes.at(-1),
        last = stroke.at(-1);
      if (Math.hypot(where[0] - last[0], where[1] - last[1]) < LEAST) return;
      stroke.push(where);
      show();
    }
    function place(event) {
      const box = node.getBoundingClientRect();
      return [
        within((event.clientX - box.left) / box.width),
        within((event.clientY - box.top) / box.height)
      ].map((v) => Math.round(1000 * v) / 1000);
    }
    drag(node, {
      start(event) {
        down = false;
        begin(place(event));
      },
      move(event) {
        for (const one of event.getCoalescedEvents?.() ?? [event]) extend(place(one));
      }
    });
    node.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in KEYS) {
        const [right, below] = KEYS[event.key],
          step = event.shiftKey ? STEP / 4 : STEP;
        at = [within(at[0] + right * step), within(at[1] + below * step)].map(
          (v) => Math.round(1000 * v) / 1000
        );
        if (down) extend(at);
        speak();
      } else if (event.key === " ") {
        const cleared = example && !down;
        down = !down;
        if (down) {
          begin(at);
          speak(cleared ? "The example is gone. " : "");
        } else {
          words = "Pen up. ";
          show();
        }
      } else if (event.key === "Backspace") undo();
      else return;
      event.preventDefault();
    });
    function speak(before = "") {
      point();
      said(`${before}Pen ${down ? "down" : "up"}, column ${counted(at[0])}, row ${counted(at[1])}`);
    }
    function undo() {
      down = false;
      strokes = strokes.slice(0, -1);
      if (!strokes.length && replaced) {
        [strokes, width] = replaced;
        replaced = null;
        example = true;
      }
      show();
    }
    function set(given, wide = pen) {
      down = false;
      width = wide;
      strokes = given.map((stroke) => [...stroke]);
      example = strokes.length > 0;
      replaced = null;
      show();
    }
    return { node, set, undo, isDown: () => down };
  };
})();

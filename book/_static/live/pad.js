// A pad to draw on: with mouse, finger or pen, or with a pen that keys move.
(function () {
  "use strict";
  const { drag, el, svg } = globalThis.vitbook.live;
  const STEP = 0.04, LEAST = 0.012; // in sides of the pad: of an arrow key, between two points

  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const within = (value) => Math.min(1, Math.max(0, value));

  // changed(strokes, width) is called after each change, changed.length times a frame at most once.
  globalThis.vitbook.live.pad = function ({ label, pen, changed }) {
    let strokes = [], width = pen, down = false, waiting = false, at = [0.5, 0.3];
    const ink = svg("g", { class: "draw-ink" }), tip = svg("circle", { class: "draw-tip", r: width / 2 });
    const node = el("div", { class: "draw-pad", tabindex: "0", role: "application", "aria-label": label }, svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, ink, tip));

    function show() {
      tip.setAttribute("cx", at[0]);
      tip.setAttribute("cy", at[1]);
      tip.classList.toggle("draw-down", down);
      ink.setAttribute("stroke-width", width);
      ink.replaceChildren(...strokes.map((stroke) => svg("path", { d: `M${stroke.map((p) => p.join(" ")).join("L")}${stroke.length === 1 ? "h0" : ""}` })));
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        changed(strokes, width);
      });
    }
    function begin(point) {
      if (!strokes.length) width = pen;
      strokes.push([point]);
      show();
    }
    function extend(point) {
      const stroke = strokes.at(-1), last = stroke.at(-1);
      if (Math.hypot(point[0] - last[0], point[1] - last[1]) < LEAST) return;
      stroke.push(point);
      show();
    }
    function place(event) {
      const box = node.getBoundingClientRect();
      return [within((event.clientX - box.left) / box.width), within((event.clientY - box.top) / box.height)].map((v) => Math.round(1000 * v) / 1000);
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
        const [right, below] = KEYS[event.key], step = event.shiftKey ? STEP / 4 : STEP;
        at = [within(at[0] + right * step), within(at[1] + below * step)].map((v) => Math.round(1000 * v) / 1000);
        if (down) extend(at);
        show();
      } else if (event.key === " ") {
        down = !down;
        if (down) begin(at);
        show();
      } else if (event.key === "Backspace") undo();
      else return;
      event.preventDefault();
    });
    function undo() {
      down = false;
      strokes = strokes.slice(0, -1);
      show();
    }
    function set(given, wide = pen) {
      down = false;
      width = wide;
      strokes = given.map((stroke) => [...stroke]);
      show();
    }
    return { node, set, undo, isDown: () => down };
  };
})();

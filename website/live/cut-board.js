// The image of a cut game: patches to choose, glyphs to drag, and over them the arrows of the query,
// each a line as wide as its weight, and on it a button that cuts or restores.
(function () {
  "use strict";

  const { board, drag, el, number, svg } = vitbook.live;
  const ALONG = [0.5, 0.6, 0.7, 0.8, 0.9, 1]; // of the curve: where a button may stand, the best first
  const FINGER = 45,
    TRIES = 2000; // pixels from one button to the next; how long a place is looked for
  const HOLD = 250; // milliseconds that a finger rests on a glyph before it takes it along

  // From the query to the key, in patches: where the curve begins, bends and ends.
  function curve([x, y], [tx, ty]) {
    const length = Math.hypot(tx - x, ty - y),
      ux = (tx - x) / length,
      uy = (ty - y) / length;
    const bend = 0.1 * Math.min(1.5, length) * (ux < 0 ? -1 : 1);
    return {
      from: [x + ux * 0.34, y + uy * 0.34],
      middle: [(x + tx) / 2 + uy * bend, (y + ty) / 2 - ux * bend],
      to: [tx - ux * 0.34, ty - uy * 0.34]
    };
  }

  function shapes({ from, middle, to }, share, gone) {
    const wide = gone ? 0.03 : 0.02 + 0.13 * share,
      tip = 0.06 + wide;
    const dx = to[0] - middle[0],
      dy = to[1] - middle[1],
      d = Math.hypot(dx, dy),
      vx = dx / d,
      vy = dy / d;
    const neck = [to[0] - vx * tip * 1.4, to[1] - vy * tip * 1.4];
    return [
      svg("path", {
        class: gone ? "cut-gone" : "cut-line",
        d: `M${from}Q${middle} ${neck}`,
        "stroke-width": wide
      }),
      svg("path", {
        class: gone ? "cut-gone-tip" : "cut-tip",
        d: `M${to}L${[neck[0] - vy * tip, neck[1] + vx * tip]}L${[neck[0] + vy * tip, neck[1] - vx * tip]}Z`
      })
    ];
  }

  function pointOf({ from, middle, to }, along) {
    const s = 1 - along;
    return [0, 1].map((i) => s * s * from[i] + 2 * s * along * middle[i] + along * along * to[i]);
  }

  // A place for the button of each curve, such that no two lie nearer than `apart` patches. Where the
  // curves end there is room for all.
  function freePlaces(lines, apart) {
    let tries = TRIES;
    function rest(taken) {
      if (taken.length === lines.length) return taken;
      for (const along of ALONG) {
        const [x, y] = pointOf(lines[taken.length], along);
        if (tries-- < 0) return null;
        if (taken.some(([ax, ay]) => Math.max(Math.abs(ax - x), Math.abs(ay - y)) < apart))
          continue;
        const all = rest([...taken, [x, y]]);
        if (all) return all;
      }
      return null;
    }
    return rest([]) ?? lines.map((line) => line.to);
  }

  // Fills the patches' layer and puts buttons on it; returns the function that draws.
  function arrowsOn(game, patches) {
    const { state, rows, columns } = game,
      buttons = new Map(); // a button for each key, kept while it is shown
    let width = 330; // of the board, in pixels
    const box = el("div", { class: "cut-arrows" }),
      mark = el("span", { class: "cut-query", "aria-hidden": "true" }, "query");
    const centre = (patch) => [(patch % columns) + 0.5, Math.floor(patch / columns) + 0.5];
    patches.node.append(box, mark);

    function put(node, x, y) {
      node.style.left = `${(100 * x) / columns}%`;
      node.style.top = `${(100 * y) / rows}%`;
    }
    function buttonOf(key, share, gone) {
      if (!buttons.has(key))
        buttons.set(
          key,
          el("button", {
            type: "button",
            class: "cut-arrow",
            "data-key": key,
            onclick: () => game.toggle(state.query, key)
          })
        );
      const button = buttons.get(key);
      button.replaceChildren(el("span", { "aria-hidden": "true" }, gone ? "×" : number(share)));
      button.setAttribute("aria-pressed", String(gone));
      button.setAttribute(
        "aria-label",
        `Cut the arrow to ${game.where(key)}, weight ${number(share)}`
      );
      return button;
    }

    function draw() {
      const keys = game.shownKeys(),
        focused = document.activeElement?.dataset?.key,
        [x, y] = centre(state.query);
      const lines = keys.map((key) => curve([x, y], centre(key))),
        places = freePlaces(lines, (FINGER * columns) / width);
      patches.layer.replaceChildren();
      keys.forEach((key, at) => {
        const gone = game.goneTo(state.query, key),
          share = game.weight(gone ? game.base : game.now, state.query, key);
        patches.layer.append(...shapes(lines[at], share, gone));
        put(buttonOf(key, share, gone), ...places[at]);
      });
      patches.layer.append(
        svg(
          "text",
          { class: "cut-self", x: x - 0.43, y: y + 0.44 },
          `itself ${number(game.weight(game.now, state.query, state.query))}`
        )
      );
      for (const [key, node] of buttons)
        if (!keys.includes(key)) {
          node.remove();
          buttons.delete(key);
        }
      keys.forEach((key) => box.append(buttons.get(key)));
      if (focused !== undefined && buttons.has(Number(focused)))
        buttons.get(Number(focused)).focus({ preventScroll: true });
      put(mark, x - 0.5, y - 0.5);
      mark.hidden = keys.includes(state.query - columns); // the button of that arrow stands there
    }
    new ResizeObserver(([{ contentRect }]) => {
      // asking for the width at each cut takes longer than the cut
      if (!contentRect.width || contentRect.width === width) return;
      width = contentRect.width;
      draw();
    }).observe(patches.node);
    return draw;
  }

  // A patch is chosen by click and by key, a glyph is drawn to another patch.
  function picture(game) {
    const { state } = game;
    const patches = board({
      rows: game.rows,
      columns: game.columns,
      label: "Query: the patch that looks",
      pick: (patch) => patch !== state.query && game.choose({ query: patch })
    });
    const drawArrows = arrowsOn(game, patches);
    let held = -1,
      drawn = "";
    drag(patches.grid, {
      hold: HOLD,
      held() {
        patches.patches[held].classList.add("cut-lifted");
      },
      start(event) {
        held = patches.under(event);
        return Boolean(game.glyphIn(held));
      },
      move(event) {
        const over = patches.under(event);
        patches.patches.forEach((one, p) =>
          one.classList.toggle("cut-over", p === over && over !== held)
        );
      },
      end(event) {
        const over = patches.under(event);
        patches.patches.forEach((one) => one.classList.remove("cut-over", "cut-lifted"));
        if (event.type === "pointerup" && over >= 0 && over !== held) game.swap(held, over);
        else if (event.type === "pointerup" && held !== state.query) game.choose({ query: held });
        patches.patches[state.query].focus({ preventScroll: true });
      }
    });
    function draw() {
      const looks = `${state.picture} ${state.glyphs.map((glyph) => [glyph.patch, glyph.kind])} ${state.own}`;
      if (looks !== drawn) patches.draw(state.image, game.size, game.size); // most of the work, and seldom needed
      drawn = looks;
      patches.choose(state.query);
      patches.patches.forEach((one, p) => {
        one.style.setProperty(
          "--cut-share",
          `${Math.round(38 * Math.min(1, game.weight(game.now, state.query, p)))}%`
        );
        one.classList.toggle("cut-glyph-here", Boolean(game.glyphIn(p)));
        one.setAttribute("aria-label", game.where(p));
      });
      drawArrows();
    }
    return { node: patches.node, focus: () => patches.patches[state.query].focus(), draw };
  }

  // Digits choose a head, R restores, Shift and an arrow key move the query's glyph.
  function keys(box, game, focus) {
    const { state, h, N, columns } = game;
    box.addEventListener(
      "keydown",
      (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey) return;
        const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : -1;
        const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[
          event.key
        ];
        if (digit >= 0 && digit <= h) game.choose({ head: digit ? digit - 1 : h });
        else if (event.key === "r" || event.key === "R") game.restoreAll();
        else if (
          event.shiftKey &&
          step &&
          event.target.classList.contains("live-patch") &&
          game.glyphHere()
        ) {
          const to = state.query + step;
          if (
            to >= 0 &&
            to < N &&
            (Math.abs(step) > 1 || Math.floor(to / columns) === Math.floor(state.query / columns))
          )
            game.swap(state.query, to);
          focus();
          event.stopPropagation();
        } else return;
        event.preventDefault();
      },
      true
    );
  }

  vitbook.live.cutBoard = { keys, picture };
})();

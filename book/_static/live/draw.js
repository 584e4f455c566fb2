// Draw a digit: the ViT of the record `draw_digit` reads it, and shows where it looks.
(function () {
  "use strict";
  const { board, decodeAll, el, isStill, looking, number, pad, pen, place, rove, svg, table, vit } = globalThis.vitbook.live;
  const ROWS = 7, ARROWS = 5, SLICE = 10; // arrows of a map; milliseconds of work between two frames

  function percent(share) {
    const p = 100 * share;
    return `${p > 0 && p < 0.1 ? "<0.1" : p >= 99.95 || p === 0 ? Math.round(p) : p.toFixed(1)}\u202f%`;
  }

  globalThis.vitbook.live.figure("draw", function (stage, data) {
    const net = vit(data.model.settings, decodeAll(data.model.weights)), { layers, heads, N } = net;
    const patches = ROWS * ROWS, VIEWS = [...Array(heads).keys(), "mean", "rollout"];
    const named = (view) => (typeof view === "number" ? `head ${view + 1}` : view);
    let strokes = [], width = pen.PEN, image = new Float64Array(pen.SIDE ** 2), order = null, positions = true;
    let dropped = new Uint8Array(N), chosen = -1, layer = layers - 1, view = "mean", costs = null, run = 0, later = 0, out, shares, answer, row;

    // --- what is computed ---

    function shuffled(pixels) { // patch p of the new image is patch order[p] of the old one
      if (!order) return pixels;
      const moved = new Float64Array(pixels.length), side = pen.SIDE / ROWS;
      for (let i = 0; i < pixels.length; i++) {
        const y = Math.floor(i / pen.SIDE), x = i % pen.SIDE, from = order[patchOf(i)];
        moved[i] = pixels[(Math.floor(from / ROWS) * side + (y % side)) * pen.SIDE + (from % ROWS) * side + (x % side)];
      }
      return moved;
    }
    const patchOf = (i) => Math.floor(i / pen.SIDE / (pen.SIDE / ROWS)) * ROWS + Math.floor((i % pen.SIDE) / (pen.SIDE / ROWS));
    const seen = () => image.map((ink, i) => (dropped[1 + patchOf(i)] ? 0 : ink));
    const input = () => Float32Array.from(image, (value) => (value - data.mean) / data.std);
    const asked = () => ({ positions, dropped });
    const query = () => (chosen >= 0 && !dropped[1 + chosen] ? 1 + chosen : 0);
    function weightsOf(l, v) { // of who is looking: (N)
      const from = typeof v === "number" ? out.maps[l].subarray(v * N * N) : out[v][l];
      return from.subarray(query() * N, (query() + 1) * N);
    }
    const kept = () => [...Array(patches).keys()].filter((p) => !dropped[1 + p]);

    function compute() {
      const start = performance.now();
      image = shuffled(pen.drawn(strokes, width));
      out = net.forward(input(), asked());
      out.mean = looking.means(net, out.maps);
      out.rollout = looking.rollouts(net, out.mean);
      shares = looking.softmax(out.logits);
      answer = shares.indexOf(Math.max(...shares));
      costs = null;
      run++;
      sees.draw(seen(), pen.SIDE, pen.SIDE);
      show();
      performance.measure("draw-answer", { start });
    }

    // --- what is drawn ---

    const paper = pad({
      label: "Board to draw on. Arrow keys move the pen, Space puts it down or lifts it, Backspace takes the last stroke back.",
      pen: pen.PEN,
      changed(now, wide) {
        [strokes, width] = [now, wide];
        compute();
      }
    });
    const head = (text = "") => el("p", { class: "draw-head" }, text);
    const button = (text, onclick, more) => el("button", { type: "button", class: "live-button", onclick, ...more }, text);
    function toggle(text, change) {
      const node = el("button", { type: "button", class: "draw-switch", role: "switch", "aria-checked": "false" }, el("span", { class: "draw-knob", "aria-hidden": "true" }), text);
      const set = (on) => node.setAttribute("aria-checked", String(on));
      node.addEventListener("click", () => change(node.getAttribute("aria-checked") !== "true"));
      return { node, set };
    }
    const samples = data.samples.map(({ label, strokes: given, width: wide }) => {
      const path = given.map((stroke) => `M${stroke.map((p) => p.join(" ")).join("L")}`).join("");
      return el("button", { type: "button", class: "draw-sample", "aria-label": `Take this drawing: ${label}`, onclick: () => paper.set(given, wide) },
        svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, svg("path", { d: path, "stroke-width": wide })));
    });
    const placed = toggle("Position embeddings", (on) => { positions = on; compute(); });
    const mixed = toggle("Shuffle the patches", (on) => { shuffle(on); compute(); });
    function shuffle(on) {
      if (on === Boolean(order)) return;
      order = on ? data.order : null;
    }
    const brief = head(); // the answer, beside the pen
    brief.classList.add("live-answer");
    const left = el("div", { class: "draw-part" }, brief, paper.node,
      el("div", { class: "draw-row" }, button("Undo", () => paper.undo()), button("Clear", () => paper.set([]))),
      el("div", { class: "draw-samples", role: "group", "aria-label": "Drawings by hand" }, ...samples), placed.node, mixed.node);

    const sees = board({ rows: ROWS, columns: ROWS, label: "Patches: choose who looks", pick: choose });
    const token = button("class token", () => choose(-1), { "aria-pressed": "true" });
    const taken = button("Take this patch out", takeOut), back = button("All back", () => { dropped = new Uint8Array(N); compute(); });
    const told = el("p", { class: "draw-told" }), looks = head();
    const middle = el("div", { class: "draw-part" }, looks, el("div", { class: "draw-token" }, token), sees.node, told, el("div", { class: "draw-row" }, taken, back));

    const reads = head(), bars = shares10().map((digit) => {
      const bar = el("span", { class: "draw-bar" }), text = el("span", { class: "draw-percent" });
      return { node: el("li", {}, el("b", {}, String(digit)), el("span", { class: "draw-track" }, bar), text), bar, text };
    });
    function shares10() { return [...Array(10).keys()]; }
    const early = Array.from({ length: layers }, (_, l) => {
      const cells = shares10().map(() => el("td", {}));
      return { node: el("tr", {}, el("th", { scope: "row" }, String(l + 1)), ...cells), cells };
    });
    const right = el("div", { class: "draw-part draw-reads" }, reads, el("ul", { class: "draw-bars" }, ...bars.map((one) => one.node)),
      el("table", { class: "draw-early" }, el("caption", {}, "If it had to answer after layer \u2026"),
        el("thead", {}, el("tr", {}, el("td", {}), ...shares10().map((digit) => el("th", { scope: "col" }, String(digit))))), el("tbody", {}, ...early.map((one) => one.node))));

    const thumbs = Array.from({ length: layers }, (_, l) => VIEWS.map((v) => ({ layer: l, view: v, canvas: el("canvas", { width: 56, height: 56, "aria-hidden": "true" }) }))).flat();
    const picks = thumbs.map((one) => el("button", { type: "button", class: "draw-thumb", role: "radio", "aria-label": `layer ${one.layer + 1}, ${named(one.view)}`, onclick: () => pick(one) }, one.canvas));
    const walls = el("div", { class: "draw-thumbs", role: "radiogroup", "aria-label": "Layer and head" }, ...picks);
    const walk = rove(walls, picks, VIEWS.length, (index) => pick(thumbs[index]));
    const header = el("div", { class: "draw-thumbs draw-names", "aria-hidden": "true" }, ...VIEWS.map((v) => el("span", {}, named(v))));
    const rows = el("div", { class: "draw-layers", "aria-hidden": "true" }, ...Array.from({ length: layers }, (_, l) => el("span", {}, `layer ${l + 1}`)));
    const every = el("div", { class: "draw-part draw-every" }, head("Every layer and head"), header, rows, walls);

    const promise = el("canvas", { width: 112, height: 112 }), price = el("canvas", { width: 112, height: 112 });
    const hide = button("Take out each patch in turn", hideAll, { class: "live-button live-first" }), said = el("p", { class: "draw-told" });
    const pair = el("div", { class: "draw-pair" }, el("figure", {}, promise, el("figcaption", {}, "what the map promises")), el("figure", {}, price, el("figcaption", {}, "what the answer loses")));
    const test = el("div", { class: "draw-part draw-test" }, head("Is the map right?"), hide, pair, said);

    const numbers = table("The map in numbers", ["patch", "weight", "what the answer loses, nats"], () =>
      [...row.subarray(1)].map((weight, p) => [place(p, ROWS), dropped[1 + p] ? "taken out" : percent(weight), costs && !dropped[1 + p] ? number(costs[p], 3, true) : "\u2013"]));

    stage.box.append(el("div", { class: "draw-grid" }, left, middle, right, every, test), numbers.node);

    // A map as shades, with the ink over it.
    function paint(canvas, values, most, colour) {
      const to = canvas.getContext("2d"), side = canvas.width / ROWS, dot = canvas.width / pen.SIDE;
      to.clearRect(0, 0, canvas.width, canvas.width);
      to.fillStyle = colour;
      for (let p = 0; p < patches; p++) {
        to.globalAlpha = most > 0 ? Math.max(0, values[p] / most) : 0;
        to.fillRect((p % ROWS) * side, Math.floor(p / ROWS) * side, side, side);
      }
      to.fillStyle = colours().ink;
      image.forEach((ink, i) => {
        if (ink < 0.06) return;
        to.globalAlpha = 0.6 * ink;
        to.fillRect((i % pen.SIDE) * dot, Math.floor(i / pen.SIDE) * dot, dot, dot);
      });
    }
    function colours() {
      const style = getComputedStyle(stage.root);
      return Object.fromEntries(["ink", "heat", "key"].map((name) => [name, style.getPropertyValue(`--live-${name}`)]));
    }
    const who = () => (query() ? `The patch in ${place(query() - 1, ROWS)}` : "The class token");

    function arrows(strongest) {
      const from = query() ? [((query() - 1) % ROWS) + 0.5, Math.floor((query() - 1) / ROWS) + 0.5] : [ROWS / 2, -0.25];
      sees.layer.replaceChildren(...strongest.filter((p) => 1 + p !== query()).flatMap((p) => {
        const to = [(p % ROWS) + 0.5, Math.floor(p / ROWS) + 0.5];
        const bent = [(from[0] + to[0]) / 2 + (to[0] - from[0]) / 4, (from[1] + to[1]) / 2];
        return [svg("path", { class: "draw-arrow", d: `M${from}Q${bent} ${to}`, "stroke-width": 0.02 + 0.1 * (row[1 + p] / Math.max(...row.subarray(1))) }), svg("circle", { class: "draw-end", cx: to[0], cy: to[1], r: 0.07 })];
      }));
    }

    function show() {
      row = weightsOf(layer, view);
      const weights = row.subarray(1), most = Math.max(...weights);
      const strongest = kept().toSorted((a, b) => weights[b] - weights[a]).slice(0, ARROWS);
      sees.patches.forEach((one, p) => {
        one.style.background = dropped[1 + p] ? "" : `color-mix(in srgb, var(--live-heat) ${(100 * weights[p]) / most}%, var(--live-soft))`;
        one.classList.toggle("draw-gone", Boolean(dropped[1 + p]));
        one.setAttribute("aria-label", `${place(p, ROWS)}, ${dropped[1 + p] ? "taken out" : percent(weights[p])}`);
      });
      sees.choose(chosen);
      if (chosen < 0) sees.patches[0].tabIndex = 0;
      token.setAttribute("aria-pressed", String(!query()));
      arrows(strongest);
      looks.textContent = `Where ${who().toLowerCase()} looks`;
      told.replaceChildren(`Layer ${layer + 1}, ${named(view)}: `, el("b", {}, percent(most)), ` on ${place(strongest[0] ?? 0, ROWS)}, `, el("b", {}, percent(row[query()])), " on itself.");
      taken.hidden = chosen < 0;
      taken.textContent = chosen >= 0 && dropped[1 + chosen] ? "Put this patch back" : "Take this patch out";
      back.hidden = !dropped.some(Boolean);

      const sure = shares[answer] >= data.threshold, article = answer === 8 ? "an" : "a";
      reads.replaceChildren(...(sure ? [`It reads ${article} `, el("b", { class: "draw-answer" }, String(answer))] : [el("b", { class: "draw-answer" }, "Not sure"), strokes.length ? ` \u2013 ${article} ${answer}?` : " \u2013 the board is empty"]));
      brief.textContent = `Your board. ${reads.textContent}`;
      bars.forEach(({ node, bar, text }, digit) => {
        bar.style.width = `${100 * shares[digit]}%`;
        text.textContent = percent(shares[digit]);
        node.classList.toggle("draw-best", digit === answer);
      });
      early.forEach(({ cells }, l) => {
        const then = looking.softmax(out.after[l]), best = then.indexOf(Math.max(...then));
        cells.forEach((cell, digit) => {
          cell.style.setProperty("--share", `${100 * then[digit]}%`);
          cell.classList.toggle("draw-dark", then[digit] > 0.5);
          cell.replaceChildren(digit === best ? String(digit) : el("span", { class: "live-said" }, percent(then[digit])));
          cell.title = percent(then[digit]);
        });
      });
      thumbs.forEach((one, index) => {
        const on = one.layer === layer && one.view === view;
        picks[index].setAttribute("aria-checked", String(on));
        if (on) walk(index);
      });
      if (!later) later = requestAnimationFrame(showAll); // the answer first
      placed.set(positions);
      mixed.set(Boolean(order));
      compare();
      numbers.update();
      if (!paper.isDown()) stage.say(`${strokes.length ? `${sure ? "It reads" : "Not sure, perhaps"} ${article} ${answer}, ${percent(shares[answer])}` : "The board is empty"}. ${who()}, layer ${layer + 1}, ${named(view)}: ${percent(most)} on ${place(strongest[0] ?? 0, ROWS)}.`);
    }

    function showAll() {
      later = 0;
      const { heat } = colours();
      for (const one of thumbs) {
        const values = weightsOf(one.layer, one.view).subarray(1);
        paint(one.canvas, values, Math.max(...values), heat);
      }
    }

    function compare() {
      pair.hidden = !costs;
      hide.textContent = costs ? "Done: each patch was taken out in turn" : "Take out each patch in turn";
      hide.disabled = Boolean(costs) || !strokes.length;
      if (!costs) {
        said.textContent = strokes.length ? "The model answers once without each patch. What the answer loses is what that patch was worth." : "Draw something first.";
        return;
      }
      const there = kept(), weights = there.map((p) => row[1 + p]), lost = there.map((p) => costs[p]), { heat, key } = colours();
      paint(promise, row.subarray(1), Math.max(...row.subarray(1)), heat);
      paint(price, costs, Math.max(...lost), key);
      const chance = 1.96 / Math.sqrt(there.length - 1), first = there[weights.indexOf(Math.max(...weights))], worth = there[lost.indexOf(Math.max(...lost))];
      said.replaceChildren(
        costs[worth] < 0.01 ? "No single patch matters here. " : "", `The map's first patch is ${place(first, ROWS)}; without it the answer ${answer} loses `, el("b", {}, `${number(costs[first], 3)} nats`),
        `. Most, `, el("b", {}, `${number(costs[worth], 3)} nats`), `, it loses without ${place(worth, ROWS)}. Both put the patches in the same order with a rank correlation of `,
        el("b", {}, number(looking.rankCorrelation(weights, lost), 2, true)), ` (maps by chance: between ${number(-chance, 2)} and ${number(chance, 2)}, 95\u202f% of them).`);
    }

    // --- what is done ---

    function choose(patch) {
      chosen = patch;
      show();
    }
    function pick(one) {
      ({ layer, view } = one);
      show();
    }
    function takeOut() {
      dropped = dropped.slice();
      dropped[1 + chosen] = dropped[1 + chosen] ? 0 : 1;
      compute();
    }
    async function hideAll() {
      const mine = ++run, given = input(), how = asked(), found = new Float64Array(patches), soon = (call) => setTimeout(call, 0);
      let pause = performance.now() + SLICE;
      for (const patch of kept()) {
        found[patch] = looking.cost(net, given, how, patch, answer);
        if (performance.now() < pause) continue;
        await new Promise(isStill() ? soon : requestAnimationFrame);
        if (mine !== run) return; // something has changed
        pause = performance.now() + SLICE;
      }
      costs = found;
      show();
      stage.say(said.textContent);
    }

    paper.set(data.samples[3].strokes, data.samples[3].width);
    return {
      set(values) {
        for (const [name, value] of Object.entries(values)) {
          if (name === "digit" && data.samples.some((one) => one.label === value)) paper.set(...Object.values(data.samples.find((one) => one.label === value)).slice(1));
          else if (name === "layer" && value >= 1 && value <= layers) layer = value - 1;
          else if (name === "head" && VIEWS.some((v) => v === value || String(v + 1) === value)) view = VIEWS.find((v) => v === value || String(v + 1) === value);
          else if (name === "positions" && ["on", "off"].includes(value)) positions = value === "on";
          else if (name === "shuffle" && ["on", "off"].includes(value)) shuffle(value === "on");
          else throw new Error(`this figure has no ${name}=${value}`);
        }
        chosen = -1;
        compute();
      }
    };
  });
})();

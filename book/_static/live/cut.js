// Cut the arrow: the matching-pairs ViT of the book, live. A reader moves a glyph, changes one, cuts
// an arrow, a head or all arrows to a patch, and compares what the map promised with what the cut did.
vitbook.live.figure("cut", function (stage, data) {
  "use strict";

  const { board, decode, decodeAll, drag, el, handle, number, onTheme, place, rove, svg, table, vit } = vitbook.live;
  const net = vit(data.model.settings, decodeAll(data.model.weights));
  const { layers: L, heads: h, N, rows, columns } = net;
  const size = data.model.settings.image_size, P = data.model.settings.patch_size;
  const pictures = decode(data.images), glyphInk = decode(data.glyphs), kinds = data.glyphs.shape[0], side = data.glyphs.shape[1];
  const WORDS = ["different", "same"], SCALE = 12; // of the bar, in logits
  const CELL = 14; // of the small maps, in pixels
  const SHOWN = 5, LEAST = 0.025; // arrows drawn: how many, and the weakest

  // --- what is so ---
  // cuts: what was cut at one time, {arrows: [index...], name, promise, rows, before, after}.
  const state = { picture: 0, own: false, layer: 0, head: h, query: 0, image: null, glyphs: [], cuts: [], guess: null };
  let base, now; // the answers without and with the cuts

  const arrowAt = (layer, head, query, key) => ((layer * h + head) * N + query) * N + key;
  const lead = (answer) => answer.logits[1] - answer.logits[0];
  const isCut = (arrow) => state.cuts.some((cut) => cut.arrows.includes(arrow));
  const count = () => new Set(state.cuts.flatMap((cut) => cut.arrows)).size;
  const way = (from, to) => (to - from) / (0 - from); // 1 = the answer turns
  const heads = () => (state.head === h ? Array.from({ length: h }, (_, i) => i) : [state.head]);
  const names = (head) => (head === h ? "all heads" : `head ${head + 1}`);
  const percent = (share) => `${number(100 * share, Math.abs(share) < 0.1 ? 1 : 0)}\u202f%`;
  const weightOf = (answer, layer, head, query, key) => answer.maps[layer][(head * N + query) * N + key];
  // In the chosen head, or the mean of all.
  function weight(answer, query, key) {
    const chosen = heads();
    return chosen.reduce((sum, head) => sum + weightOf(answer, state.layer, head, query, key), 0) / chosen.length;
  }
  // Of the arrow in each chosen head.
  const arrowsTo = (query, key) => heads().map((head) => arrowAt(state.layer, head, query, key));
  const goneTo = (query, key) => arrowsTo(query, key).every(isCut);

  function answer(cuts) {
    const arrows = new Uint8Array(L * h * N * N);
    for (const cut of cuts) for (const arrow of cut.arrows) arrows[arrow] = 1;
    return net.forward(state.image, { arrows });
  }

  function restart() {
    state.cuts = [];
    state.guess = null;
    base = now = answer([]);
  }

  function open(index) {
    const one = data.pictures[index];
    Object.assign(state, { picture: index, own: false, image: pictures.slice(index * size * size, (index + 1) * size * size) });
    state.glyphs = one.patches.map((patch, i) => ({ patch, kind: one.kinds[i] }));
    state.query = one.patches[1];
    restart();
  }

  // --- what a reader does ---

  function cut(arrows, name) {
    const fresh = arrows.filter((arrow) => !isCut(arrow));
    if (!fresh.length) return;
    const held = new Set(fresh.map((arrow) => Math.floor(arrow / N)));
    let promise = 0;
    for (const arrow of fresh) promise += now.maps[Math.floor(arrow / (h * N * N))][arrow % (h * N * N)];
    const before = lead(now), made = { arrows, name, promise, rows: held.size, before };
    state.cuts.push(made);
    now = answer(state.cuts);
    made.after = lead(now);
    draw();
    speak(`Cut: ${name}. `);
  }

  function restore(...made) {
    state.cuts = state.cuts.filter((one) => !made.includes(one));
    let before = lead(base);
    state.cuts.forEach((one, i) => { // what each did, in the order in which they stand now
      one.before = before;
      before = one.after = lead(answer(state.cuts.slice(0, i + 1)));
    });
    now = answer(state.cuts);
    draw();
    speak(`Restored: ${made.map((one) => one.name).join("; ")}. `);
  }

  function toggle(query, key) {
    const arrows = arrowsTo(query, key), name = `layer ${state.layer + 1}, ${names(state.head)}, ${place(query, columns)} to ${place(key, columns)}`;
    if (arrows.every(isCut)) restore(...state.cuts.filter((one) => arrows.some((arrow) => one.arrows.includes(arrow))));
    else cut(arrows, name);
  }

  function cutHead() {
    const arrows = [];
    for (const head of heads()) for (let q = 0; q < N; q++) for (let k = 0; k < N; k++) if (q !== k) arrows.push(arrowAt(state.layer, head, q, k));
    cut(arrows, `layer ${state.layer + 1}, ${names(state.head)}, all arrows between patches`);
  }

  function cutPatch() {
    const key = state.query, arrows = [];
    for (let layer = 0; layer < L; layer++) for (let head = 0; head < h; head++) for (let q = 0; q < N; q++) if (q !== key) arrows.push(arrowAt(layer, head, q, key));
    cut(arrows, `all arrows to ${place(key, columns)}`);
  }

  function restoreAll() {
    restart();
    draw();
    speak("All restored. ");
  }

  function choose(change) {
    Object.assign(state, change);
    draw();
    speak("");
  }

  // Two patches change places: as glyphs stand alike in their patches, the image stays one of its kind.
  function swap(from, to) {
    for (let y = 0; y < P; y++) {
      for (let x = 0; x < P; x++) {
        const at = (patch) => (Math.floor(patch / columns) * P + y) * size + (patch % columns) * P + x;
        const kept = state.image[at(from)];
        state.image[at(from)] = state.image[at(to)];
        state.image[at(to)] = kept;
      }
    }
    for (const glyph of state.glyphs) glyph.patch = glyph.patch === from ? to : glyph.patch === to ? from : glyph.patch;
    state.own = true;
    state.query = to;
    restart();
    draw();
    speak(`The glyph stands in ${place(to, columns)}. `);
  }

  // Where ink comes or goes, a pixel v becomes 1 - v: the noise on ink and on paper is alike.
  function change(glyph, kind) {
    for (let y = 0; y < side; y++) {
      for (let x = 0; x < side; x++) {
        const pixel = y * side + x;
        if (glyphInk[glyph.kind * side * side + pixel] === glyphInk[kind * side * side + pixel]) continue;
        const at = (Math.floor(glyph.patch / columns) * P + data.offset + y) * size + (glyph.patch % columns) * P + data.offset + x;
        state.image[at] = Math.fround(1 - state.image[at]);
      }
    }
    glyph.kind = kind;
    state.own = true;
    restart();
    draw();
    speak("Another glyph. ");
  }

  // --- the elements ---

  const patches = board({ rows, columns, label: "Query: the patch that looks", pick: (patch) => patch !== state.query && choose({ query: patch }) });
  const arrowBox = el("div", { class: "cut-arrows" }), mark = el("span", { class: "cut-query", "aria-hidden": "true" }, "query");
  patches.node.append(arrowBox, mark);

  const button = (text, onclick, first) => el("button", { type: "button", class: `live-button${first ? " live-first" : ""}`, onclick }, text);
  const thickest = button("✂ Cut the thickest arrow", () => { const key = strongest(); if (key >= 0) toggle(state.query, key); }, true);
  const headButton = button("Cut head", cutHead), patchButton = button("Cut patch", cutPatch);
  const allBack = button("Restore all", restoreAll);
  const next = button("Next image", () => { open((state.picture + 1) % data.pictures.length); draw(); speak(`Image ${state.picture + 1}. `); });
  const told = el("p", { class: "cut-told" });

  const verdict = el("p", { class: "cut-verdict" }), sure = el("span", { class: "cut-sure" });
  const fillBar = el("div", { class: "cut-fill" }), beforeMark = el("div", { class: "cut-before" });
  const track = el("div", { class: "live-track cut-track" }, el("div", { class: "cut-turn" }), fillBar, beforeMark);
  const leads = el("p", { class: "cut-leads" });
  const guess = handle({
    track, label: "Your guess: the lead after the first cut, in logits", min: -SCALE, max: SCALE, step: 0.5, value: 6,
    text: (value) => `${number(value, 1, true)}, ${WORDS[value > 0 ? 1 : 0]}`,
    change(value) { state.guess = value; drawBar(); }
  });
  track.append(guess.node);

  function card(name, title) {
    const value = el("p", { class: "cut-value" }), words = el("p", { class: "cut-words" }), column = el("i");
    return { node: el("div", { class: `cut-card ${name}` }, el("p", { class: "cut-title" }, title), value, words, el("div", { class: "cut-column", "aria-hidden": "true" }, column)), value, words, column };
  }
  const promised = card("cut-promised", "The map promised"), did = card("cut-did", "The cut did");
  const lesson = el("p", { class: "cut-lesson" });

  // Every head, small: the first of a row is the mean of the layer's heads.
  const small = [];
  const grid = el("div", { class: "cut-heads", role: "group", "aria-label": "Layer and head" });
  for (let layer = 0; layer < L; layer++) {
    for (let at = 0; at <= h; at++) {
      const head = at ? at - 1 : h, canvas = el("canvas", { width: columns * CELL, height: rows * CELL }), badge = el("span", { class: "cut-badge" });
      const one = el("button", { type: "button", class: "cut-head", onclick: () => choose({ layer, head }) }, canvas, el("small", { "aria-hidden": "true" }, at ? `head ${at}` : `layer ${layer + 1}`), badge);
      small.push({ button: one, canvas, badge, layer, head });
      grid.append(one);
    }
  }
  const walkHeads = rove(grid, small.map((one) => one.button), h + 1, (index) => choose({ layer: small[index].layer, head: small[index].head }));

  const glyphBox = el("div", { class: "cut-glyphs", role: "group", "aria-label": "Glyphs: change the one of the query" });
  const glyphButtons = Array.from({ length: kinds }, (_, kind) => {
    const picture = svg("svg", { viewBox: `-1 -1 ${side + 2} ${side + 2}`, "aria-hidden": "true" });
    for (let i = 0; i < side * side; i++) if (glyphInk[kind * side * side + i]) picture.append(svg("rect", { x: i % side, y: Math.floor(i / side), width: 0.92, height: 0.92 }));
    return el("button", { type: "button", class: "cut-glyph", "aria-label": `glyph ${kind + 1}`, onclick: () => { const glyph = glyphHere(); if (glyph && glyph.kind !== kind) change(glyph, kind); } }, picture);
  });
  glyphBox.append(...glyphButtons);
  const walkGlyphs = rove(glyphBox, glyphButtons, 8, () => {});
  const glyphHere = () => state.glyphs.find((glyph) => glyph.patch === state.query);
  const glyphHint = el("span");

  const score = el("span", { class: "cut-score" });
  const history = el("ol", { class: "cut-history" });
  const values = table("The arrows as a table", ["from the query to", "weight untouched", "weight now", "cut"], () =>
    Array.from({ length: N }, (_, key) => [place(key, columns), number(weight(base, state.query, key), 4), number(weight(now, state.query, key), 4), key === state.query ? "cannot be cut" : goneTo(state.query, key) ? "yes" : "no"]));

  stage.box.classList.add("cut");
  stage.box.append(
    el("p", { class: "cut-challenge" }, el("span", {}, el("b", {}, "Challenge "), "turn the answer round with as few arrows as you can"), score),
    el("div", { class: "cut-answer" }, verdict, el("p", { class: "cut-ends", "aria-hidden": "true" }, el("span", {}, "← different"), el("span", {}, "here it turns"), el("span", {}, "same →")), track, leads),
    el("div", { class: "cut-stage" }, patches.node, el("div", { class: "cut-buttons" }, thickest, headButton, patchButton, allBack, next), told),
    el("div", { class: "cut-side" }, el("div", { class: "cut-cards" }, promised.node, did.node), lesson,
      el("div", {}, el("p", { class: "cut-title" }, "Layer and head ", el("small", {}, "seen from the query")), grid),
      el("div", {}, el("p", { class: "cut-title" }, "Glyphs ", el("small", {}, glyphHint)), glyphBox)),
    el("div", { class: "cut-past" }, el("p", { class: "cut-title" }, "Last cuts ", el("small", {}, el("i", { class: "cut-key-promised" }), " promised ", el("i", { class: "cut-key-did" }), " did")), history),
    el("p", { class: "cut-keys" }, "Keys: arrows move the query, with Shift its glyph; Tab goes to the arrows, Enter cuts or restores; 1 to " + h + " a head, 0 all; R restores all."),
    values.node
  );

  stage.box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : -1;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    if (digit >= 0 && digit <= h) choose({ head: digit ? digit - 1 : h });
    else if (event.key === "r" || event.key === "R") restoreAll();
    else if (event.shiftKey && step && event.target.classList.contains("live-patch") && glyphHere()) {
      const to = state.query + step;
      if (to >= 0 && to < N && (Math.abs(step) > 1 || Math.floor(to / columns) === Math.floor(state.query / columns))) swap(state.query, to);
      patches.patches[state.query].focus();
      event.stopPropagation();
    } else return;
    event.preventDefault();
  }, true);

  let held = -1;
  drag(patches.grid, {
    start(event) {
      held = patches.under(event);
      return state.glyphs.some((glyph) => glyph.patch === held);
    },
    move(event) {
      const over = patches.under(event);
      patches.patches.forEach((one, p) => one.classList.toggle("cut-over", p === over && over !== held));
    },
    end(event) {
      const over = patches.under(event);
      patches.patches.forEach((one) => one.classList.remove("cut-over"));
      if (event.type === "pointerup" && over >= 0 && over !== held) swap(held, over);
      else if (event.type === "pointerup" && held !== state.query) choose({ query: held });
      patches.patches[state.query].focus({ preventScroll: true });
    }
  });

  // --- drawing ---

  function shownKeys() {
    const keys = Array.from({ length: N }, (_, key) => key).filter((key) => key !== state.query);
    const size = (key) => Math.max(weight(base, state.query, key), weight(now, state.query, key));
    keys.sort((a, b) => size(b) - size(a));
    return keys.filter((key, i) => goneTo(state.query, key) || (i < SHOWN && (i === 0 || size(key) >= LEAST)));
  }
  function strongest() {
    let best = -1;
    for (const key of shownKeys()) {
      if (!goneTo(state.query, key) && (best < 0 || weight(now, state.query, key) > weight(now, state.query, best))) best = key;
    }
    return best;
  }
  const centre = (patch) => [(patch % columns) + 0.5, Math.floor(patch / columns) + 0.5];

  // One arrow in each place: drawn again only where something of it has changed.
  const arrows = new Map();
  function drawArrows() {
    const keys = shownKeys(), focused = document.activeElement?.dataset?.key, taken = [];
    patches.layer.replaceChildren();
    for (const key of keys) {
      const [x, y] = centre(state.query), [tx, ty] = centre(key), length = Math.hypot(tx - x, ty - y), gone = goneTo(state.query, key);
      const ux = (tx - x) / length, uy = (ty - y) / length, bend = 0.1 * Math.min(1.5, length) * (ux < 0 ? -1 : 1);
      const from = [x + ux * 0.34, y + uy * 0.34], to = [tx - ux * 0.34, ty - uy * 0.34], middle = [(x + tx) / 2 + uy * bend, (y + ty) / 2 - ux * bend];
      const share = weight(gone ? base : now, state.query, key), wide = gone ? 0.03 : 0.02 + 0.13 * share, tip = 0.06 + wide;
      const dx = to[0] - middle[0], dy = to[1] - middle[1], d = Math.hypot(dx, dy), vx = dx / d, vy = dy / d;
      const neck = [to[0] - vx * tip * 1.4, to[1] - vy * tip * 1.4];
      const line = svg("path", { class: gone ? "cut-gone" : "cut-line", d: `M${from}Q${middle} ${neck}`, "stroke-width": wide });
      const head = svg("path", { class: gone ? "cut-gone-tip" : "cut-tip", d: `M${to}L${[neck[0] - vy * tip, neck[1] + vx * tip]}L${[neck[0] + vy * tip, neck[1] - vx * tip]}Z` });
      patches.layer.append(line, head);
      if (!arrows.has(key)) {
        const made = el("button", { type: "button", class: "cut-arrow", "data-key": key, onclick: () => toggle(state.query, key) });
        arrows.set(key, made);
      }
      // on the curve, where it lies farthest from the arrows that are drawn already
      const at = arrows.get(key);
      let px = 0, py = 0, free = -1;
      for (const t of [0.5, 0.62, 0.74, 0.86]) {
        const s = 1 - t, cx = s * s * from[0] + 2 * s * t * middle[0] + t * t * to[0], cy = s * s * from[1] + 2 * s * t * middle[1] + t * t * to[1];
        const room = Math.min(0.62, ...taken.map(([ax, ay]) => Math.hypot(ax - cx, 1.4 * (ay - cy))));
        if (room > free + 0.01) [px, py, free] = [cx, cy, room];
      }
      taken.push([px, py]);
      at.style.left = `${(100 * px) / columns}%`;
      at.style.top = `${(100 * py) / rows}%`;
      at.replaceChildren(el("span", { "aria-hidden": "true" }, gone ? "×" : number(share)));
      at.setAttribute("aria-pressed", String(gone));
      at.setAttribute("aria-label", `Cut the arrow to ${place(key, columns)}, weight ${number(share)}`);
    }
    const [x, y] = centre(state.query);
    patches.layer.append(svg("text", { class: "cut-self", x: x - 0.43, y: y + 0.44 }, `itself ${number(weight(now, state.query, state.query))}`));
    for (const [key, node] of arrows) if (!keys.includes(key)) { node.remove(); arrows.delete(key); }
    keys.forEach((key) => arrowBox.append(arrows.get(key)));
    if (focused !== undefined && arrows.has(Number(focused))) arrows.get(Number(focused)).focus({ preventScroll: true });
  }

  function drawBar() {
    const at = (value) => 50 + (50 * Math.max(-SCALE, Math.min(SCALE, value))) / SCALE, value = lead(now), was = lead(base), cutAny = state.cuts.length > 0;
    fillBar.style.left = `${Math.min(50, at(value))}%`;
    fillBar.style.width = `${Math.abs(at(value) - 50)}%`;
    beforeMark.style.left = `${at(was)}%`;
    beforeMark.hidden = !cutAny;
    guess.node.hidden = cutAny && state.guess === null;
    leads.replaceChildren(...(cutAny ? [`lead before the cut ${number(was, 2, true)}, `] : []), el("b", {}, `now ${number(value, 2, true)} logits`), state.guess === null ? (cutAny ? "" : ", its lead · drag the ring: where will it be after your first cut?") : `, you guess${cutAny ? "ed" : ""} ${number(state.guess, 1, true)}`);
    const chance = 1 / (1 + Math.exp(-Math.abs(value)));
    sure.textContent = `${(value > 0) === (was > 0) && cutAny ? "still " : ""}${number(100 * chance)}\u202f% sure`;
    verdict.replaceChildren("It says ", el("b", {}, WORDS[value > 0 ? 1 : 0]), " ", sure);
  }

  function drawCards() {
    const made = state.cuts, key = strongest(), total = made.reduce((sum, one) => sum + one.promise, 0);
    const held = made.reduce((sum, one) => sum + one.rows, 0), share = way(lead(base), lead(now));
    if (made.length) {
      promised.value.textContent = number(total);
      promised.words.textContent = held === 1 ? "of the 1.00 that this query takes in this head" : `of ${number(held)} at most: 1.00 for a row at each cut`;
      promised.column.style.height = `${100 * Math.min(1, total / held)}%`;
      did.value.textContent = percent(share);
      did.words.textContent = `of the way to the turn: ${number(lead(base), 2, true)} to ${number(lead(now), 2, true)}`;
      did.column.style.height = `${100 * Math.max(0, Math.min(1, share))}%`;
    } else {
      const next = key < 0 ? 0 : weight(now, state.query, key) * heads().length;
      promised.value.textContent = number(next);
      promised.words.textContent = `of ${number(heads().length)}, if you cut the thickest arrow`;
      promised.column.style.height = `${(100 * next) / heads().length}%`;
      did.value.textContent = "?";
      did.words.textContent = "of the way to the turn. Guess first, then cut.";
      did.column.style.height = "0";
    }
    promised.node.classList.toggle("cut-open", !made.length);
    did.node.classList.toggle("cut-over-top", share > 1);
    const few = `${count().toLocaleString("en")} ${count() === 1 ? "arrow" : "arrows"}`, best = data.pictures[state.picture].cuts.length;
    if (!made.length) lesson.textContent = "If the map keeps its promise, both columns rise alike.";
    else if (share >= 1) lesson.textContent = `Turned round with ${few}${state.own || !best ? "." : count() <= best ? ", level with the best known." : `; the best known is ${best}.`}`;
    else if (total >= 0.9 * held && Math.abs(share) < 0.1) lesson.textContent = "All was promised, and the answer hardly moved.";
    else lesson.textContent = `The map promised ${percent(total / held)}, the cut went ${percent(share)} of the way.`;
    lesson.classList.toggle("cut-won", share >= 1);
    score.textContent = `image ${state.own ? "of yours" : `${state.picture + 1} of ${data.pictures.length}`} · you ${count().toLocaleString("en")} · best known ${state.own || !best ? "–" : best}`;
  }

  // Colours from paper to attention, as many as are needed.
  let ramp = [], ink = "", frame = "";
  function readColours() {
    const style = getComputedStyle(stage.root), hex = (name) => [1, 3, 5].map((at) => parseInt(style.getPropertyValue(name).trim().slice(at, at + 2), 16));
    const [low, high] = [hex("--cut-low"), hex("--cut-high")];
    ramp = Array.from({ length: 64 }, (_, i) => `rgb(${low.map((from, c) => Math.round(from + (i / 63) * (high[c] - from)))})`);
    [ink, frame] = ["--live-ink", "--live-query"].map((name) => style.getPropertyValue(name).trim());
  }
  function drawHeads() {
    const kept = state.head;
    for (const one of small) {
      state.head = one.head;
      const pen = one.canvas.getContext("2d"), here = one.layer === state.layer && one.head === kept;
      const chosen = heads();
      for (let key = 0; key < N; key++) {
        const share = chosen.reduce((sum, head) => sum + weightOf(now, one.layer, head, state.query, key), 0) / chosen.length;
        const left = (key % columns) * CELL, top = Math.floor(key / columns) * CELL;
        pen.fillStyle = ramp[Math.round(63 * Math.min(1, share))];
        pen.fillRect(left, top, CELL, CELL);
        pen.fillStyle = ink;
        if (state.glyphs.some((glyph) => glyph.patch === key)) pen.fillRect(left + 5, top + 5, CELL - 10, CELL - 10);
        pen.strokeStyle = frame;
        pen.lineWidth = 2;
        if (key === state.query) pen.strokeRect(left + 1, top + 1, CELL - 2, CELL - 2);
      }
      const cuts = state.cuts.reduce((sum, made) => sum + made.arrows.filter((arrow) => Math.floor(arrow / (h * N * N)) === one.layer && (one.head === h ? false : Math.floor(arrow / (N * N)) % h === one.head)).length, 0);
      one.badge.textContent = cuts ? `✂ ${cuts}` : "";
      one.button.setAttribute("aria-pressed", String(here));
      one.button.setAttribute("aria-label", `layer ${one.layer + 1}, ${names(one.head)}${cuts ? `, ${cuts} cut` : ""}`);
    }
    state.head = kept;
    walkHeads(small.findIndex((one) => one.layer === state.layer && one.head === state.head));
  }

  function drawHistory() {
    history.replaceChildren(...state.cuts.slice(-SHOWN).map((one) => {
      const moved = way(lead(base), lead(base) + one.after - one.before);
      const bar = (name, share) => {
        const inner = el("i");
        inner.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
        return el("span", { class: `cut-small ${name}`, "aria-hidden": "true" }, inner);
      };
      return el("li", {}, el("span", { class: "cut-name" }, one.name.replace(/^layer (\d+), /, "L$1 ").replace(/row (\d+), column (\d+)/g, "r$1 c$2").replace(" to r", " → r")), bar("cut-small-promised", one.promise / one.rows), el("span", {}, number(one.promise)), bar("cut-small-did", moved), el("span", {}, number(one.after - one.before, 2, true)),
        el("button", { type: "button", class: "live-button", "aria-label": `Restore ${one.name}`, onclick: () => restore(one) }, "×"));
    }));
    if (!state.cuts.length) history.append(el("li", { class: "cut-none" }, "your first cut"));
  }

  let drawn = "";
  function draw() {
    const looks = `${state.picture} ${state.glyphs.map((glyph) => [glyph.patch, glyph.kind])} ${state.own}`;
    if (looks !== drawn) patches.draw(state.image, size, size); // most of the work, and seldom needed
    drawn = looks;
    patches.choose(state.query);
    const [x, y] = centre(state.query);
    mark.style.left = `${(100 * (x - 0.5)) / columns}%`;
    mark.style.top = `${(100 * (y - 0.5)) / rows}%`;
    patches.patches.forEach((one, p) => {
      const share = weight(now, state.query, p);
      one.style.setProperty("--cut-share", `${Math.round(38 * Math.min(1, share))}%`);
      one.classList.toggle("cut-glyph-here", state.glyphs.some((glyph) => glyph.patch === p));
    });
    drawArrows();
    drawBar();
    drawCards();
    drawHeads();
    drawHistory();
    const glyph = glyphHere();
    glyphButtons.forEach((one, kind) => {
      one.setAttribute("aria-pressed", String(Boolean(glyph) && glyph.kind === kind));
      one.setAttribute("aria-disabled", String(!glyph));
    });
    walkGlyphs(glyph ? glyph.kind : 0);
    glyphHint.textContent = glyph ? `change the one in ${place(glyph.patch, columns)}` : "make a glyph's patch the query first";
    headButton.textContent = state.head === h ? "Cut layer" : "Cut head";
    headButton.setAttribute("aria-label", `${headButton.textContent}: all arrows between patches in layer ${state.layer + 1}, ${names(state.head)}`);
    patchButton.setAttribute("aria-label", `Cut patch: in all layers and heads no other patch may look at ${place(state.query, columns)}`);
    thickest.textContent = state.head === h ? `✂ Cut the thickest arrow in ${h} heads` : "✂ Cut the thickest arrow";
    thickest.disabled = strongest() < 0;
    allBack.disabled = !state.cuts.length;
    told.textContent = sentence();
    values.update();
    stage.root.dataset.lead = lead(now); // in full, for the tests
  }

  function sentence() {
    const key = strongest(), self = weight(now, state.query, state.query), of = state.head === h ? `Mean of layer ${state.layer + 1}` : `Layer ${state.layer + 1}, head ${state.head + 1}`;
    const most = key < 0 ? "" : `${number(weight(now, state.query, key))} from ${place(key, columns)}, `;
    const gone = Array.from({ length: N }, (_, k) => k).filter((k) => k !== state.query && goneTo(state.query, k));
    const cannot = gone.length ? ` It may not look at ${gone.length > 2 ? `${gone.length} patches` : gone.map((k) => place(k, columns)).join(" and ")}.` : "";
    return `${of}: ${place(state.query, columns)} takes ${most}${number(self)} from itself; a row sums to one.${cannot}`;
  }

  function speak(first) {
    const share = way(lead(base), lead(now)), total = state.cuts.reduce((sum, one) => sum + one.promise, 0);
    const effect = state.cuts.length ? `The map promised ${number(total)}; the lead went from ${number(lead(base), 2, true)} to ${number(lead(now), 2, true)}, ${percent(share)} of the way to the turn. ` : "";
    stage.say(`${first}${effect}It says ${WORDS[lead(now) > 0 ? 1 : 0]}. ${sentence()}`);
  }

  // --- what a sentence of the page may ask for, counted from 1 as the text counts ---

  function patchOf(text) {
    const [row, column] = text.split("-").map(Number);
    if (!(row >= 1 && row <= rows && column >= 1 && column <= columns)) throw new Error(`cut.js: no patch ${text}`);
    return (row - 1) * columns + column - 1;
  }
  function set(values) {
    const known = { image: 1, layer: 1, head: 1, query: 1, cut: 1 };
    for (const name of Object.keys(values)) if (!known[name]) throw new Error(`cut.js: nothing is called ${name}`);
    const picture = Number(values.image ?? 1) - 1, layer = Number(values.layer ?? 1) - 1, head = values.head === "all" || !values.head ? h : Number(values.head) - 1;
    if (!data.pictures[picture] || !(layer >= 0 && layer < L) || !(head >= 0 && head <= h)) throw new Error("cut.js: no such image, layer or head");
    open(picture);
    Object.assign(state, { layer, head });
    if (values.query) state.query = patchOf(values.query);
    // cut=1.3.4-2.3-4,...: layer, head, query, key; or only the key of the chosen head
    for (const one of (values.cut ?? "").split(",").filter(Boolean)) {
      const parts = one.split(".");
      if (parts.length === 4) Object.assign(state, { layer: Number(parts[0]) - 1, head: Number(parts[1]) - 1, query: patchOf(parts[2]) });
      toggle(state.query, patchOf(parts.at(-1)));
    }
    draw();
    speak("");
  }

  readColours();
  onTheme(() => { readColours(); draw(); });
  open(0);
  draw();
  return { set };
});

// Two pictures of one photograph: what the map says, and how the answer changes without a patch. One
// frame lies on both and on the strip below, which has all patches in the map's order. Until its
// prediction is open, it shows the map alone.
vitbook.live.figure("occlusion", function (stage, data) {
  "use strict";

  const { decode, drag, el, number, place, svg, table } = vitbook.live;
  const { photographs, columns, top } = data,
    FIVE = 5,
    WORDS = ["none", "one", "two", "three", "four", "five"];
  const all = photographs.map(read),
    N = all[0].shares.length,
    ROWS = N / columns;
  const ask = stage.root.querySelector(".predict"),
    visited = new Set([0]);
  const state = { at: 0, patch: all[0].byMap[0] };
  let moved = false,
    skipped = false,
    found = { map: false, answer: false };

  // A photograph, and its patches in the order of the map and of the answer.
  function read(one) {
    const shares = decode(one.shares),
      drops = decode(one.drops),
      sizes = drops.map(Math.abs);
    const order = (values) => [...values.keys()].toSorted((a, b) => values[b] - values[a]);
    const byMap = order(shares),
      byMove = order(sizes),
      total = sizes.reduce((a, b) => a + b, 0);
    const five = { map: byMap.slice(0, FIVE), answer: byMove.slice(0, FIVE) };
    return {
      ...one,
      shares,
      drops,
      byMap,
      byMove,
      five,
      moves: sizes.map((size) => (sizes.length * size) / total),
      common: five.map.filter((patch) => five.answer.includes(patch)).length
    };
  }
  const here = () => all[state.at];
  const isOpen = () => !ask || skipped || ask.classList.contains("is-open");
  const guess = () =>
    ask && globalThis.kept
      ? WORDS.indexOf(globalThis.kept.load().answers[ask.dataset.predict]?.said)
      : -1;

  // --- words ---
  const nth = (count) =>
    `${count}${count % 100 > 10 && count % 100 < 14 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[count % 10] ?? "th")}`;
  const ofMap = (one, patch) => nth(one.byMap.indexOf(patch) + 1),
    ofMove = (one, patch) => nth(one.byMove.indexOf(patch) + 1);
  const percent = (share) => number(100 * share, 1),
    without = (one, patch) => one.sure * Math.exp(-one.drops[patch]);
  const shareOf = (one, patch) => number(one.shares[patch], 1);
  const strong = (words) => el("b", {}, words);
  function change(one, patch) {
    const [from, to] = [percent(one.sure), percent(without(one, patch))];
    return from === to
      ? `“${one.answer}” stays at ${to} %`
      : `“${one.answer}” ${Number(to) > Number(from) ? "rises" : "falls"} from ${from} to ${to} %`;
  }
  function todo() {
    const { byMap, byMove } = here();
    if (!moved)
      return "Move the frame over either picture: find the patch that moves the answer most.";
    if (state.patch === byMove[0])
      return found.map
        ? next()
        : "This one moves the answer most. Now the strongest patch of the map: does the answer need it?";
    if (found.answer && found.map) return next();
    return state.patch === byMap[0]
      ? "The map’s strongest patch. Now find the one that moves the answer most."
      : "Find the strongest green: the patch that moves the answer most.";
  }
  function next() {
    return visited.size < all.length
      ? "One photograph is one sample: take another."
      : "Three photographs are three samples. The section “Where nobody knows” has more.";
  }
  function told() {
    const one = here(),
      { patch } = state,
      at = place(patch, columns);
    if (!isOpen())
      return [
        `${at[0].toUpperCase()}${at.slice(1)}: ${ofMap(one, patch)} of ${N} in the map, with ${shareOf(one, patch)} times what it would get if all got alike.`
      ];
    if (!moved)
      return [
        `${one.is} Of the map’s five strongest patches `,
        strong(WORDS[one.common]),
        ` ${one.common > 1 ? "are" : "is"} among the five that move the answer most.`
      ];
    return [
      `${at[0].toUpperCase()}${at.slice(1)} in the mean colour: `,
      strong(change(one, patch)),
      `. It is ${ofMap(one, patch)} of ${N} in the map, ${ofMove(one, patch)} for the answer.`
    ];
  }

  // --- the elements ---
  const line = el("p", { class: "occ-todo" }),
    below = el("p", { class: "occ-told" });
  function picture(kind) {
    const image = el("img", { class: "occ-photo", alt: "", draggable: "false" });
    const cells = Array.from({ length: N }, (_, p) =>
      svg("rect", { x: p % columns, y: Math.floor(p / columns), width: 1, height: 1 })
    );
    const frames = svg("g"),
      chosen = svg("rect", { class: "occ-chosen", width: 1, height: 1 }),
      edge = svg("rect", { class: "occ-edge", width: 1, height: 1 });
    const layer = svg(
      "svg",
      { viewBox: `0 0 ${columns} ${ROWS}`, "aria-hidden": "true" },
      svg("g", { class: "occ-heat" }, ...cells),
      frames,
      edge,
      chosen
    );
    const node = el(
      "div",
      {
        class: `occ-picture occ-${kind}`,
        role: "slider",
        tabindex: "0",
        "aria-label": kind === "map" ? "Patch in the map" : "Patch in the picture of the answer",
        "aria-valuemin": 1,
        "aria-valuemax": N
      },
      image,
      layer
    );
    const under = (event) => {
      const box = node.getBoundingClientRect(),
        clip = (at, count) => Math.min(count - 1, Math.max(0, Math.floor(at * count)));
      return (
        clip((event.clientY - box.top) / box.height, ROWS) * columns +
        clip((event.clientX - box.left) / box.width, columns)
      );
    };
    follow(node, under);
    node.addEventListener("keydown", (event) => {
      const { patch } = state,
        column = patch % columns;
      const to = {
        ArrowLeft: column ? patch - 1 : patch,
        ArrowRight: column + 1 < columns ? patch + 1 : patch,
        ArrowUp: patch - columns,
        ArrowDown: patch + columns,
        Home: 0,
        End: N - 1
      }[event.key];
      take(event, to);
    });
    return { kind, node, image, cells, frames, boxes: [chosen, edge] };
  }
  function take(event, to) {
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (to >= 0 && to < N) choose(to, true);
  }
  // A mouse moves the frame by passing over, a finger by a tap or by resting and drawing.
  function follow(node, under) {
    node.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse") choose(under(event));
    });
    node.addEventListener("click", (event) => choose(under(event), true));
    drag(node, { move: (event) => choose(under(event)), hold: 200 });
  }
  const pictures = [picture("map"), picture("answer")];
  const titles = {
    map: el("p", { class: "occ-title occ-of-map" }, strong("The map: "), "the class token’s row"),
    answer: el("p", { class: "occ-title occ-of-answer" })
  };
  const blank = el("p", { class: "occ-blank" }, "your guess first");
  const bars = Array.from({ length: N }, () => [
    svg("rect", { class: "occ-up" }),
    svg("rect", { class: "occ-down" })
  ]);
  const mark = svg("rect", { class: "occ-mark", y: -1, width: 1, height: 2 });
  const strip = el(
    "div",
    {
      class: "occ-strip",
      role: "slider",
      tabindex: "0",
      "aria-label": "Patches in the map’s order",
      "aria-valuemin": 1,
      "aria-valuemax": N
    },
    svg(
      "svg",
      { viewBox: `0 -1 ${N} 2`, preserveAspectRatio: "none", "aria-hidden": "true" },
      ...bars.flat(),
      mark
    )
  );
  follow(strip, (event) => {
    const { left, width } = strip.getBoundingClientRect();
    return here().byMap[
      Math.min(N - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * N)))
    ];
  });
  strip.addEventListener("keydown", (event) => {
    const { byMap } = here(),
      rank = byMap.indexOf(state.patch),
      step = {
        ArrowLeft: -1,
        ArrowDown: -1,
        ArrowRight: 1,
        ArrowUp: 1,
        PageDown: -10,
        PageUp: 10,
        Home: -N,
        End: N
      }[event.key];
    take(event, step && byMap[Math.min(N - 1, Math.max(0, rank + step))]);
  });
  const note = el("p", { class: "occ-note" });
  const seen = el("img", { class: "occ-seen", alt: "", width: 72, height: 72 }),
    says = el("p", { class: "occ-says" });
  const where = el("b"),
    mapRank = el("b", { class: "occ-rank occ-of-map" }),
    mapWords = el("span"),
    moveRank = el("b", { class: "occ-rank occ-of-answer" }),
    moveWords = el("span");
  const ranks = el("p", { class: "occ-ranks" }, where, mapRank, mapWords, moveRank, moveWords);
  const squares = Array.from({ length: FIVE }, () => el("i")),
    counted = el("span");
  const common = el(
    "p",
    { class: "occ-common" },
    strong("In common"),
    el("span", { class: "occ-five", "aria-hidden": "true" }, ...squares),
    counted
  );
  const other = el(
    "button",
    { type: "button", class: "live-button", onclick: () => show((state.at + 1) % all.length) },
    "Another photograph"
  );
  const side = el("div", { class: "occ-side" }, ranks, common, other);
  const values = table(
    "As a table",
    ["patch", "in the map", "even shares", "for the answer", "answer without it, %"],
    () =>
      here().byMap.map((patch) => [
        place(patch, columns),
        ofMap(here(), patch),
        number(here().shares[patch], 2),
        ...(isOpen()
          ? [ofMove(here(), patch), percent(without(here(), patch))]
          : ["your guess first", ""])
      ]),
    () => `The ${here().name}, “${here().answer}” ${percent(here().sure)} %`
  );
  stage.box.append(
    el(
      "div",
      { class: "occ" },
      line,
      titles.map,
      titles.answer,
      ...pictures.map((one) => one.node),
      blank,
      el("div", { class: "occ-photograph" }, seen, says),
      side,
      strip,
      note,
      below,
      values.node
    )
  );

  // --- drawing ---
  function frame(kind, patch, line) {
    return svg("rect", {
      class: `occ-frame occ-of-${kind} occ-${line}`,
      x: (patch % columns) + 0.06,
      y: Math.floor(patch / columns) + 0.06,
      width: 0.88,
      height: 0.88
    });
  }
  function paint() {
    // what changes with the photograph
    const one = here(),
      open = isOpen();
    for (const { kind, node, image, cells, frames } of pictures) {
      const own = kind === "map" ? one.shares : one.moves,
        shown = kind === "map" || open;
      image.src = one.drawn;
      node.classList.toggle("occ-closed", !shown);
      cells.forEach((cell, p) =>
        cell.setAttribute("fill-opacity", shown ? 0.9 * Math.min(1, own[p] / top) : 0)
      );
      frames.replaceChildren(
        ...["map", "answer"]
          .filter((which) => which === "map" || open)
          .toSorted((a) => (a === kind ? 1 : -1))
          .flatMap((which) =>
            one.five[which].map((patch) => frame(which, patch, which === kind ? "own" : "other"))
          )
      );
    }
    const most = { map: one.shares[one.byMap[0]], answer: one.moves[one.byMove[0]] };
    one.byMap.forEach((patch, i) => {
      const up = one.shares[patch] / most.map,
        down = open ? one.moves[patch] / most.answer : 0;
      for (const [bar, y, height] of [
        [bars[i][0], -up, up],
        [bars[i][1], 0, down]
      ]) {
        for (const [name, value] of Object.entries({ x: i + 0.1, y, width: 0.8, height }))
          bar.setAttribute(name, value);
      }
    });
    titles.answer.replaceChildren(strong(`The answer, “${one.answer}”: `), "without a patch");
    seen.src = one.seen;
    says.replaceChildren(`What the model sees. It says “${one.answer}”: ${percent(one.sure)} %.`);
    note.textContent = open
      ? "Frames: the five strongest; dashed: the other picture’s. Bars: all patches in the map’s order."
      : "Frames: the five strongest. Bars: all patches in the map’s order.";
    const said = guess(),
      mine = open && state.at === 0 && said >= 0;
    squares.forEach((square, i) => {
      square.className = `${i < one.common ? "occ-is" : ""} ${mine && i === said - 1 ? "occ-said" : ""}`;
    });
    counted.replaceChildren(
      ...(mine ? [el("b", { class: "occ-you" }, `you said ${WORDS[said]}`), ", it is "] : []),
      strong(WORDS[one.common]),
      " of five"
    );
  }
  function draw() {
    const one = here(),
      { patch } = state,
      open = isOpen();
    stage.box.classList.toggle("occ-asks", !open);
    stage.box.classList.toggle("occ-elsewhere", !ask || !open || moved || state.at > 0 || skipped);
    for (const { node, boxes } of pictures) {
      for (const box of boxes) {
        box.setAttribute("x", patch % columns);
        box.setAttribute("y", Math.floor(patch / columns));
      }
      node.setAttribute("aria-valuenow", patch + 1);
    }
    mark.setAttribute("x", one.byMap.indexOf(patch));
    strip.setAttribute("aria-valuenow", one.byMap.indexOf(patch) + 1);
    const spoken = `${place(patch, columns)}: ${ofMap(one, patch)} in the map, ${shareOf(one, patch)} even shares${open ? `; ${ofMove(one, patch)} for the answer` : ""}`;
    for (const node of [strip, ...pictures.map((each) => each.node)])
      node.setAttribute("aria-valuetext", spoken);
    where.textContent = `Row ${Math.floor(patch / columns) + 1}, column ${(patch % columns) + 1}`;
    mapRank.textContent = ofMap(one, patch);
    mapWords.textContent = `in the map: ${shareOf(one, patch)} even shares`;
    moveRank.textContent = open ? ofMove(one, patch) : "";
    moveWords.textContent = open ? `for the answer: ${percent(without(one, patch))} %` : "";
    line.textContent = open ? todo() : "";
    below.replaceChildren(...told());
    values.update();
  }
  function choose(patch, speak) {
    if (patch === state.patch && (moved || !speak)) return;
    state.patch = patch;
    if (isOpen()) {
      moved = true;
      found.map ||= patch === here().byMap[0];
      found.answer ||= patch === here().byMove[0];
    }
    draw();
    if (speak) stage.say(`${line.textContent} ${below.textContent}`);
  }
  function show(at) {
    Object.assign(state, { at, patch: all[at].byMap[0] });
    visited.add(at);
    [moved, found] = [false, { map: false, answer: false }];
    paint();
    draw();
    stage.say(`${line.textContent} ${below.textContent}`);
  }

  // What a sentence asks for: photo, one of their names; patch, row-column.
  function set({ photo = photographs[0].name, patch, ...strange }) {
    const at = photographs.findIndex(({ name }) => name === photo),
      [row, column] = (patch ?? "1-1").split("-").map(Number);
    if (
      Object.keys(strange).length ||
      at < 0 ||
      !(row >= 1 && row <= ROWS && column >= 1 && column <= columns)
    )
      throw new Error("occlusion.js: there is no such setting");
    skipped = true;
    show(at);
    if (patch) choose((row - 1) * columns + column - 1, true);
  }

  if (ask) {
    addEventListener("beforeprint", () => stage.root.querySelector(".live-still").before(ask)); // on paper it comes first
    addEventListener("afterprint", () => stage.box.prepend(ask));
    let was = isOpen();
    new MutationObserver(() => {
      if (isOpen() === was) return;
      was = isOpen();
      show(0);
    }).observe(ask, { attributes: true, attributeFilter: ["class"] });
  }
  paint();
  draw();
  return { set, read: (at) => all[at] };
});

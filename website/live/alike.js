// Click a patch and see which patches have a like vector: once the patches are numbered, once each
// has the waves of its column and of its row.
vitbook.live.figure("alike", function (stage) {
  "use strict";

  const { board, el, number, place, table } = vitbook.live;
  const ROWS = 6,
    COLUMNS = 9,
    N = ROWS * COLUMNS,
    D = 64;
  const state = { patch: 2 * COLUMNS + 4, asked: false }; // numbers come with the first click

  // --- the mathematics of the page ---
  // Of the waves of two places a step apart, what sin and cos of dim numbers have in common.
  function common(step, dim) {
    let sum = 0;
    for (let i = 0; i < dim; i += 2) sum += Math.cos(step * 10000 ** (-i / dim));
    return sum / (dim / 2);
  }
  const row = (p) => Math.floor(p / COLUMNS),
    column = (p) => p % COLUMNS;
  const KINDS = [
    { name: "one address: numbered 0 to 53", like: (p, r) => common(p - r, D) },
    {
      name: "two addresses: column and row",
      like: (p, r) => (common(column(p) - column(r), D / 2) + common(row(p) - row(r), D / 2)) / 2
    }
  ];
  const alike = (kind, patch) => Array.from({ length: N }, (_, p) => KINDS[kind].like(p, patch));
  const short = (value) => number(value).replace(/^0/, "");

  // --- the elements ---
  const maps = KINDS.map(({ name }) => {
    const made = board({
      rows: ROWS,
      columns: COLUMNS,
      label: `${name}: the patch whose likes are shown`,
      pick
    });
    const range = el("small"),
      told = el("p");
    made.patches.forEach((patch) => {
      patch.append(el("span", { "aria-hidden": "true" }));
    });
    return {
      ...made,
      range,
      told,
      all: el(
        "div",
        { class: "alike-map" },
        el("p", { class: "alike-name" }, el("b", {}, name)),
        made.node,
        el(
          "p",
          { class: "alike-scale" },
          "similarity ",
          range,
          el("i", { class: "alike-colours" }),
          "1"
        ),
        told
      )
    };
  });
  const values = table(
    "The likeness as a table",
    ["patch", ...KINDS.map(({ name }) => name)],
    () => {
      const found = KINDS.map((_, kind) => alike(kind, state.patch));
      return found[0].map((_, p) => [place(p, COLUMNS), ...found.map((one) => number(one[p]))]);
    }
  );
  stage.box.append(el("div", { class: "alike" }, ...maps.map((map) => map.all), values.node));

  // --- drawing ---
  function draw() {
    maps.forEach((map, kind) => {
      const found = alike(kind, state.patch),
        least = Math.min(...found);
      map.choose(state.patch);
      map.patches.forEach((patch, p) => {
        patch.style.setProperty(
          "--alike-share",
          `${Math.round((55 * (found[p] - least)) / (1 - least))}%`
        );
        patch.firstChild.textContent = !state.asked
          ? ""
          : p === state.patch
            ? "1"
            : short(found[p]);
        patch.setAttribute(
          "aria-label",
          place(p, COLUMNS) + (state.asked ? `: similarity ${number(found[p])}` : "")
        );
      });
      map.range.textContent = number(least);
      map.told.textContent = state.asked
        ? sentence(found)
        : "The framed patch asks. Numbers come with your click.";
    });
    values.update();
  }
  // The neighbour below, and where the reading order breaks the one behind or before: there the
  // two tables differ.
  function sentence(found) {
    const p = state.patch,
      below = p + COLUMNS < N ? `below it ${number(found[p + COLUMNS])}` : "";
    const before = p && column(p) === 0 ? `end of the row above ${number(found[p - 1])}` : "";
    const behind =
      p + 1 < N
        ? `${column(p) === COLUMNS - 1 ? "start of the next row" : "to the right"} ${number(found[p + 1])}`
        : "";
    const words = [before, behind, below].filter(Boolean).join(", ");
    return words
      ? `${words[0].toUpperCase()}${words.slice(1)}.`
      : `To the left ${number(found[p - 1])}.`;
  }
  function pick(patch) {
    Object.assign(state, { patch, asked: true });
    draw();
    stage.say(
      `${place(patch, COLUMNS)}. ${KINDS.map(({ name }, kind) => `${name}: ${maps[kind].told.textContent}`).join(" ")}`
    );
  }

  // What a sentence asks for: row and column, counted from 1.
  function set(values) {
    const wanted = { row: "3", column: "5", ...values },
      r = Number(wanted.row) - 1,
      c = Number(wanted.column) - 1;
    const known = Object.keys(wanted).length === 2 && Number.isInteger(r + c);
    if (!known || r < 0 || r >= ROWS || c < 0 || c >= COLUMNS)
      throw new Error("alike.js: there is no such patch");
    pick(r * COLUMNS + c);
  }

  draw();
  return { set, alike };
});

// What the first screen says to who comes back: where, what, how long, what was left out, and how to
// forget it. The page holds this script behind the box that it fills, so that nothing moves.

"use strict"; // so that what is in the block stays in it

{
  const box = document.querySelector(".front-back");
  const { make } = kept;
  const chapters = JSON.parse(box.dataset.chapters); // {page, number, title, question, part, minutes}
  const DAY = 86_400_000;

  function day(when) {
    const midnight = new Date().setHours(0, 0, 0, 0);
    if (when >= midnight) return "today";
    if (when >= midnight - DAY) return "yesterday";
    const far = midnight - when > 6 * DAY;
    return `on ${new Date(when).toLocaleDateString("en", far ? { day: "numeric", month: "long" } : { weekday: "long" })}`;
  }

  // The same bar of sections as the list of the page has entries, filled up to where one was.
  function bar({ at, of }) {
    const parts = Array.from({ length: of }, (_, i) =>
      make("i", { class: i < at ? "is-read" : "" })
    );
    return make("span", { class: "back-bar", "aria-hidden": "true" }, ...parts);
  }

  function card(last, here, state) {
    const next = here && state.done[here.page] ? chapters[chapters.indexOf(here) + 1] : undefined;
    const name = here ? [make("b", {}, here.number), ` ${here.title}`] : [last.title];
    const when = last.when ? ` ${day(last.when)}` : "";
    const address = next
      ? `${next.page}.html`
      : `${last.page}.html${last.anchor && `#${last.anchor}`}`;
    const words = next
      ? [
          make("p", {}, `You finished`, " ", ...name, `${when}.`),
          make("p", { class: "back-title" }, next.question),
          make("p", {}, `Next: ${next.number}, ${next.title} · ${next.minutes} min`)
        ]
      : [
          make("p", {}, `You were here${when}, in `, ...name),
          make("p", { class: "back-title" }, last.section || last.title)
        ];
    if (!next && last.of) {
      const section = last.at ? `section ${last.at} of ${last.of}, ` : "";
      const left = here
        ? `${last.left} of ${here.minutes} minutes left`
        : `${last.left} minutes left`;
      words.push(bar(last), make("p", {}, section + left));
    }
    return make(
      "div",
      { class: "back-card" },
      ...words,
      make("a", { class: "front-button back-on", href: address }, "Go on")
    );
  }

  function leftOut(here, state) {
    const until = chapters.findLastIndex(({ page }) => state.done[page] || page === here?.page);
    const out = chapters
      .slice(0, Math.max(0, until))
      .filter(({ page }) => !state.done[page] && page !== here?.page);
    if (!out.length) return [];
    const links = out
      .slice(0, 3)
      .map(({ page, number, title }) => make("a", { href: `${page}.html` }, `${number}, ${title}`));
    const more = out.length > 3 ? ` and ${out.length - 3} more` : "";
    return [
      " Left out on the way: ",
      ...links.flatMap((link, i) => (i ? ["; ", link] : [link])),
      `${more}.`
    ];
  }

  function tiles(here, state) {
    const rows = Map.groupBy
      ? Map.groupBy(chapters, ({ part }) => part)
      : new Map([["", chapters]]);
    return make(
      "div",
      { class: "back-tiles" },
      ...[...rows.values()].map((row) =>
        make(
          "ul",
          {},
          ...row.map(({ page, number, title }) => {
            const done = Boolean(state.done[page]);
            const link = make(
              "a",
              {
                href: `${page}.html`,
                title,
                "aria-label": `${number}, ${title}${done ? ", read" : ""}`
              },
              number
            );
            return make(
              "li",
              { class: `${done ? "is-done" : ""} ${page === here?.page ? "is-here" : ""}` },
              link
            );
          })
        )
      )
    );
  }

  function forget() {
    if (
      !confirm(
        "Forget in this browser which chapters you have read, and where you were? Your answers stay."
      )
    )
      return;
    kept.change((state) => {
      for (const key of ["last", "seen", "spent", "done"]) delete state[key];
    });
  }

  function draw() {
    const state = kept.load();
    const last = state.last?.page ? state.last : undefined;
    const done = chapters.filter(({ page }) => state.done[page]);
    const back = Boolean(last || done.length);
    box.hidden = !back;
    box.parentElement.classList.toggle("is-back", back);
    if (!back) return;
    const here = chapters.find(({ page }) => page === last?.page);
    const button = make("button", { type: "button", class: "back-forget" }, "Forget where I was");
    button.addEventListener("click", forget);
    box.replaceChildren(
      ...(last ? [card(last, here, state)] : []),
      make(
        "p",
        { class: "back-count" },
        `${done.length} of ${chapters.length} chapters read.`,
        ...leftOut(here, state)
      ),
      tiles(here, state),
      make(
        "p",
        { class: "back-links" },
        make("a", { href: `${chapters[0].page}.html` }, `Start again at ${chapters[0].number}`),
        button
      )
    );
  }

  draw();
  document.addEventListener("kept-changed", draw);
  addEventListener("storage", draw);
  addEventListener("pageshow", draw);
}

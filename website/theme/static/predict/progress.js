// What the reader has answered so far (kept.js), shown in the boxes for it.

"use strict"; // so that what is in the block stays in it

{
  const { make } = kept;
  const SURE = { 50: "a guess", 70: "fairly sure", 90: "very sure", 99: "certain" };
  const ENOUGH = 10; // answers from which on something is said about the reader

  const count = (number) => (number === 0.5 ? "½" : String(number).replace(".5", "½"));

  function button(words, kind, act, attributes = {}) {
    const element = make("button", { type: "button", class: kind, ...attributes }, words);
    element.addEventListener("click", act);
    return element;
  }

  // Pages and questions that have other names now (book/moved.toml): what was kept under the old
  // ones is kept under the new ones. Nothing is left of the old, so this happens once.

  function carryOver(rows) {
    const named = (name, words) =>
      Object.entries(words).reduce(
        (said, [old, now]) => `-${said}-`.replace(`-${old}-`, `-${now}-`).slice(1, -1),
        name
      );
    const before = kept.load();
    const state = structuredClone(before);
    for (const [page, to, words] of rows) {
      const move = (all, old, now) => {
        if (old === now || !(old in all)) return;
        all[now] ??= all[old];
        delete all[old];
      };
      move(state.done, page, to);
      move(state.seen, page, to);
      move(state.spent, page, to);
      for (const id of Object.keys(state.answers)) {
        const now = id.startsWith(`${page}#`) ? to + id.slice(page.length) : named(id, words);
        move(state.answers, id, now);
      }
      if (state.last?.page !== page) continue;
      const { last } = state;
      state.last = { ...last, page: to, anchor: named(last.anchor ?? "", words) };
    }
    if (JSON.stringify(state) !== JSON.stringify(before)) {
      kept.change((memory) => Object.assign(memory, state));
    }
  }

  // How sure the reader was, and how right

  // For each level of being sure: how many answers have a mark, and how many of them were right.
  function calibration(answers) {
    const marked = Object.values(answers).filter(({ mark }) => mark !== undefined);
    return Object.keys(SURE)
      .map(Number)
      .map((level) => {
        const marks = marked.filter(({ sure }) => sure === level).map(({ mark }) => mark);
        return { level, of: marks.length, right: marks.reduce((sum, mark) => sum + mark, 0) };
      });
  }

  function judged(levels) {
    const sum = (value) => levels.reduce((all, one) => all + (one.level > 50 ? value(one) : 0), 0);
    const of = sum((one) => one.of);
    if (of < ENOUGH) {
      const needs = `That takes ${ENOUGH} marked answers that were more than a guess`;
      return `Too few to tell how well you know what you know. ${needs}; you have ${of || "none"}.`;
    }
    const sure = sum((one) => one.of * one.level) / of;
    const right = (100 * sum((one) => one.right)) / of;
    const known = `you were ${Math.round(sure)} % sure on average and ${Math.round(right)} % right`;
    const more = right - sure > 10 ? "You know more than you think." : "You know what you know.";
    return `Guesses left out, ${known}. ${sure - right > 10 ? "You are surer than right." : more}`;
  }

  function table(levels) {
    const rows = levels
      .filter(({ of }) => of)
      .map(({ level, of, right }) => {
        const style = `--right: ${(100 * right) / of}%; --sure: ${level}%`;
        const bar = make("span", { class: "progress-bar", "aria-hidden": "true", style });
        if (level === 50) bar.classList.add("is-guess");
        const name = level === 50 ? SURE[50] : `${SURE[level]}: ${level} %`;
        const head = make("th", { scope: "row" }, name);
        const share = make("td", {}, `${count(right)} of ${of} right`);
        return make("tr", {}, head, share, make("td", { class: "progress-drawn" }, bar));
      });
    const caption = make("caption", {}, "Your answers, by how sure you were (the mark on the bar)");
    return make("table", { class: "progress-table" }, caption, make("tbody", {}, ...rows));
  }

  // The boxes

  function chapterPart({ dataset: { page } }, state) {
    const done = Boolean(state.done[page]);
    const all = [...document.querySelectorAll("[data-predict]")]; // an opening figure asks, too
    const answered = all.filter((one) => one.dataset.predict in state.answers).length;
    const words = done ? "✓ Read to the end" : "I have read this chapter";
    const act = () =>
      kept.change(({ done: pages }) => {
        if (done) delete pages[page];
        else pages[page] = true;
      });
    const attributes = { "aria-pressed": String(done) };
    const home = `${document.documentElement.dataset.content_root}index.html#progress`;
    const link = make("a", { href: home }, "How sure, and how right");
    return [
      make(
        "p",
        {},
        all.length ? `${answered} of ${all.length} predictions of this page made. ` : "",
        answered ? link : ""
      ),
      button(words, "predict-button progress-done", act, attributes)
    ];
  }

  function forget() {
    if (!confirm("Forget all your answers, marks and chapters read in this browser?")) return;
    kept.change((state) =>
      Object.keys(state).forEach((key) => {
        delete state[key];
      })
    );
  }

  function drawBox(box) {
    const state = kept.load();
    const levels = calibration(state.answers);
    const focus = box.contains(document.activeElement) && document.activeElement.className;
    const onFront = box.dataset.page === undefined;
    const where = kept.works
      ? "Kept in this browser only; nothing is sent anywhere. "
      : "This browser keeps nothing: all is gone when you leave the page. ";
    const parts = onFront
      ? [
          make("p", { class: "progress-title" }, "You so far"),
          levels.some(({ of }) => of) ? table(levels) : "",
          make("p", {}, judged(levels))
        ]
      : chapterPart(box, state);
    parts.push(
      make("p", { class: "progress-note" }, where, button("Forget all", "progress-forget", forget))
    );
    const shown = !box.hidden || !box.childElementCount;
    box.replaceChildren(...parts);
    if (focus) box.querySelector(`[class="${focus}"]`)?.focus({ preventScroll: true });
    // whoever comes for the first time is not asked about what is not there yet, and nothing moves
    // when they answer
    const begun = Object.keys(state.answers).length || Object.keys(state.done).length;
    if (!onFront || (begun && shown)) box.hidden = false;
  }

  function drawAll() {
    document.querySelectorAll(".progress-box").forEach(drawBox);
  }

  carryOver(globalThis.bookMoved ?? []);
  drawAll();
  for (const [from, event] of [
    [document, "kept-changed"],
    [globalThis, "storage"],
    [globalThis, "pageshow"]
  ]) {
    from.addEventListener(event, drawAll);
  }

  globalThis.progress = { SURE, button, drawAll, kept, make };
}

// What the reader has answered so far: kept in this browser, and shown in the boxes for it.
// One entry of localStorage holds all:
//   answers  id -> {said, sure, mark}; mark is 1 (right), 0.5 (partly), 0 (wrong), or not yet there
//   done     page -> true
//   last     {page, title, anchor, section}: where the reader was last

"use strict"; // so that what is in the block stays in it

{
  const KEY = "attention-patch-by-patch.predictions.v1";
  const SURE = { 50: "a guess", 70: "fairly sure", 90: "very sure", 99: "certain" };
  const ENOUGH = 10; // answers from which on something is said about the reader

  const count = (number) => (number === 0.5 ? "½" : String(number).replace(".5", "½"));

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function button(words, kind, act, attributes = {}) {
    const element = make("button", { type: "button", class: kind, ...attributes }, words);
    element.addEventListener("click", act);
    return element;
  }

  // Keeping. Where the browser lets no page keep anything, it lasts as long as the page.

  const kept = {
    memory: {},
    works: true,

    load() {
      try {
        if (kept.works) kept.memory = JSON.parse(localStorage.getItem(KEY)) ?? {};
      } catch (error) {
        kept.works = error instanceof SyntaxError; // what is not ours is written over
      }
      return { answers: {}, done: {}, ...kept.memory };
    },

    change(edit) {
      kept.memory = kept.load();
      edit(kept.memory);
      try {
        localStorage.setItem(KEY, JSON.stringify(kept.memory));
      } catch {
        kept.works = false;
      }
      drawAll();
    },
  };

  // Pages and questions that have other names now (book/moved.toml): what was kept under the old
  // ones is kept under the new ones. Nothing is left of the old, so this happens once.

  function carryOver(rows) {
    const named = (name, words) =>
      Object.entries(words).reduce(
        (said, [old, now]) => `-${said}-`.replace(`-${old}-`, `-${now}-`).slice(1, -1),
        name,
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
    return Object.keys(SURE).map(Number).map((level) => {
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
    const rows = levels.filter(({ of }) => of).map(({ level, of, right }) => {
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
    const all = document.querySelectorAll("form.predict-form");
    const answered = [...all].filter((form) => form.hidden).length;
    const words = done ? "✓ Chapter done" : "I have done this chapter";
    const act = () => kept.change(({ done: pages }) => {
      if (done) delete pages[page];
      else pages[page] = true;
    });
    const attributes = { "aria-pressed": String(done) };
    return [
      make("p", {}, `${answered} of ${all.length} questions of this page answered.`),
      button(words, "predict-button progress-done", act, attributes),
    ];
  }

  function frontPart({ dataset }, state) {
    const chapters = JSON.parse(dataset.chapters);
    const root = document.documentElement.dataset.content_root;
    const parts = [];
    if (state.last) {
      const { page, title, anchor, section } = state.last;
      const href = `${root}${page}.html${anchor && `#${anchor}`}`;
      const link = make("a", { href }, section ? `${title}: ${section}` : title);
      parts.push(make("p", { class: "progress-on" }, "Go on where you stopped: ", link));
    }
    const items = chapters.map(([page, title]) => {
      const done = state.done[page];
      const number = /^\d+[a-z]?/.exec(title)?.[0] ?? title;
      const name = done ? `${title}, done` : title;
      const href = `${root}${page}.html`;
      const link = make("a", { href, "aria-label": name, title: name }, number);
      return make("li", { class: done ? "is-done" : "" }, link);
    });
    const done = chapters.filter(([page]) => state.done[page]).length;
    parts.push(make("p", {}, `${done} of ${chapters.length} chapters done.`));
    return [...parts, make("ul", { class: "progress-chapters" }, ...items)];
  }

  function forget() {
    if (!confirm("Forget all your answers, marks and chapters done in this browser?")) return;
    kept.change((state) => Object.keys(state).forEach((key) => { state[key] = {}; }));
  }

  function drawBox(box) {
    const state = kept.load();
    const answers = Object.values(state.answers);
    const levels = calibration(state.answers);
    const waiting = answers.filter(({ mark }) => mark === undefined).length;
    const focus = box.contains(document.activeElement) && document.activeElement.className;
    const onFront = box.dataset.chapters !== undefined;
    const where = kept.works
      ? "Kept in this browser only; nothing is sent anywhere. "
      : "This browser keeps nothing: all is gone when you leave the page. ";
    const parts = [
      make("p", { class: "progress-title" }, onFront ? "You so far" : "How sure, and how right"),
      ...(onFront ? frontPart(box, state) : chapterPart(box, state)),
      answers.length > waiting ? table(levels) : "",
      make("p", {}, judged(levels), waiting ? ` Not yet marked by you: ${waiting}.` : ""),
      make("p", { class: "progress-note" }, where, button("Forget all", "progress-forget", forget)),
    ];
    box.replaceChildren(...parts);
    if (focus) box.querySelector(`[class="${focus}"]`)?.focus();
    // whoever comes for the first time is not asked about what is not there yet
    const begun = state.last || answers.length || Object.keys(state.done).length;
    if (begun || !onFront) box.hidden = false;
  }

  function drawAll() {
    document.dispatchEvent(new Event("kept-changed")); // predict.js draws its questions
    document.querySelectorAll(".progress-box").forEach(drawBox);
  }

  // Where the reader is: the last heading above the middle of the window.
  function rememberPlace() {
    const box = document.querySelector(".progress-box[data-page]");
    if (!box) return;
    const above = [...document.querySelectorAll("section section[id] > :is(h2, h3)")]
      .filter((heading) => heading.getBoundingClientRect().top < innerHeight / 2)
      .pop();
    const words = above?.cloneNode(true);
    const silent = words?.querySelectorAll(".headerlink, [aria-hidden=true], annotation") ?? [];
    silent.forEach((part) => part.remove());
    const { page, title } = box.dataset;
    const section = words?.textContent.trim() ?? "";
    kept.change((state) => {
      state.last = { page, title, anchor: above?.parentElement.id ?? "", section };
    });
  }

  carryOver(globalThis.bookMoved ?? []);
  drawAll();
  addEventListener("storage", drawAll); // another window of the book
  addEventListener("pageshow", drawAll);
  addEventListener("pagehide", rememberPlace);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") rememberPlace();
  });

  globalThis.progress = { SURE, button, drawAll, kept, make };
}

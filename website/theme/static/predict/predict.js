// Predictions: ask, then open. Without this script, and on paper, all is open.
// progress.js, which is loaded before, keeps the answers.

"use strict"; // so that what is in the block stays in it

{
  const { SURE, button, drawAll, kept, make } = globalThis.progress;
  const LEVELS = { 50: "a guess", 70: "fairly", 99: "certain" };

  const copied = (node) => [...node.cloneNode(true).childNodes];
  const strong = (...content) => make("strong", {}, ...content);

  // The three ways to answer. Each has the field, what was said there (empty: nothing yet), how that
  // is shown, the longest that can be said, and what to do; the first two know the answer. A number
  // has the words of its button, too, and how wide they may become.

  function byChoice(group) {
    const { answer, choices: written } = group.dataset;
    const choices = JSON.parse(written);
    const list = group.querySelector(".predict-choices");
    const items = [...list.children].map((item) => item.querySelector("p") ?? item);
    const lengths = items.map((item) => item.textContent.length);
    const shown = (said) => copied(items[choices.indexOf(said)]);
    const field = make("fieldset", {
      class: "predict-choices",
      role: "radiogroup",
      "aria-label": "Your guess"
    });
    field.append(
      ...choices.map((value) => {
        const input = make("input", { type: "radio", name: "said", value });
        return make("label", {}, input, make("span", {}, ...shown(value)));
      })
    );
    list.replaceWith(field);
    return {
      field,
      todo: "Tap your guess, then look.",
      shown,
      longest: choices[lengths.indexOf(Math.max(...lengths))],
      said: () => field.querySelector("input:checked")?.value ?? "",
      knows: (said) => choices.includes(said),
      mark: (said) => Number(said === answer),
      told: (said) =>
        said === answer ? ["That is right."] : ["Right is ", strong(...shown(answer)), "."]
    };
  }

  // The numbers of a track: whole ones where there is room for them; "log" where each step multiplies.
  function numbers([from, to, log]) {
    const [low, high] = [Number(from), Number(to)];
    const step = Math.max((high - low) / 100, high - low < 10 ? 0 : 1);
    const size = log ? 100 : Math.round((high - low) / step);
    const all = Array.from({ length: size + 1 }, (_, at) => {
      const value = log ? low * (high / low) ** (at / size) : low + at * step;
      return log && value >= 10
        ? Math.round(value)
        : Number(value.toPrecision(log && low >= 1 ? 1 : 3));
    });
    return [...new Set(all)];
  }

  function byNumber(group) {
    const { number, within, track, unit = "" } = group.dataset;
    const right = Number(number),
      log = track.endsWith("log");
    const values = numbers(track.split(" "));
    const counted = (value) => Number(value).toLocaleString("en");
    const named = (value) => `${counted(value)}${unit && ` ${unit}`}`;
    const place = (value) => {
      const after = values.findIndex((one) => one >= value);
      const at =
        after < 1
          ? Math.max(after, 0)
          : after - (values[after] - value) / (values[after] - values[after - 1]);
      return `--at: ${at / (values.length - 1)}`;
    };
    const ring = make("input", {
      type: "range",
      name: "said",
      min: 0,
      max: values.length - 1,
      value: 0,
      "aria-label": "Your guess"
    });
    const ends = make(
      "span",
      { class: "ask-ends" },
      make("span", {}, named(values[0])),
      make("span", {}, named(values.at(-1)))
    );
    const bubble = make("output", { style: place(values[0]) });
    const field = make("div", { class: "ask-track" }, bubble, ring, ends);
    let moved = false; // the first place counts as none
    const value = () => values[ring.value];
    const show = () => {
      bubble.textContent = moved ? named(value()) : "";
      bubble.style = place(value());
      ring.setAttribute("aria-valuetext", moved ? named(value()) : "no guess yet");
    };
    ring.addEventListener("input", () => {
      moved = true;
      show();
    });
    show();
    const off = (said) => {
      const high = said > right;
      if (!log)
        return `${named(Number(Math.abs(said - right).toPrecision(3)))} too ${high ? "high" : "low"}`;
      const times = Number((high ? said / right : right / said).toPrecision(2));
      return `${times === 1 ? "a little" : `${times} times`} too ${high ? "large" : "small"}`;
    };
    const near = (said) => Math.abs(said - right) <= Number(within) + 1e-9;
    return {
      field,
      todo: "Drag the ring to your guess, and keep it.",
      keeps: (said) => `Keep ${unit.length < 3 ? named(said) : counted(said)}`, // 50 %, but 6.7
      widest: values.toSorted((a, b) => counted(b).length - counted(a).length)[0],
      said: () => (moved ? String(value()) : ""),
      reset: () => {
        moved = false;
        show();
      },
      knows: (said) => Number.isFinite(Number(said)),
      shown: (said) => [named(said)],
      longest: String(values.at(-1)),
      mark: (said) => Number(near(said)),
      told: (said) => {
        if (Number(said) === right) return ["That is right."];
        return [
          "It is ",
          strong(named(number)),
          `: your guess is ${off(said)}${near(said) ? ", near enough" : ""}.`
        ];
      },
      drawn: (said) =>
        make(
          "div",
          { class: "ask-scale", "aria-hidden": "true" },
          make("i", { class: "is-answer", style: place(right) }, named(number)),
          make("i", { class: "is-said", style: place(Number(said)) })
        )
    };
  }

  function inWords() {
    const field = make("textarea", {
      name: "said",
      rows: "2",
      "aria-label": "Your guess, in a few words"
    });
    return {
      field: make("div", { class: "ask-words" }, field),
      todo: "Write your guess, then look.",
      said: () => field.value.trim(),
      knows: () => true,
      shown: (said) => [`“${said}”`],
      longest: "",
      told: () => []
    };
  }

  // Where there is something to tell: what was said, how sure, and how far off it is.
  function verdict(way, { said, sure }) {
    const parts = [
      make("span", { class: "ask-ring" }),
      "You said ",
      strong(...way.shown(said)),
      sure ? `, ${SURE[sure]}. ` : ". ",
      ...way.told(said)
    ];
    return [make("p", {}, ...parts), way.drawn?.(said) ?? ""];
  }

  const asked = document.querySelectorAll(".live[data-predict]").length; // above the first of these

  function ask(group, at, all) {
    const { predict: id, choices, number } = group.dataset;
    const way = choices ? byChoice(group) : number ? byNumber(group) : inWords();
    const rest = document.querySelector(`#${group.id} + .ask-more + .ask-rest`);
    const explained = group.querySelector(".predict-explained");
    let looked = false; // without a guess

    const skip = button("skip, and look", "ask-link ask-skip", () => {
      look();
      said.focus({ preventScroll: true });
    });
    const skipAll = button("read without guessing", "ask-link", () =>
      kept.change((state) => {
        state.read = true;
      })
    );
    const hint = make(
      "p",
      { class: "ask-hint" },
      make("span", {}, `${way.todo} `),
      make("span", {}, skip, asked + at ? "" : skipAll)
    );
    const opener = make("button", { class: "predict-button", value: "look" });
    if (way.keeps) opener.dataset.widest = way.keeps(way.widest);
    const sure = Object.entries(LEVELS).map(([value, words]) => make("button", { value }, words));
    const surely = make(
      "span",
      { class: "ask-sure", role: "group", "aria-label": "Say how sure you are, and look" },
      ...sure
    );
    const opens = make(
      "div",
      { class: "ask-look" },
      make("small", { "aria-hidden": "true" }, "or say how sure:"),
      opener,
      surely
    );
    const form = make(
      "form",
      { class: "ask-asked", autocomplete: "off" },
      way.field,
      make("div", { class: "ask-row" }, hint, opens)
    );
    const said = make("div", { class: "ask-said", tabindex: "-1", role: "status" });
    const again = button("take it back", "ask-link", () => {
      looked = false;
      kept.change(({ answers }) => delete answers[id]);
      form.querySelector("input, textarea").focus();
    });
    const guess = button("ask me first", "ask-link", () =>
      kept.change((state) => delete state.read)
    );
    const back = make("p", { class: "ask-back" }, again, guess);

    function look() {
      looked = true;
      draw();
    }

    function chosen() {
      const now = way.said();
      group.classList.toggle("is-chosen", Boolean(now));
      opener.textContent = now && way.keeps ? way.keeps(now) : "Look";
    }

    function draw() {
      const { answers, read } = kept.load();
      const answer = answers[id] && way.knows(answers[id].said) ? answers[id] : null;
      const open = Boolean(answer || looked || read);
      if (!open && group.matches(".is-open")) {
        form.reset();
        way.reset?.();
      }
      // before it is open, the longest that it may say keeps its room
      const right = group.querySelector(".predict-right");
      said.replaceChildren(
        ...(answer || !open
          ? verdict(way, answer ?? { said: way.longest, sure: 70 })
          : right
            ? [make("p", {}, "The answer: ", strong(...copied(right)), ".")]
            : [])
      );
      again.hidden = open && !answer;
      guess.hidden = !read || at > 0;
      group.classList.toggle("is-open", open);
      if (rest) rest.hidden = open ? false : "until-found";
      chosen();
    }

    form.addEventListener("input", chosen);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const { value } = event.submitter;
      if (!way.said()) return form.querySelector("input, textarea").focus();
      const answer = { said: way.said() };
      if (value in SURE) answer.sure = Number(value);
      if (way.mark) answer.mark = way.mark(answer.said);
      kept.change(({ answers }) => {
        answers[id] = answer;
      });
      return said.focus({ preventScroll: true });
    });
    // a link, or the browser's own search, leads into what is folded
    for (const name of ["arrive", "beforematch"]) rest?.addEventListener(name, look);
    document.addEventListener("kept-changed", draw);

    group.querySelector(".ask-asked").replaceWith(form);
    explained.prepend(said);
    explained.append(back);
    group
      .querySelector(".predict-title")
      .append(
        " ",
        make("span", { class: "predict-count" }, `${asked + at + 1} of ${asked + all.length}`)
      );
    draw();
  }

  document.querySelectorAll(".predict[data-predict]").forEach(ask);

  // From the search one comes for what it found: all of that section is open.
  if (location.search === "?found") {
    document
      .getElementById(decodeURIComponent(location.hash.slice(1)))
      ?.querySelectorAll(".ask-rest")
      .forEach((rest) => rest.dispatchEvent(new Event("arrive")));
  }
  drawAll();
}

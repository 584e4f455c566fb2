// Experiments with the model that trains in the page: a setting, a prediction, what happened here,
// and in how many of the recorded runs it was so (website/live/train_experiments.py).
(function () {
  "use strict";
  const { el } = vitbook.live;
  const HAPPENED = "What happened. ";

  // "93 to 98", or "100"
  const range = ([low, high]) => (low === high ? `${low}` : `${low} to ${high}`);

  // list: as train_experiments.py gives them; open(one): makes its setting; play(): lets it run.
  function experiments(list, { open, play }) {
    let current = null,
      guess = null;
    const asked = el("p"),
      choices = el("div", { class: "train-choices" }),
      verdict = el("div", { class: "train-verdict", role: "status", tabindex: "-1" });
    const asks = el(
      "div",
      { class: "train-asks-first", hidden: true },
      asked,
      el("div", { class: "train-turn" }, choices, verdict)
    );
    const turn = verdict.parentNode; // keeps the room of what will be said in it
    const buttons = new Map(
      list.map((one) => [
        one,
        el(
          "button",
          {
            type: "button",
            class: "train-name",
            "aria-pressed": "false",
            onclick: () => open(one)
          },
          one.name
        )
      ])
    );
    const groups = [...new Set(list.map(({ group }) => group))].map((group) =>
      el(
        "div",
        { class: "train-group" },
        el("p", {}, group),
        el("div", {}, ...list.filter((one) => one.group === group).map((one) => buttons.get(one)))
      )
    );

    // What is said of a run that has ended: its own percentages, one for each read, and its seed.
    function said(values, seed, guess) {
      const { told, ranges, held, holds, runs, seeds, answer, choices: words } = current,
        fill = (by) => told.replace(/\{(\d)\}/g, (_, i) => by[i]),
        rules = ranges.map((_, i) =>
          holds
            .filter(([of]) => of === i)
            .map(([, sign, bound]) => `${sign === "<" ? "below" : "above"} ${bound}`)
            .join(" and ")
        ),
        fits = holds.every(([i, sign, bound]) =>
          sign === "<" ? values[i] < bound : values[i] > bound
        ),
        was = guess === answer ? "So it was." : `It was: ${words[answer]}.`,
        yours = guess === null ? "" : `You said: ${words[guess]}. `,
        same = fits ? `${was} The same verdict` : `“${words[answer]}” was the verdict`,
        [first, last] = seeds;
      return [
        `Here: ${fill(values)}${fits ? "" : " This run is an exception."}`,
        `${yours}${same} in ${held} of ${runs} recorded runs; in all ${runs}: ${fill(ranges.map(range))}`,
        `“${words[answer]}” stands for: ${fill(rules)} Recorded: seeds ${first} to ${last}; here: seed ${seed}. Another seed is another run.`
      ];
    }
    function ended(values, seed) {
      const [here, all, rule] = said(values, seed, guess);
      verdict.replaceChildren(
        el("p", {}, el("b", {}, HAPPENED), here),
        el("p", {}, all),
        el("p", { class: "train-note" }, rule)
      );
      const mine = choices.contains(document.activeElement);
      choices.hidden = true;
      if (mine) verdict.focus({ preventScroll: true }); // what had the focus is gone
    }

    function choose(i) {
      guess = i;
      [...choices.children].forEach((button, at) =>
        button.setAttribute("aria-pressed", String(at === guess))
      );
    }

    return {
      node: el("div", { class: "train-experiments" }, ...groups),
      asks,
      ended,
      // The experiment that the figure is in, or null.
      set(one) {
        if (one !== current) guess = null;
        current = one;
        asks.hidden = !one;
        for (const [each, button] of buttons)
          button.setAttribute("aria-pressed", String(each === one));
        choices.hidden = false;
        verdict.replaceChildren();
        if (!one) return;
        const likely = said(
          one.ranges.map(([, high]) => high),
          9999,
          one.answer ? 0 : 1
        );
        turn.dataset.room = HAPPENED + likely.join("\n");
        asked.replaceChildren(el("b", {}, "Predict, then run. "), one.ask);
        choices.replaceChildren(
          ...one.choices.map((words, i) =>
            el(
              "button",
              {
                type: "button",
                class: "live-button",
                onclick() {
                  choose(i);
                  play();
                }
              },
              words
            )
          )
        );
        choose(guess);
      }
    };
  }

  vitbook.trainExperiments = experiments;
})();

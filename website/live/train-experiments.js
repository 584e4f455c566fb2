// Experiments with the model that trains in the page: a setting, a prediction, what happened here,
// and in how many of the recorded runs it was so (website/live/train_experiments.py).
(function () {
  "use strict";
  const { el } = vitbook.live;

  // "93 to 98", or "100"
  const range = ([low, high]) => (low === high ? `${low}` : `${low} to ${high}`);

  // list: as train_experiments.py gives them; open(one): makes its setting; play(): lets it run.
  function experiments(list, { open, play }) {
    let current = null,
      guess = null,
      found = null;
    const asks = el("div", { class: "train-asks-first", hidden: true });
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
        ...list.filter((one) => one.group === group).map((one) => buttons.get(one))
      )
    );

    // What is said of a run that has ended: its own percentages, one for each read.
    function ended(values) {
      const { told, ranges, held, holds, runs, answer, choices } = current,
        fill = (by) => told.replace(/\{(\d)\}/g, (_, i) => by[i]),
        yours = `You said: ${choices[guess]}. `,
        was = guess === answer ? "So it was." : `It was: ${choices[answer]}.`,
        fits = holds.every(([i, sign, bound]) =>
          sign === "<" ? values[i] < bound : values[i] > bound
        );
      found = [
        el(
          "p",
          {},
          el("b", {}, "What happened. "),
          `Here: ${fill(values)}`,
          fits ? "" : " This run is an exception."
        ),
        el(
          "p",
          {},
          `In ${runs} recorded runs, and so in ${held} of them: ${fill(ranges.map(range))} `,
          guess === null ? "" : yours + was
        )
      ];
      draw();
    }

    function draw() {
      for (const [one, button] of buttons)
        button.setAttribute("aria-pressed", String(one === current));
      asks.hidden = !current;
      if (!current) return;
      asks.replaceChildren(
        el("p", {}, el("b", {}, "Predict, then run. "), current.ask),
        el(
          "div",
          { class: "train-choices" },
          ...current.choices.map((words, i) =>
            el(
              "button",
              {
                type: "button",
                class: "live-button",
                "aria-pressed": String(guess === i),
                disabled: found !== null,
                onclick() {
                  guess = i;
                  draw();
                  play();
                }
              },
              words
            )
          )
        ),
        ...(found ?? [])
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
        found = null;
        draw();
      }
    };
  }

  vitbook.trainExperiments = experiments;
})();

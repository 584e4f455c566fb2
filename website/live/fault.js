// Name the fault: the curves of a recorded training beside the healthy one, tests to run, and twelve
// faults of which one is the cause.
vitbook.live.figure("fault", function (stage, data) {
  "use strict";

  const { decodeAll, el, number, rove, svg, table } = vitbook.live;
  const { loss, accuracy, late, trained, seeds, values, signs, curves } = decodeAll(data.arrays);
  const COUNT = data.patients.length,
    TESTS = data.tests.map(([key, group, name, means, digits, zero], at) => ({
      at,
      key,
      group,
      name,
      means,
      digits,
      zero
    }));
  const HIGHEST = 1.6; // of the axis of losses
  const letter = (p) => String.fromCharCode(65 + p); // the clinic's page has numbers, in another order
  const shown = (value) => `${number(100 * value, 1)}\u00a0%`;
  // Patient p has row p + 1 of all arrays: row 0 is the healthy one.
  const row = (array, p) =>
    array.slice((p + 1) * (array.length / (COUNT + 1)), (p + 2) * (array.length / (COUNT + 1)));
  const value = (p, t) => values[(p + 1) * TESTS.length + t],
    sign = (p, t) => signs[(p + 1) * TESTS.length + t];
  const said = (p, t) => number(value(p, t), TESTS[t].digits);
  const named = (p) => data.faults[data.patients[p]][0];
  const quoted = (t) => `\u201c${TESTS[t].name}\u201d`;
  const both = (words) =>
    words.length < 2
      ? words.join("")
      : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const list = (ps) => both(ps.map((p) => `\u201c${named(p)}\u201d`));
  const all = Array.from({ length: COUNT }, (_, p) => p),
    others = (p) => all.filter((q) => q !== p);

  // --- what findings allow one to conclude ---
  // Patients whose own findings are the same in these tests.
  const alike = (p, tests) => all.filter((q) => tests.every((t) => sign(q, t) === sign(p, t)));
  // The fewest of these tests that leave one fault, with the one that shows the cause if it can be;
  // null where all of them leave more.
  function fewest(p, tests) {
    if (alike(p, tests).length > 1) return null;
    const cause = data.faults[data.patients[p]][3],
      sorted = [...tests.filter((t) => t === cause), ...tests.filter((t) => t !== cause)];
    let sets = [[]];
    for (;;) {
      const found = sets.find(
        (set) =>
          alike(
            p,
            set.map((i) => sorted[i])
          ).length === 1
      );
      if (found) return found.map((i) => sorted[i]);
      sets = sets.flatMap((set) =>
        sorted.map((_, i) => [...set, i]).filter((one) => !(one.at(-1) <= set.at(-1)))
      );
    }
  }
  const differs = (p, t) => sign(p, t) !== sign(-1, t);
  // A finding beside the healthy one, in words.
  const beside = (p, t) =>
    `${differs(p, t) ? "differs from healthy" : TESTS[t].zero ? "not 0, like healthy" : "like healthy"} ${said(-1, t)}`;
  const every = TESTS.map(({ at }) => at),
    best = all.map((p) => fewest(p, every));

  // done: "right" or "shown"; then `used` tests were run, `left` faults were not ruled out
  const fresh = () =>
    all.map(() => ({ run: new Set(), wrong: 0, done: "", told: "", used: 0, left: 0 }));
  let patients = fresh(),
    at = 0;
  const tests = () => [...patients[at].run],
    over = () => patients.every((one) => one.done);

  // --- the elements ---
  const title = el("b"),
    score = el("span"),
    head = el("p", { class: "fault-head", tabindex: "-1" }, title, " ", score);
  function plot(words, top, bottom) {
    const lines = ["fault-healthy", "fault-patient"].map((look) =>
      svg("polyline", { class: look })
    );
    const image = svg(
      "svg",
      { viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img" },
      ...lines
    );
    const node = el(
      "div",
      { class: "fault-plot" },
      el("p", { "aria-hidden": "true" }, words),
      el(
        "div",
        { class: "fault-frame" },
        image,
        el("small", { class: "fault-top", "aria-hidden": "true" }, top),
        el("small", { class: "fault-bottom", "aria-hidden": "true" }, bottom)
      ),
      el(
        "p",
        { class: "fault-x", "aria-hidden": "true" },
        el("span", {}, "update 1"),
        el("span", {}, String(data.steps))
      )
    );
    return {
      node,
      draw(curve, most, label) {
        const point = (y, i, { length }) =>
          `${(100 * (i + 0.5)) / length},${100 - (100 * y) / most}`;
        [-1, at].forEach((p, i) =>
          lines[i].setAttribute("points", Array.from(row(curve, p)).map(point).join(" "))
        );
        image.setAttribute("aria-label", label);
      }
    };
  }
  const losses = plot("training loss", String(HIGHEST), "0"),
    right = plot("right on validation images", "100\u00a0%", "0");
  const facts = el("div", { class: "fault-facts" });

  const buttons = TESTS.map((test) => {
    const result = el("b"),
      healthy = el("small");
    const node = el(
      "button",
      { type: "button", class: "fault-test", onclick: () => run(test.at) },
      el("span", {}, test.name),
      " ",
      result,
      " ",
      healthy
    );
    return { node, result, healthy };
  });
  const groups = [...new Set(TESTS.map(({ group }) => group))].map((group) => {
    const items = TESTS.filter((test) => test.group === group).map((test) => buttons[test.at].node);
    const box = el(
      "div",
      {
        class: "fault-tests",
        role: "toolbar",
        "aria-orientation": "vertical",
        "aria-label": `Tests: ${group}`
      },
      el("p", { "aria-hidden": "true" }, group),
      ...items
    );
    rove(box, items, 1, () => {})(0);
    return box;
  });

  const radios = data.faults.map(([name, line]) => {
    const input = el("input", { type: "radio", name: "fault-named", onchange: draw });
    const out = el("small", { class: "fault-out" });
    return {
      input,
      name,
      node: el(
        "label",
        { class: "fault-name" },
        input,
        el("span", {}, el("span", { class: "fault-what" }, name), out, el("code", {}, line))
      ),
      out
    };
  });
  const strike = el("input", {
    type: "checkbox",
    onchange() {
      draw();
      stage.say(count());
    }
  });
  const button = (words, call, look = "live-button") =>
    el("button", { type: "button", class: look, onclick: call }, words);
  const answer = button("Name it", name, "live-button live-first"),
    show = button("Show the answer", () => end("shown"));
  const next = button("", () => {
      follow();
      head.focus();
    }),
    told = el("p", { class: "fault-told" });
  const where = el("p", { class: "fault-now" });
  const means = el(
    "details",
    { class: "live-table fault-means" },
    el("summary", {}, "What the tests do"),
    el("dl", {}, ...TESTS.flatMap((test) => [el("dt", {}, test.name), el("dd", {}, test.means)]))
  );
  const numbers = table(
    "The curves as a table",
    ["update", "loss", "healthy", "right", "healthy"],
    () => {
      const points = [1, 2, 3, 4].map((quarter) => quarter / 4);
      const last = (array, p, share) => row(array, p)[Math.round(share * row(array, p).length) - 1];
      return points.map((share) => [
        String(share * data.steps),
        ...[at, -1].map((p) => number(last(loss, p, share), 3)),
        ...[at, -1].map((p) => shown(last(accuracy, p, share)))
      ]);
    }
  );
  const marks = table("Your score", ["patient", "named", "tests", "fewest"], () =>
    all
      .filter((p) => patients[p].done)
      .map((p) => {
        const { done, used, left, wrong } = patients[p];
        return [
          letter(p),
          done === "shown"
            ? "shown"
            : `${left > 1 ? "without proof" : "with proof"}${wrong ? `, ${wrong} wrong before` : ""}`,
          String(used),
          String(best[p].length)
        ];
      })
  );
  stage.box.append(
    el(
      "div",
      { class: "fault" },
      head,
      where,
      el(
        "div",
        { class: "fault-curves" },
        el(
          "p",
          { class: "fault-key", "aria-hidden": "true" },
          el("i", { class: "fault-key-patient" }),
          "this patient ",
          el("i", { class: "fault-key-healthy" }),
          "healthy"
        ),
        losses.node,
        right.node,
        facts
      ),
      el(
        "div",
        { class: "fault-ordered" },
        el(
          "p",
          { class: "fault-rule" },
          "A finding differs if it is more than 0.3 from the healthy one; with \u201c0 or not\u201d, only if it is 0."
        ),
        means,
        ...groups
      ),
      el(
        "div",
        { class: "fault-side" },
        el(
          "fieldset",
          { class: "fault-names" },
          el("legend", {}, "Which fault is it?"),
          el("label", { class: "fault-strike" }, strike, "strike out what the findings rule out"),
          ...radios.map((one) => one.node)
        ),
        el("div", { class: "fault-buttons" }, answer, show, next),
        told
      )
    ),
    numbers.node,
    marks.node
  );

  // --- what a reader does ---
  function run(t) {
    patients[at].run.add(t);
    draw();
    stage.say(`${finding(t)}. ${count()}`);
  }
  const finding = (t) => `${TESTS[t].name}: ${said(at, t)}, ${beside(at, t)}`;
  const count = () => `${plural(alike(at, tests()).length, "fault")} left of ${COUNT}.`;
  function name() {
    const guess = data.patients.indexOf(radios.findIndex(({ input }) => input.checked));
    if (guess === at) return end("right");
    patients[at].wrong++;
    const given = tests().find((t) => sign(guess, t) !== sign(at, t)),
      t = given ?? every.find((one) => sign(guess, one) !== sign(at, one));
    const seen = `${quoted(t)} gave ${said(guess, t)}`;
    tell(
      given === undefined
        ? `No. So far nothing speaks against \u201c${named(guess)}\u201d; run ${quoted(t)}.`
        : `No. In the training with \u201c${named(guess)}\u201d, ${seen}; here it gives ${said(at, t)}.`
    );
    return undefined;
  }
  function end(how) {
    const left = alike(at, tests()).length,
      first = how === "shown" ? "It is" : left > 1 ? "Right, but not proven" : "Right";
    const patient = Object.assign(patients[at], { done: how, used: tests().length, left });
    patient.told = `${first}: ${verdict()}\n${over() ? "That was the last patient. " : ""}${points()}`;
    marks.node.open = over();
    tell(patient.told);
    next.focus({ preventScroll: true });
    told.scrollIntoView({ block: "nearest" });
  }
  // To the next that has no name yet; from the last, once more from the first.
  function follow() {
    if (over()) {
      patients = fresh();
      return go(0);
    }
    const later = all.map((p) => (at + 1 + p) % COUNT);
    return go(later.find((p) => !patients[p].done));
  }
  function verdict() {
    return `${named(at)}. ${data.faults[data.patients[at]][2]}\n${evidence()}\n${fromCurves()}`;
  }
  // Which findings decide; and what would, where they do not.
  function evidence() {
    const set = fewest(at, tests()),
      left = alike(at, tests()).filter((q) => q !== at);
    if (!set) {
      return `Your findings do not exclude ${left.length > 3 ? `${left.length} others` : list(left)}; ${both(best[at].map(quoted))} ${best[at].length > 1 ? "together do" : "does"}.`;
    }
    const words = both(
      set.map((t) => `${quoted(t)}: ${said(at, t)}${differs(at, t) ? "" : ", like healthy"}`)
    );
    if (set.length > 1)
      return `Of your findings ${set.length} suffice: ${words}. No other of the twelve has them all.`;
    const rest = others(at).map((q) => value(q, set[0])),
      span = [Math.min(...rest), Math.max(...rest)].map((one) => number(one, TESTS[set[0]].digits));
    return `One finding suffices, ${words}. The other eleven have ${span[0] === span[1] ? span[0] : `${span[0]} to ${span[1]}`}.`;
  }
  function fromCurves() {
    const same = others(at).filter((q) => curves[q + 1] === curves[at + 1]),
      accuracies = both(Array.from(row(seeds, at), shown));
    const like =
      curves[at + 1] === curves[0]
        ? `Its curves alone show nothing: they end like the healthy ones, as do those of ${list(same)}.`
        : same.length
          ? `Its curves end unlike the healthy ones, and so do those of ${list(same)}.`
          : "Its curves are like those of none of the others.";
    return `${like} Test images right with three seeds: ${accuracies}; curves and tests are of the first.`;
  }
  function go(to) {
    at = to;
    radios.forEach(({ input }) => {
      input.checked = false;
    });
    const words = patients[at].told;
    tell(words);
    stage.say(
      `${title.textContent}. Late training loss ${number(late[at + 1])}, test images right ${shown(row(seeds, at)[0])}. ${words || count()}`
    );
  }
  function tell(words) {
    told.textContent = words;
    draw();
    if (words) stage.say(words);
  }
  function points() {
    const closed = patients.filter((one) => one.done),
      proven = all.filter((p) => patients[p].done === "right" && patients[p].left === 1);
    const sum = (of, among = all) => among.reduce((total, p) => total + of(p), 0);
    return closed.length
      ? `Named with proof: ${proven.length} of ${closed.length}${
          proven.length
            ? `, with ${plural(
                sum((p) => patients[p].used, proven),
                "test"
              )} (fewest possible: ${sum((p) => best[p].length, proven)})`
            : ""
        }; wrong names: ${sum((p) => patients[p].wrong)}.`
      : "None named yet.";
  }

  // --- drawing ---
  function fact(term, here, healthy) {
    return el("p", {}, el("span", {}, `${term}:`), " ", el("b", {}, here), ` healthy ${healthy}`);
  }
  function draw() {
    const patient = patients[at],
      left = alike(at, tests()),
      off = tests().filter((t) => differs(at, t));
    title.textContent = `Patient ${letter(at)}, ${at + 1} of ${COUNT}`;
    score.textContent = points();
    where.replaceChildren(
      el("b", {}, count()),
      ` ${off.length ? `Differs: ${off.map((t) => TESTS[t].name.split(",")[0]).join("; ")}.` : patient.run.size ? "Nothing differs yet." : "No test run yet."}`
    );
    const ends = (array, p, format) =>
      `from ${format(row(array, p)[0])} to ${format(row(array, p).at(-1))}`;
    const line = (array, format) =>
      `${ends(array, at, format)}; healthy ${ends(array, -1, format)}`;
    losses.draw(loss, HIGHEST, `Training loss ${line(loss, number)}`);
    right.draw(accuracy, 1, `Right on validation images ${line(accuracy, shown)}`);
    facts.replaceChildren(
      fact("training loss, last 100 updates", number(late[at + 1]), number(late[0])),
      fact("training images right", shown(trained[at + 1]), shown(trained[0])),
      fact("test images right", shown(row(seeds, at)[0]), shown(row(seeds, -1)[0]))
    );
    buttons.forEach(({ node, result, healthy }, t) => {
      const known = patient.run.has(t);
      result.textContent = known ? said(at, t) : "";
      healthy.textContent = known ? beside(at, t) : "";
      node.setAttribute("aria-label", known ? finding(t) : TESTS[t].name);
      node.classList.toggle("fault-known", known);
      node.classList.toggle("fault-differs", known && differs(at, t));
    });
    radios.forEach(({ out, node }, fault) => {
      const ruled = strike.checked && !left.includes(data.patients.indexOf(fault));
      out.textContent = ruled ? " (ruled out)" : "";
      node.classList.toggle("fault-ruled", ruled);
    });
    answer.disabled = Boolean(patient.done) || !radios.some(({ input }) => input.checked);
    show.disabled = Boolean(patient.done);
    next.classList.toggle("live-first", Boolean(patient.done));
    marks.node.hidden = patients.every((one) => !one.done);
    next.textContent = over() ? "Again, from A" : "Next patient";
    numbers.update();
    marks.update();
  }

  // What a sentence asks for: a patient, and tests to run.
  function set({ patient = "a", tests: wanted = "", ...rest }) {
    const keys = wanted
        ? wanted.split(",").map((key) => TESTS.findIndex((test) => test.key === key))
        : [],
      to = all.findIndex((p) => letter(p) === patient.toUpperCase());
    if (Object.keys(rest).length || keys.includes(-1) || !patients[to])
      throw new Error("fault.js: there is no such setting");
    keys.forEach((t) => patients[to].run.add(t));
    go(to);
  }

  draw();
  return { set, alike, best };
});

// A query and a key on a line of places: the score of turned positions depends on the step alone,
// that of added waves also on where the two stand.
vitbook.live.figure("rotary", function (stage, data) {
  "use strict";

  const { decodeAll, el, handle, number, svg, table } = vitbook.live;
  const { q, k, mix } = decodeAll(data.arrays); // mix is W_Q W_K^T
  const d = q.length,
    pairs = d / 2,
    N = data.places;
  const omega = Array.from({ length: pairs }, (_, i) => 10000 ** ((-2 * i) / d));
  const state = { query: 1, key: 4 };

  // --- the mathematics of the page ---
  const turn = (vector, place) =>
    vector.map((value, c) => {
      const i = c >> 1,
        angle = omega[i] * place,
        a = vector[2 * i],
        b = vector[2 * i + 1];
      return c % 2
        ? a * Math.sin(angle) + b * Math.cos(angle)
        : a * Math.cos(angle) - b * Math.sin(angle);
    });
  const dot = (a, b) => a.reduce((sum, value, c) => sum + value * b[c], 0);
  const Q = Array.from(q),
    K = Array.from(k); // in double precision
  const wave = (place) => omega.flatMap((w) => [Math.sin(w * place), Math.cos(w * place)]);
  const add = (vector, place) => wave(place).map((value, c) => value + vector[c]);
  const turned = (t, s) => dot(turn(Q, t), turn(K, s));
  function added(t, s) {
    const a = add(Q, t),
      b = add(K, s);
    return a.reduce(
      (sum, value, row) => sum + value * dot(mix.slice(row * d, (row + 1) * d), b),
      0
    );
  }

  // --- the elements ---
  const STOPS = [0, 8, 16, 24, N - 1].map((place) => [place, String(place)]);
  function slider(name, className, label, value, change, text = (place) => `place ${place}`) {
    const track = el("div", { class: "live-track" }),
      said = el("b");
    const grip = handle({
      track,
      label,
      min: 0,
      max: N - 1,
      step: 1,
      value,
      text,
      change,
      ticks: STOPS
    });
    grip.node.classList.add(className);
    track.append(grip.node);
    return {
      node: el("div", { class: "rotary-control" }, el("span", {}, name, " ", said), track),
      said,
      grip
    };
  }
  const query = slider("query at", "rotary-query", "Place of the query", state.query, (place) => {
    state.query = place;
    draw();
    speak("");
  });
  const key = slider("key at", "rotary-key", "Place of the key", state.key, (place) => {
    state.key = place;
    draw();
    speak("");
  });
  const both = slider(
    "both together",
    "rotary-both",
    "Both together",
    1,
    (first) => {
      const low = Math.min(first, N - 1 - Math.abs(step())),
        by = low - Math.min(state.query, state.key);
      state.query += by;
      state.key += by;
      draw();
      speak("Both moved. ");
    },
    () => `query at ${state.query}, key at ${state.key}`
  );
  const step = () => state.query - state.key;

  // The clocks show directions alone: q long and thin, k short and thick, so that none hides the other.
  const angle = (vector, i) => Math.atan2(vector[2 * i + 1], vector[2 * i]),
    degrees = (value) => number((180 * value) / Math.PI, 0);
  const pace = (w) => {
    const by = (180 * w) / Math.PI;
    return number(by, by < 0.1 ? 2 : by < 9.95 ? 1 : 0);
  };
  const LENGTHS = [0.98, 0.6];
  const dials = omega.map((w) => {
    const hands = ["rotary-query", "rotary-key"].map((which) =>
      svg("line", { class: `rotary-hand ${which}`, x1: 0, y1: 0 })
    );
    return {
      hands,
      node: el(
        "div",
        {},
        svg("svg", { viewBox: "-1.1 -1.1 2.2 2.2" }, svg("circle", { r: 1 }), ...hands),
        el("small", {}, `${pace(w)}°`)
      )
    };
  });
  const lines = {},
    marks = {},
    scores = {};
  for (const kind of ["turned", "added"]) {
    lines[kind] = svg("polyline", { class: `rotary-line rotary-${kind}` });
    marks[kind] = el("i", { class: `rotary-dot rotary-${kind}` });
    scores[kind] = el("b");
  }
  const zero = el("i", { class: "rotary-zero" }),
    clocks = el("span", { class: "live-hidden" });
  const plot = el(
    "div",
    { class: "rotary-plot", "aria-hidden": "true" },
    zero,
    svg(
      "svg",
      { viewBox: `0 0 ${N - 1} 100`, preserveAspectRatio: "none" },
      lines.added,
      lines.turned
    ),
    marks.added,
    marks.turned
  );
  const told = el("p", { class: "rotary-told" }),
    under = el("span");
  const values = table("The scores as a table", ["query at", "key at", "turned", "added"], () =>
    along().map((t) => [
      String(t),
      String(t - step()),
      number(turned(t, t - step())),
      number(added(t, t - step()))
    ])
  );
  stage.box.append(
    el(
      "div",
      { class: "rotary" },
      el("div", { class: "rotary-controls" }, query.node, key.node, both.node),
      el(
        "p",
        { class: "rotary-legend", "aria-hidden": "true" },
        "Directions of the pairs of ",
        el("b", {}, "q (long)"),
        " and of ",
        el("b", {}, "k (short)"),
        "; below, the turn per place"
      ),
      el("div", { class: "rotary-dials", "aria-hidden": "true" }, ...dials.map((one) => one.node)),
      clocks,
      el(
        "div",
        { class: "rotary-scores" },
        el(
          "p",
          {},
          el("i", { class: "rotary-dot rotary-turned" }),
          " score, turned ",
          scores.turned
        ),
        el("p", {}, el("i", { class: "rotary-dot rotary-added" }), " score, added ", scores.added)
      ),
      plot,
      el(
        "p",
        { class: "rotary-axis", "aria-hidden": "true" },
        el("span", {}, "0"),
        under,
        el("span", {}, String(N - 1))
      ),
      told,
      values.node
    )
  );

  // --- drawing ---
  // The places of a query whose key, at the step of now, stands on the line as well.
  const along = () =>
    Array.from({ length: N }, (_, t) => t).filter((t) => t - step() >= 0 && t - step() < N);
  const all = Array.from({ length: N * N }, (_, i) => [i % N, Math.floor(i / N)]);
  const most = Math.ceil(
    Math.max(...all.map(([t, s]) => Math.max(Math.abs(turned(t, s)), Math.abs(added(t, s)))))
  );
  for (const score of [most, 0, -most]) {
    const said = el("span", { class: "rotary-score" }, number(score, 0));
    said.style.top = `${50 - (50 * score) / most}%`;
    plot.append(said);
  }
  const height = (score) => 50 - (50 * score) / most;
  const of = { turned, added };

  function draw() {
    for (const [one, place] of [
      [query, state.query],
      [key, state.key],
      [both, Math.min(state.query, state.key)]
    ]) {
      one.said.textContent = one === both ? `${state.query} and ${state.key}` : String(place);
      one.grip.set(place);
    }
    const now = [turn(Q, state.query), turn(K, state.key)];
    now.forEach((vector, which) =>
      dials.forEach(({ hands }, i) => {
        hands[which].setAttribute("x2", LENGTHS[which] * Math.cos(angle(vector, i)));
        hands[which].setAttribute("y2", -LENGTHS[which] * Math.sin(angle(vector, i)));
      })
    );
    const asides = omega.map(
      (w, i) =>
        `pair ${i + 1}, ${pace(w)}° a place: q at ${degrees(angle(now[0], i))}°, k at ${degrees(angle(now[1], i))}°`
    );
    clocks.textContent = `The clocks: ${asides.join("; ")}.`;
    under.textContent = step()
      ? `place of the query; the key ${Math.abs(step())} ${step() < 0 ? "further on" : "further back"}`
      : "place of both";
    for (const kind of ["turned", "added"]) {
      const score = of[kind](state.query, state.key);
      lines[kind].setAttribute(
        "points",
        along()
          .map((t) => `${t},${height(of[kind](t, t - step()))}`)
          .join(" ")
      );
      marks[kind].style.left = `${(100 * state.query) / (N - 1)}%`;
      marks[kind].style.top = `${height(score)}%`;
      scores[kind].textContent = number(score);
    }
    told.textContent = sentence();
    values.update();
  }
  function sentence() {
    const found = along().map((t) => added(t, t - step()));
    return `The curves: all pairs of places with the step ${number(step(), 0)}. There the turned score is ${scores.turned.textContent} everywhere; the added one goes from ${number(Math.min(...found))} to ${number(Math.max(...found))}.`;
  }
  function speak(first) {
    stage.say(
      `${first}Query at ${state.query}, key at ${state.key}: turned ${scores.turned.textContent}, added ${scores.added.textContent}.`
    );
  }

  // What a sentence asks for: query and key, places from 0 on.
  function set(values) {
    const wanted = { query: "1", key: "4", ...values },
      places = [Number(wanted.query), Number(wanted.key)];
    if (
      Object.keys(wanted).length > 2 ||
      places.some((one) => !(Number.isInteger(one) && one >= 0 && one < N))
    )
      throw new Error("rotary.js: there is no such place");
    [state.query, state.key] = places;
    draw();
    speak("");
  }

  draw();
  return { set, turned, added };
});

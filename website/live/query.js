// A query that is dragged among three keys: its scores, the weights, and their average of the values.
vitbook.live.figure("query", function (stage, data) {
  "use strict";

  const { decodeAll, drag, el, number, svg, table } = vitbook.live;
  const { animals, places } = data;
  const given = decodeAll(data.arrays),
    pairs = (flat) =>
      Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
  const keys = pairs(given.keys),
    values = pairs(given.values),
    START = Array.from(given.kitten, (value) => Number(value.toFixed(2)));
  const LEFT = -4,
    RIGHT = 4,
    LOW = -2.75,
    HIGH = 4; // where a query may lie
  const GRID = 0.05,
    RATE = 0.1,
    MOST = 60; // steps of a drag; of learning
  const state = { query: START, learned: [] };

  // --- the mathematics of the page ---
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const mean = (weights, points) =>
    [0, 1].map((c) => points.reduce((sum, point, i) => sum + weights[i] * point[c], 0));
  const apart = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
  function find(query) {
    const scores = keys.map((key) => dot(key, query)),
      top = Math.max(...scores);
    const raised = scores.map((score) => Math.exp(score - top)),
      sum = raised.reduce((a, b) => a + b, 0);
    const weights = raised.map((one) => one / sum);
    return { scores, weights, answer: mean(weights, values) };
  }
  // The queries of gradient descent on the squared distance between the answer and a place.
  function learn(query, steps, place = values[1]) {
    const found = [query];
    for (let step = 0; step < steps; step++) {
      const { weights, answer } = find(query),
        middle = mean(weights, keys);
      const pull = values.map(
        (value, i) => 2 * weights[i] * dot(value, [answer[0] - place[0], answer[1] - place[1]])
      );
      query = query.map(
        (at, c) => at - RATE * keys.reduce((sum, key, i) => sum + pull[i] * (key[c] - middle[c]), 0)
      );
      found.push(query);
    }
    return found;
  }

  const share = (weight) =>
    weight < 0.0005
      ? "<0.001"
      : number(weight, weight < 0.0095 || (weight > 0.9905 && weight < 0.9995) ? 3 : 2);
  const point = ([x, y]) => `(${number(x)}, ${number(y)})`;

  // --- the elements ---
  // A plane in its own units, y upwards; what lies in it is placed by share.
  function plane(name, [left, right, low, high], ...layers) {
    const view = svg(
      "svg",
      { viewBox: `${left} ${-high} ${right - left} ${high - low}`, "aria-hidden": "true" },
      ...layers
    );
    const node = el("div", { class: name }, view);
    node.style.aspectRatio = `${right - left} / ${high - low}`;
    function place(one, [x, y]) {
      one.style.left = `${(100 * (x - left)) / (right - left)}%`;
      one.style.top = `${(100 * (high - y)) / (high - low)}%`;
    }
    function at(event) {
      const box = node.getBoundingClientRect();
      return [
        left + ((event.clientX - box.left) / box.width) * (right - left),
        high - ((event.clientY - box.top) / box.height) * (high - low)
      ];
    }
    return { node, place, at };
  }
  const line = (name) => svg("line", { class: name });
  const join = (one, [x1, y1], [x2, y2]) =>
    Object.entries({ x1, y1: -y1, x2, y2: -y2 }).forEach(([key, value]) =>
      one.setAttribute(key, value)
    );
  const word = (name, [x, y], anchor, text = "") =>
    svg("text", { class: name, x, y: -y, "text-anchor": anchor }, text);

  const ring = svg("circle", { class: "query-ring" }),
    arm = line("query-arm"),
    grown = svg("g", { class: "query-trail" });
  const pulls = keys.map(() => line("query-pull")),
    beside = [
      ["end", -0.45, 0.02],
      ["middle", -0.05, -0.65],
      ["middle", 0.05, -0.65]
    ];
  const labels = keys.map(([x, y], i) =>
    word("query-word query-key", [x + beside[i][1], y + beside[i][2]], beside[i][0])
  );
  const asked = plane(
    "query-plane",
    [LEFT - 0.3, RIGHT + 0.3, LOW - 0.3, HIGH + 0.3],
    svg("path", { class: "query-zero", d: "M-0.15 0H0.15M0-0.15V0.15" }),
    ring,
    ...pulls,
    arm,
    grown,
    ...keys.map(([x, y]) => svg("circle", { class: "query-dot", cx: x, cy: -y, r: 0.16 })),
    ...labels
  );
  const grip = el(
    "div",
    {
      class: "live-handle query-handle",
      role: "slider",
      tabindex: "0",
      "aria-label": "Query",
      "aria-roledescription": "point in a plane",
      "aria-valuemin": 0,
      "aria-valuemax": 6
    },
    "q"
  );
  asked.node.append(grip);

  const reach = svg("path", { class: "query-ring" }),
    spot = svg("circle", { class: "query-answer", r: 0.17 }),
    walked = svg("g", { class: "query-trail" });
  const sent = values.map(() => line("query-pull")),
    under = [
      ["middle", 0, 0.3],
      ["middle", 0.1, -0.62],
      ["middle", 0.05, 0.4]
    ];
  const got = plane(
    "query-map",
    [-0.9, 7.1, -0.9, 4.9],
    svg("polygon", { class: "query-hull", points: values.map(([x, y]) => `${x},${-y}`).join(" ") }),
    reach,
    ...sent,
    walked,
    ...values.map(([x, y]) =>
      svg("rect", { class: "query-value", x: x - 0.17, y: -y - 0.17, width: 0.34, height: 0.34 })
    ),
    ...values.map(([x, y], i) =>
      word("query-word", [x + under[i][1], y + under[i][2]], under[i][0], places[i])
    ),
    spot
  );

  const bars = animals.map((animal, i) => {
    const fill = el("i"),
      said = el("b");
    const node = el(
      "div",
      { class: "query-row" },
      el(
        "span",
        {},
        el("span", { class: "query-key" }, animal),
        " → ",
        el("span", { class: "query-place" }, places[i])
      ),
      el("span", { class: "query-bar", "aria-hidden": "true" }, fill),
      el("span", {}, el("span", { class: "live-hidden" }, "weight "), said)
    );
    return { node, fill, said };
  });
  const where = el("p", { class: "query-where" }),
    answer = el("span"),
    told = el("p", { class: "query-told" });
  const button = (words, onclick, hidden = "") =>
    el(
      "button",
      { type: "button", class: "live-button", onclick },
      words,
      el("span", { class: "live-hidden" }, hidden)
    );
  const longer = button("Twice as long", () => stretch(2));
  const numbers = table(
    "The numbers as a table",
    ["key", "distance to q", "q · k", "weight", "value"],
    () =>
      animals
        .map((animal, i) => [
          animal,
          number(apart(state.query, keys[i])),
          number(now.scores[i]),
          share(now.weights[i]),
          `${places[i]} ${point(values[i])}`
        ])
        .concat([["answer", "", "", "1", point(now.answer)]])
  );
  stage.box.append(
    el(
      "div",
      { class: "query" },
      el(
        "div",
        { class: "query-side" },
        el("p", { class: "query-name" }, el("b", {}, "Ask:"), " drag the query q"),
        asked.node,
        where
      ),
      el(
        "div",
        { class: "query-side query-right" },
        el("p", { class: "query-name" }, el("b", {}, "Weigh:"), " softmax of q · k"),
        ...bars.map((bar) => bar.node),
        el("p", { class: "query-name" }, el("b", {}, "Average:"), " the answer ", answer),
        got.node
      ),
      el(
        "div",
        { class: "query-buttons" },
        button("Half as long", () => stretch(0.5)),
        longer,
        button("Back", () => set({}), " to the start")
      ),
      told,
      numbers.node
    )
  );

  // --- drawing ---
  let now;
  function draw() {
    const { query, learned } = state,
      length = Math.hypot(...query);
    now = find(query);
    asked.place(grip, query);
    grip.setAttribute("aria-valuenow", number(length));
    grip.setAttribute(
      "aria-valuetext",
      `${query[0] < 0 ? "left" : "right"} ${number(Math.abs(query[0]))}, ${query[1] < 0 ? "down" : "up"} ${number(Math.abs(query[1]))}, length ${number(length)}`
    );
    ring.setAttribute("r", length);
    join(arm, [0, 0], query);
    now.weights.forEach((weight, i) => {
      for (const [one, from, to] of [
        [pulls[i], query, keys[i]],
        [sent[i], now.answer, values[i]]
      ]) {
        join(one, from, to);
        one.style.strokeWidth = `${10 * weight}px`;
      }
      labels[i].textContent = `${animals[i]} ${share(weight)}`;
      bars[i].fill.style.width = `${100 * weight}%`;
      bars[i].said.textContent = share(weight);
    });
    const round = Array.from(
      { length: 120 },
      (_, i) =>
        find([length * Math.cos((i * Math.PI) / 60), length * Math.sin((i * Math.PI) / 60)]).answer
    );
    reach.setAttribute("d", `M${round.map(([x, y]) => `${x} ${-y}`).join("L")}Z`);
    spot.setAttribute("cx", now.answer[0]);
    spot.setAttribute("cy", -now.answer[1]);
    const dots = (points) => points.map(([x, y]) => svg("circle", { cx: x, cy: -y, r: 0.06 }));
    grown.replaceChildren(...dots(learned));
    walked.replaceChildren(...dots(learned.map((one) => find(one).answer)));
    answer.textContent = `is ${point(now.answer)}`;
    where.textContent = `q = ${point(query)}, length ${number(length)}`;
    told.textContent = sentence(length);
    longer.setAttribute("aria-disabled", String(most() <= 1));
    numbers.update();
  }
  function sentence(length) {
    const dashed = `Dashed: the queries of length ${number(length)} and their answers.`;
    if (state.learned.length)
      return `Dots: ${state.learned.length - 1} steps of learning to ask for the ${places[1]}. The answer is ${number(apart(now.answer, values[1]))} away from it.`;
    if (length < GRID / 2)
      return "A query of length 0 has the score 0 with every key: all weights are 1/3; one as short as this has nearly that.";
    const most = Math.max(...now.weights),
      near = animals.filter((_, i) => now.weights[i] > most - 1e-6),
      first = animals.indexOf(near[0]);
    return `Nearest key: ${near.join(" and ")}, ${number(apart(state.query, keys[first]))} away, weight ${share(most)}. ${dashed}`;
  }
  function speak(first) {
    stage.say(
      `${first}Weights ${animals.map((animal, i) => `${animal} ${share(now.weights[i])}`).join(", ")}. The answer is ${values.map((value, i) => `${number(apart(now.answer, value))} from the ${places[i]}`).join(", ")}.`
    );
  }

  // --- what the reader does ---
  const within = (value, low, high) => Math.min(high, Math.max(low, value));
  function ask(query, words = "") {
    state.query = query;
    state.learned = [];
    draw();
    speak(words || `Query ${point(query)}. `);
  }
  const step = (value) => Number((Math.round(value / GRID) * GRID).toFixed(2));
  const move = ([x, y]) => ask([step(within(x, LEFT, RIGHT)), step(within(y, LOW, HIGH))]);
  // The same direction, as long as asked for or up to the edge.
  function most() {
    // times as long, within the plane
    const [x, y] = state.query,
      room = (at, low, high) => (at > 0 ? high / at : at < 0 ? low / at : Infinity);
    return Math.min(room(x, LEFT, RIGHT), room(y, LOW, HIGH));
  }
  function stretch(times) {
    const [x, y] = state.query,
      by = Math.min(times, most());
    ask(
      [by * x, by * y],
      `Length ${number(by * Math.hypot(x, y))}${by < times ? ", up to the edge" : ""}. `
    );
  }
  let shift = [0, 0]; // from the finger to the middle of the handle
  const follow = (event) => move(asked.at(event).map((at, c) => at + shift[c]));
  drag(grip, {
    start(event) {
      shift = asked.at(event).map((at, c) => state.query[c] - at);
    },
    move: follow
  });
  function jump(event) {
    shift = [0, 0];
    follow(event);
  }
  const outside = (event) => !grip.contains(event.target);
  drag(asked.node, {
    start(event) {
      const pressed = outside(event) && event.pointerType !== "touch"; // a finger may want to scroll
      if (pressed) jump(event);
      return pressed;
    },
    move: follow
  });
  asked.node.addEventListener("click", (event) => {
    if (!outside(event)) return;
    jump(event);
    grip.focus({ preventScroll: true });
  });
  grip.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
      event.key
    ];
    const times = { PageUp: 2, PageDown: 0.5 }[event.key];
    if (!by && !times && event.key !== "Home") return;
    event.preventDefault();
    event.stopPropagation();
    const far = event.shiftKey ? 0.5 : 0.1;
    if (by) move(state.query.map((at, c) => at + far * by[c]));
    else if (times) stretch(times);
    else set({});
  });

  // What a sentence asks for: a query x, y; or so many steps of learning from the kitten's.
  function set(values) {
    const wanted = { x: String(START[0]), y: String(START[1]), learn: "0", ...values };
    const [x, y, steps] = [wanted.x, wanted.y, wanted.learn].map(Number);
    const strange =
      Object.keys(wanted).length > 3 || !(x >= LEFT && x <= RIGHT && y >= LOW && y <= HIGH);
    if (strange || !(Number.isInteger(steps) && steps >= 0 && steps <= MOST))
      throw new Error("query.js: there is no such query");
    const learned = steps ? learn([x, y], steps) : [];
    state.query = learned.at(-1) || [x, y];
    state.learned = learned;
    draw();
    speak(steps ? `After ${steps} steps of learning. ` : "");
  }

  draw();
  return { set, find, learn };
});

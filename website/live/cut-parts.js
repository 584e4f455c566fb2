// What stands beside the board of a cut game: the bar of its answer, the promise of the map against
// the effect of the cut, and the last cuts. Each gives {node, draw}.
(function () {
  "use strict";

  const { el, handle, number } = vitbook.live;
  const WORDS = ["different", "same"],
    SCALE = 12; // of the bar, in logits
  const SHOWN = 5; // last cuts
  const percent = (share) => `${number(100 * share, Math.abs(share) < 0.1 ? 1 : 0)}\u202f%`;
  const within = (share) => 100 * Math.max(0, Math.min(1, share));
  const at = (lead) => 50 + (50 * Math.max(-SCALE, Math.min(SCALE, lead))) / SCALE; // on the bar, in per cent

  // The answer in words; wrong is what the shapes of the picture are not.
  const chance = (game) => number(100 / (1 + Math.exp(-Math.abs(game.lead))));
  const isWrong = (game) => game.lead > 0 !== game.truth;
  const spoken = (game) =>
    `It says ${WORDS[game.lead > 0 ? 1 : 0]}, ${chance(game)} % sure${isWrong(game) ? ", and is wrong" : ""}.`;

  // The answer and its lead, before and after the cuts.
  function verdict(game) {
    const said = el("p", { class: "cut-verdict live-answer" }),
      fill = el("div", { class: "cut-fill" }),
      before = el("div", { class: "cut-before" });
    const track = el(
      "div",
      { class: "live-track cut-track" },
      el("div", { class: "cut-turn" }),
      fill,
      before
    );
    const ends = el(
      "p",
      { class: "cut-ends", "aria-hidden": "true" },
      el("span", {}, "← different"),
      el("span", {}, "here it turns"),
      el("span", {}, "same →")
    );
    function draw() {
      const { lead, was } = game,
        cutAny = game.state.cuts.length > 0,
        wrong = isWrong(game);
      fill.style.left = `${Math.min(50, at(lead))}%`;
      fill.style.width = `${Math.abs(at(lead) - 50)}%`;
      before.style.left = `${at(was)}%`;
      before.hidden = !cutAny;
      const sure = el(
        "span",
        { class: "cut-sure" },
        `${chance(game)}\u202f% sure${wrong ? ", and wrong" : ""}`
      );
      said.replaceChildren(
        `It ${lead > 0 === was > 0 && cutAny ? "still " : ""}says `,
        el("b", {}, WORDS[lead > 0 ? 1 : 0]),
        " ",
        sure
      );
      node.classList.toggle("cut-mistaken", wrong);
    }
    const node = el("div", { class: "cut-answer" }, said, ends, track);
    return { node, track, draw };
  }

  // The same, with a ring to guess by.
  function guessing(game) {
    const { node, track, draw: drawVerdict } = verdict(game),
      leads = el("p", { class: "cut-leads" });
    const guess = handle({
      track,
      label: "Your guess: the lead after the first cut, in logits",
      min: -SCALE,
      max: SCALE,
      step: 0.5,
      value: 0,
      text: (value) => `${number(value, 1, true)}, ${WORDS[value > 0 ? 1 : 0]}`,
      change(value) {
        game.state.guess = value;
        draw();
      }
    });
    track.append(guess.node);
    node.append(leads);
    function guessed(cutAny) {
      if (game.state.guess !== null)
        return `, you guess${cutAny ? "ed" : ""} ${number(game.state.guess, 1, true)}`;
      return cutAny ? "" : ", its lead · drag the ring: where will it be after your first cut?";
    }
    function draw() {
      const cutAny = game.state.cuts.length > 0;
      drawVerdict();
      const open = game.state.guess === null;
      guess.node.hidden = cutAny && open;
      guess.node.classList.toggle("cut-unguessed", open);
      if (open) {
        // the ring waits where the lead is
        guess.set(game.was);
        guess.node.setAttribute("aria-valuetext", "no guess yet");
      }
      leads.replaceChildren(
        cutAny ? `lead before the cut ${number(game.was, 2, true)}, ` : "",
        el("b", {}, `now ${number(game.lead, 2, true)} logits`),
        guessed(cutAny)
      );
    }
    return { node, draw };
  }

  function card(name, title) {
    const value = el("p", { class: "cut-value" }),
      words = el("p", { class: "cut-words" }),
      column = el("i");
    const node = el(
      "div",
      { class: `cut-card ${name}` },
      el("p", { class: "cut-title" }, title),
      value,
      words,
      el("div", { class: "cut-column", "aria-hidden": "true" }, column)
    );
    function tell(text, told, share) {
      value.textContent = text;
      words.textContent = told;
      column.style.height = `${within(share)}%`;
    }
    return { node, tell };
  }

  // Two columns of one height, and what follows from them.
  function promise(game) {
    const promised = card("cut-promised", "The map promised"),
      did = card("cut-did", "The cut did");
    const lesson = el("p", { class: "cut-lesson" }),
      score = el("span", { class: "cut-score" });
    function tellBefore() {
      const { now, state } = game,
        key = game.strongest(),
        most = game.headsOf(state.head).length;
      const next = key < 0 ? 0 : game.weight(now, state.query, key) * most;
      promised.tell(
        number(next),
        `of the weight ${number(most)}${most > 1 ? ` in ${most} heads` : ""}, by the thickest arrow`,
        next / most
      );
      did.tell("?", "of the way to the turn. Guess first, then cut.", 0);
    }
    function tellAfter(total, held, share) {
      const [first] = game.state.cuts;
      promised.tell(
        number(total),
        `of the weight ${number(held)} ${held === 1 ? `that ${first.row}` : `in ${held} cut rows of maps`}`,
        total / held
      );
      did.tell(
        percent(share),
        `of the way to the turn: ${number(game.was, 2, true)} to ${number(game.lead, 2, true)} logits`,
        share
      );
    }
    function lessonOf(total, held, share) {
      const arrows = game.count(),
        { best } = game;
      if (!held) return "If the map keeps its promise, both columns rise alike.";
      if (share >= 1)
        return `Turned round with ${arrows.toLocaleString("en")} ${arrows === 1 ? "arrow" : "arrows"}${!best ? "." : arrows < best ? ", fewer than were known." : arrows === best ? ", the fewest known." : `; the fewest known are ${best}.`}`;
      if (total >= 0.9 * held && Math.abs(share) < 0.1)
        return "Nearly all of this attention was cut, and the answer hardly moved.";
      return `${percent(total / held)} of the attention ${held === 1 ? "in this row" : `in ${held} rows`} was cut, and the answer went ${percent(share)} of the way to the turn.`;
    }
    function draw() {
      const { state, best } = game,
        held = game.rowsCut,
        share = game.way(game.was, game.lead);
      if (held) tellAfter(game.promised, held, share);
      else tellBefore();
      promised.node.classList.toggle("cut-open", !held);
      did.node.classList.toggle("cut-over-top", share > 1);
      lesson.textContent = lessonOf(game.promised, held, share);
      lesson.classList.toggle("cut-won", share >= 1);
      score.textContent = `image ${state.own ? "of yours" : `${state.picture + 1} of ${game.pictures}`} · arrows cut: ${game.count().toLocaleString("en")} · fewest known: ${best || "–"}`;
    }
    return {
      cards: el("div", { class: "cut-cards" }, promised.node, did.node),
      lesson,
      score,
      draw
    };
  }

  function bar(name, share) {
    const inner = el("i");
    inner.style.width = `${within(share)}%`;
    return el("span", { class: `cut-small ${name}`, "aria-hidden": "true" }, inner);
  }
  const shortly = (name) =>
    name
      .replace(/^layer (\d+), /, "L$1 ")
      .replace(/row (\d+), column (\d+)/g, "r$1 c$2")
      .replace(" to r", " → r");

  // The last cuts, each with its promise and its effect.
  function past(game) {
    const list = el("ol", { class: "cut-history" });
    const legend = el(
      "small",
      {},
      el("i", { class: "cut-key-promised" }),
      " weight promised ",
      el("i", { class: "cut-key-did" }),
      " lead changed, logits"
    );
    function entry(one) {
      const moved = game.way(game.was, game.was + one.after - one.before);
      return el(
        "li",
        {},
        el("span", { class: "cut-name" }, shortly(one.name)),
        bar("cut-small-promised", one.promise / one.rows),
        el(
          "span",
          {},
          one.rows > 1 ? `${number(one.promise)} of ${one.rows}` : number(one.promise)
        ),
        bar("cut-small-did", moved),
        el("span", {}, number(one.after - one.before, 2, true)),
        el(
          "button",
          {
            type: "button",
            class: "live-button",
            "aria-label": `Restore ${one.name}`,
            onclick: () => game.restore(one)
          },
          "×"
        )
      );
    }
    function draw() {
      list.replaceChildren(...game.state.cuts.slice(-SHOWN).map(entry));
      if (!game.state.cuts.length) list.append(el("li", { class: "cut-none" }, "your first cut"));
    }
    return {
      node: el(
        "div",
        { class: "cut-past" },
        el("p", { class: "cut-title" }, "Last cuts ", legend),
        list
      ),
      draw
    };
  }

  vitbook.live.cutParts = { guessing, past, percent, promise, spoken, verdict };
})();

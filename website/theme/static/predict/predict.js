// Predictions and concept checks that can be answered; without this script both are folds.
// progress.js, which is loaded before, keeps the answers.

"use strict"; // so that what is in the block stays in it

{
  const { SURE, button, drawAll, kept, make } = globalThis.progress;

  const MARKS = [["1", "✓ Right"], ["0.5", "◐ Partly"], ["0", "✗ Wrong"]];

  const chosen = (field) => field.querySelector("input:checked")?.value ?? "";
  const copied = (node) => [...node.cloneNode(true).childNodes];

  function radios(name, kind, legend, options) {
    const rows = options.map(([value, ...content]) => {
      const input = make("input", { type: "radio", name, value });
      return make("label", {}, input, make("span", {}, ...content));
    });
    return make("fieldset", { class: kind }, make("legend", {}, legend), ...rows);
  }

  // The three ways to answer a prediction. Each has the field, what was said (empty: nothing yet),
  // how that is shown, and what is missing; the first two know the answer, and so the mark.

  function byChoice(group) {
    const choices = JSON.parse(group.dataset.choices);
    const list = group.querySelector(".predict-choices");
    const items = [...list.children].map((item) => item.querySelector("p") ?? item);
    const shown = (said) => copied(items[choices.indexOf(said)]);
    const options = choices.map((choice) => [choice, ...shown(choice)]);
    list.remove();
    const field = radios("said", "predict-choose", "Your prediction", options);
    return {
      field,
      shown,
      missing: "Choose an answer first.",
      said: () => chosen(field),
      knows: (said) => choices.includes(said),
      answer: () => shown(group.dataset.answer),
      mark: (said) => (said === group.dataset.answer ? 1 : 0),
    };
  }

  function byNumber(group) {
    const { number, within = "0", unit = "" } = group.dataset;
    const input = make("input", { type: "number", step: "any", name: "said" });
    const named = (value) => `${value}${unit && ` ${unit}`}`;
    const margin = within === "0" ? "" : ` (up to ${named(within)} off is right)`;
    return {
      field: make("label", { class: "predict-type" }, "Your number ", input, ` ${unit}`),
      missing: "Write a number first, such as 0.5.",
      said: () => input.value,
      knows: () => true,
      shown: (said) => [named(said)],
      answer: () => [named(number), margin],
      mark: (said) => (Math.abs(said - number) <= Number(within) + 1e-9 ? 1 : 0),
    };
  }

  function inWords() {
    const input = make("textarea", { name: "said", rows: "2" });
    return {
      field: make("label", { class: "predict-type" }, "Your prediction, in a few words", input),
      missing: "Write your prediction first; a few words will do.",
      said: () => input.value.trim(),
      knows: () => true,
      shown: (said) => [said],
    };
  }

  // A concept check is answered in the head: there is nothing to choose or to write.
  const inTheHead = { said: () => "", knows: () => true };

  function part(kind, who, content) {
    return make("div", { class: kind }, make("p", {}, `${who}: `), make("p", {}, ...content));
  }

  // What was said, and where a rule can tell, what it was and the mark.
  function verdict(way, { said, sure, mark }) {
    const lead = sure === 50 ? "You guessed" : `You were ${SURE[sure]}`;
    if (!way.field) return [make("p", { class: "predict-who" }, `${lead}.`)];
    const told = sure === 50 ? lead : `You said, ${SURE[sure]}`;
    const parts = [part("predict-said", told, way.shown(said))];
    if (way.mark) {
      const kind = mark ? "predict-mark is-right" : "predict-mark is-wrong";
      const words = MARKS.find(([value]) => Number(value) === mark)[1];
      parts.push(part("predict-was", "It was", way.answer()));
      parts.push(make("p", { class: kind }, `${words}.`));
    }
    return parts;
  }

  // One question: a form to commit with, which opens the fold. `box` is around or after the fold.
  function ask(id, box, fold, way) {
    const summary = fold.querySelector("summary");
    const title = summary.textContent;
    const levels = Object.entries(SURE).map(([level, words]) => {
      const percent = level === "50" ? "no idea" : `${level} %`;
      return [level, make("b", {}, words), make("small", {}, percent)];
    });
    const sure = radios("sure", "predict-sure", "How sure are you?", levels);
    const complaint = make("p", { role: "status", class: "predict-missing" });
    const commit = make("button", { class: "predict-button predict-commit" }, "Commit");
    const form = make("form", { class: "predict-form", novalidate: "", autocomplete: "off" });
    form.append(way.field ?? "", sure, commit, complaint);
    const said = make("div", { role: "status", class: "predict-verdict" });
    const marks = radios(`mark-${id}`, "predict-own", "Now compare. Your answer was", MARKS);
    const again = button("Take it back", "predict-again", () => {
      kept.change(({ answers }) => delete answers[id]);
      form.querySelector("input, textarea").focus();
    });

    function draw() {
      const found = kept.load().answers[id];
      const answer = found && way.knows(found.said) ? found : null;
      if (!answer && form.hidden) {
        fold.open = false;
        form.reset();
      }
      box.classList.toggle("is-committed", answer !== null);
      form.hidden = answer !== null;
      again.hidden = answer === null;
      marks.hidden = answer === null || way.mark !== undefined;
      said.replaceChildren(...(answer ? verdict(way, answer) : []));
      marks.querySelectorAll("input").forEach((input) => {
        input.checked = Number(input.value) === answer?.mark;
      });
      if (way.field) summary.textContent = answer ? title : "Show it without predicting";
    }

    function miss(words, field) {
      complaint.textContent = words;
      field.querySelector("input, textarea").focus();
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const answer = { said: way.said(), sure: Number(chosen(sure)) };
      if (way.field && !answer.said) return miss(way.missing, way.field);
      if (!answer.sure) return miss("Say how sure you are.", sure);
      complaint.textContent = "";
      if (way.mark) answer.mark = way.mark(answer.said);
      kept.change(({ answers }) => { answers[id] = answer; });
      fold.open = true;
      summary.focus();
      return said.scrollIntoView({ block: "nearest" });
    });
    marks.addEventListener("change", () => {
      kept.change(({ answers }) => { answers[id].mark = Number(chosen(marks)); });
    });
    document.addEventListener("kept-changed", draw);

    draw();
    if (form.hidden) fold.open = true;
    if (way.field) fold.before(form, said);
    else box.append(form, said);
    box.append(marks, again);
  }

  document.querySelectorAll(".predict[data-predict]").forEach((group, at, all) => {
    const { predict: id, choices, number } = group.dataset;
    const way = choices ? byChoice(group) : number ? byNumber(group) : inWords();
    ask(id, group, group.querySelector("details.predict-answer"), way);
    const place = make("span", { class: "predict-count" }, `${at + 1} of ${all.length}`);
    group.querySelector(".predict-title").append(" ", place);
  });
  const here = document.querySelector(".progress-box[data-page]")?.dataset.page;
  document.querySelectorAll("#concept-check > details").forEach((fold, at) => {
    const name = `Question ${at + 1}`;
    const box = make("div", { class: "predict-check", role: "group", "aria-label": name });
    fold.after(box);
    ask(`${here}#check-${at + 1}`, box, fold, inTheHead);
  });
  drawAll();
}

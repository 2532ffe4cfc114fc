/* What moves on a page without a kernel: figures, predictions, and one line to mend. */

/* A text in the language of the page, with the given values in its {fields}. SAID holds what is not English. */
function say(text, given = {}) {
  const told = (typeof SAID === "undefined" ? {} : SAID)[text] ?? text;
  return told.replace(/\{(\w+)\}/g, (_, name) => given[name]);
}

function element(name, given = {}, ...children) {
  const made = Object.assign(document.createElement(name), given);
  made.append(...children);
  return made;
}

/* A labelled slider over a list of values; moved(k) is called with the index of the one chosen. */
function slider(name, values, start, moved) {
  const range = element("input", { type: "range", min: 0, max: values.length - 1, step: 1, ariaLabel: name });
  const shown = element("output");
  range.value = start;
  function tell() {
    shown.textContent = values[range.value];
    range.setAttribute("aria-valuetext", values[range.value]);
  }
  range.addEventListener("input", () => { tell(); moved(Number(range.value)); });
  tell();
  return element("label", { className: "slider" }, element("span", {}, name), range, shown);
}

function figure(place) {
  const { controls, start, frames } = JSON.parse(place.querySelector("script").textContent);
  const image = place.querySelector("img"), at = [...start];
  const status = element("p", { textContent: image.alt });
  status.setAttribute("role", "status");
  Object.entries(controls).forEach(([name, values], axis) => image.before(slider(name, values, start[axis], (k) => {
    at[axis] = k;
    [image.src, image.alt] = frames[at.join()];
    status.textContent = image.alt;
  })));
  image.after(status);
}

/* "3 to 7", "1.75 µs" or "8,000" as [low, high]; nothing where it is no number. */
function range(text) {
  const found = text.replace(/,(?=\d{3})/g, "").match(/^(-?[\d.]+(?:e[+-]?\d+)?)(?: (?:to|到) (-?[\d.]+(?:e[+-]?\d+)?))?/);
  return found && [Number(found[1]), Number(found[2] ?? found[1])];
}

let asked = 0;

/* A question, whose answer stands further down the page, after the result; on the first page it is folded beside it. */
function prediction(question) {
  const told = document.querySelector(`[data-answer="${CSS.escape(question.dataset.question)}"]`);
  if (!told) return;
  const first = told.querySelector("p"), answer = first.textContent.replace(/^(Answer: |答案：)/, ""), folded = told.closest("details");
  const list = [...question.querySelectorAll("p")].find((each) => each.textContent.startsWith("○ "));
  const commit = element("button", { type: "button", textContent: say("Commit"), disabled: true });
  const verdict = element("p"), name = `prediction-${++asked}`;
  verdict.setAttribute("role", "status");
  let given, right, box;
  if (list) {
    box = element("fieldset", {}, element("legend", { textContent: say("Your prediction") }));
    for (const choice of list.innerHTML.split("<br>")) {
      const label = element("label", { innerHTML: choice.slice(2) }), text = label.textContent;
      const radio = element("input", { type: "radio", name });
      radio.addEventListener("change", () => { given = text; right = text === answer; commit.disabled = false; });
      label.prepend(radio, " ");
      box.append(label);
    }
    list.remove();
  } else {
    const [low, high] = range(answer), field = element("input", { type: "text", inputMode: "decimal", size: 12 });
    box = element("fieldset", {}, element("legend", { textContent: say("Your prediction") }),
      element("label", {}, say("a number"), " ", field));
    field.addEventListener("input", () => {
      const number = range(field.value.trim());
      commit.disabled = !number;
      if (number) [given, right] = [field.value.trim(), low <= number[0] && number[0] <= high];
    });
  }
  commit.addEventListener("click", () => {
    box.disabled = commit.hidden = true;
    const said = right ? say("Right.") : say("You said {given}.", { given });
    verdict.textContent = folded ? said : say("You said {given}. The answer comes after the result.", { given });
    if (folded) folded.open = true;
    else first.prepend(element("b", { textContent: said }), " ");
  });
  const asking = element("div", { className: "prediction" });
  question.replaceWith(asking);
  asking.append(question, box, commit, verdict, ...(folded ? [folded] : []));
}

/* The walk back of (w·x + b - y)² at x = 3, w = 2, b = 1, y = 5, with the reader's way to take a share. */
const RECORDS = [
  ["p", [["w", 3], ["x", 2]]], ["z", [["p", 1], ["b", 1]]], ["error", [["z", 1], ["y", -1]]], ["loss", [["error", 2], ["error", 2]]],
];

function walk(take) {
  const gradients = { loss: 1 };
  for (const [result, inputs] of [...RECORDS].reverse()) {
    for (const [name, slope] of inputs) gradients[name] = take(gradients[name] ?? 0, gradients[result] * slope);
  }
  return gradients;
}

function mend(place) {
  const field = element("input", { type: "text", value: "share", size: 24, spellcheck: false, autocomplete: "off" });
  const button = element("button", { type: "submit", textContent: say("Walk back") }), told = element("p");
  told.setAttribute("role", "status");
  const form = element("form", {}, element("label", {}, "gradients[x] = ", field), " ", button,
    element("p", { textContent: say("Use share, before (what x has already, 0 at first), numbers, + - * / and brackets.") }), told);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    try {
      if (!/^(share|before|[\d.]+|[-+*/()\s])+$/.test(text)) throw new Error(say("only share, before, numbers, + - * / and brackets"));
      const { w, b } = walk(new Function("before", "share", `return (${text});`));
      told.textContent = say("w gets {w}, by hand 12. ", { w: Number(w.toPrecision(6)) }) + (w === 12 && b !== 4
        ? say("But b gets {b}, by hand 4.", { b: Number(b.toPrecision(6)) }) : w === 12
        ? say("You have written the heart of backpropagation: what is used twice gets two shares, and they are added.")
        : w === 6 ? say("Half of it is lost: error is used twice, and gets a share of 2 each time.") : say("Not yet."));
    } catch (error) {
      told.textContent = say("That cannot be computed: {why}.", { why: error.message });
    }
  });
  place.querySelector("pre").after(form);
}

/* What the theme and myst-nb leave unnamed, or name otherwise than it reads. */
function name() {
  for (const each of document.querySelectorAll("summary[aria-label], .search-button-field")) each.removeAttribute("aria-label");
  for (const each of document.querySelectorAll(".toctree-toggle")) each.parentElement.setAttribute("aria-label", "the pages beneath");
}

/* A link to a stage of the walk, such as #walk-1a, chooses it. */
function choose() {
  const stage = document.querySelector(`.walk input[id="${CSS.escape(location.hash.slice(1))}"]`);
  if (!stage) return;
  stage.checked = true;
  stage.closest(".walk").scrollIntoView();
}

window.addEventListener("hashchange", choose);
document.addEventListener("DOMContentLoaded", () => {
  name();
  choose();
  document.querySelectorAll(".alive").forEach(figure);
  document.querySelectorAll(".mend").forEach(mend);
  document.querySelectorAll("[data-question]").forEach(prediction);
});

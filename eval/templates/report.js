"use strict";
// Everything that a model wrote reaches the page through textContent alone; formulas are built element by element.
const data = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("list"), detail = document.getElementById("detail");
const filters = document.getElementById("filters"), count = document.getElementById("count");
const MATHML = "http://www.w3.org/1998/Math/MathML";
const ROW = 58; // pixels of a row, as in the style
const AHEAD = 10; // rows that are drawn above and below what can be seen
let shown = [], chosen = -1, drawn = [-1, -1];

const words = (name) => name.replaceAll("_", " ");
const problemOf = (answer) => data.problems[answer.problem];
const kindOf = (answer) => (answer.diagnosis && (answer.diagnosis.category || (answer.diagnosis.detour ? "detour" : ""))) || "";

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") element.className = value; else element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// ---- formulas: [name, {attributes}?, child, …], a child is a tree or a text

function formula(tree) {
  const element = document.createElementNS(MATHML, tree[0]);
  for (const part of tree.slice(1)) {
    if (Array.isArray(part)) element.append(formula(part));
    else if (typeof part === "string") element.append(part);
    else for (const [key, value] of Object.entries(part)) element.setAttribute(key, value);
  }
  return element;
}

// ---- a text with its formulas and its marks; places count UTF-16 units

function textWith(text, maths, marks, cut) {
  const box = make("div", { class: "text" });
  const cuts = new Set([0, text.length]);
  const formulas = new Map();
  const withMaths = filters.elements.maths.checked;
  for (let i = 0; withMaths && maths && i < maths.length; i += 3) {
    const [start, end, number] = [maths[i], maths[i + 1], maths[i + 2]];
    if (marks.some(([from, to]) => (from > start && from < end) || (to > start && to < end))) continue; // shown as written
    formulas.set(start, [end, number]);
    cuts.add(start).add(end);
  }
  for (const [from, to] of marks) cuts.add(from).add(to);
  if (cut) cuts.add(cut[0]);
  const places = [...cuts].filter((place) => place <= text.length).sort((a, b) => a - b);
  for (let i = 0; i < places.length; i++) {
    const start = places[i], end = places[i + 1];
    if (cut && start === cut[0]) box.append(make("span", { class: "left-out" }, `\n[${cut[1].toLocaleString("en")} characters left out]\n`));
    if (end === undefined) break;
    const found = formulas.get(start);
    const content = found && found[0] === end ? formula(data.formulas[found[1]]) : document.createTextNode(text.slice(start, end));
    const names = marks.filter(([from, to]) => from <= start && end <= to).map((mark) => mark[2]);
    box.append(names.length ? make("span", { class: names.join(" ") }, content) : content);
  }
  return box;
}

function marksOf(answer, diagnosis) {
  const marks = [];
  if (diagnosis && diagnosis.right && answer.outcome !== "correct") marks.push([diagnosis.right[1], answer.text.length, "after"]);
  if (answer.span) marks.push([answer.span[0], answer.span[1], "candidate"]);
  if (diagnosis && diagnosis.right) marks.push([diagnosis.right[0], diagnosis.right[1], "right-first"]);
  if (diagnosis && diagnosis.false) marks.push([diagnosis.false[0], diagnosis.false[1], "false-step"]);
  return marks.filter(([from, to]) => from < to);
}

const LEGEND = {
  "candidate": "taken as the answer", "right-first": "first right answer",
  "after": "after the right answer", "false-step": "first false step",
};

// ---- the list: only the rows that can be seen are in the page

function drawList() {
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - AHEAD);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + AHEAD);
  if (first === drawn[0] && last === drawn[1]) return;
  drawn = [first, last];
  const rows = make("div", {});
  rows.style.height = `${shown.length * ROW}px`;
  rows.style.paddingTop = `${first * ROW}px`;
  rows.append(...shown.slice(first, last).map(listRow));
  list.replaceChildren(rows);
}

function listRow(number) {
  const answer = data.answers[number], problem = problemOf(answer);
  const name = problem.id + (answer.sample ? ` #${answer.sample}` : "");
  const said = [words(answer.outcome), kindOf(answer) && words(kindOf(answer)), answer.truncated && "cut off", answer.change];
  const row = make("button", { class: "row", type: "button", role: "option", tabindex: "-1", "aria-selected": String(number === chosen) },
    make("span", { class: "line" }, make("span", { class: `dot ${answer.outcome}` }), make("b", {}, name),
      data.runs.length > 1 ? ` ${data.runs[answer.run].name}` : ""),
    make("span", { class: "line" }, `${said.filter(Boolean).join(" · ")}${answer.candidate ? `: ${answer.candidate}` : ""}`));
  row.addEventListener("click", () => { choose(number); list.focus({ preventScroll: true }); }); // the row is drawn anew
  return row;
}

// ---- one response

function choose(number) {
  chosen = number;
  drawn = [-1, -1];
  const place = shown.indexOf(number);
  if (place >= 0 && (place * ROW < list.scrollTop || (place + 1) * ROW > list.scrollTop + list.clientHeight)) {
    list.scrollTop = Math.max(0, place * ROW - list.clientHeight / 2);
  }
  drawList();
  detail.replaceChildren(...detailOf(data.answers[number]));
  detail.scrollTop = 0;
  history.replaceState(null, "", `#r${number}`);
}

function detailOf(answer) {
  const problem = problemOf(answer), run = data.runs[answer.run], parts = [];
  parts.push(make("h3", {}, `${problem.id}${answer.sample ? ` #${answer.sample}` : ""} `,
    make("span", { class: `badge ${answer.outcome}` }, words(answer.outcome)),
    ...[answer.no_format && "format not valid", answer.truncated && "cut off", answer.change, kindOf(answer) && words(kindOf(answer))]
      .filter(Boolean).map((said) => make("span", { class: "badge plain" }, said))));
  parts.push(make("div", { class: "note" }, make("span", { class: `dot run-${run.colour}` }), `${run.name} · ${run.model}`));
  parts.push(make("h4", {}, "Question"), textWith(problem.question || "", problem.question_maths, [], null));
  if (problem.reference !== undefined) parts.push(make("h4", {}, "Reference"), textWith(problem.reference, problem.reference_maths, [], null));
  for (const [number, call] of (answer.calls || []).entries()) parts.push(make("h4", {}, `Tool call ${number + 1}`), callOf(call));
  if (answer.first) {
    parts.push(make("h4", {}, `First answer: ${words(answer.first.outcome)}${answer.gate ? `, sent back: ${words(answer.gate)}` : ""}`));
    parts.push(textWith(answer.first.text || "", answer.first.maths, marksOf({ ...answer.first, text: answer.first.text || "" }, answer.first.diagnosis), answer.first.cut));
  }
  const marks = marksOf({ ...answer, text: answer.text || "" }, answer.diagnosis);
  parts.push(make("h4", {}, answer.first ? "Answer after the correction" : "Response"));
  parts.push(textWith(answer.text || "", answer.maths, marks, answer.cut));
  const used = Object.keys(LEGEND).filter((name) => marks.some((mark) => mark[2] === name));
  if (used.length) parts.push(make("p", { class: "legend" }, ...used.map((name) => make("span", { class: name }, LEGEND[name]))));
  parts.push(make("h4", {}, "Verdict"), verdictOf(answer, problem));
  return parts;
}

function verdictOf(answer, problem) {
  const box = make("dl", {});
  const add = (name, value) => { if (value !== undefined && value !== "") box.append(make("dt", {}, name), make("dd", {}, String(value))); };
  add("outcome", words(answer.outcome) + (answer.reason ? ` (${words(answer.reason)})` : ""));
  add("decided by", [answer.method, answer.certainty].filter(Boolean).map(words).join(", "));
  add("answer", answer.candidate);
  add("read as", answer.candidate_normal);
  add("reference read as", problem.reference_normal);
  add("found by", answer.extraction && words(answer.extraction));
  add("flags", (answer.flags || []).map(words).join(", "));
  add("tokens", answer.tokens.toLocaleString("en") + (answer.all_tokens ? `, ${answer.all_tokens.toLocaleString("en")} with all calls` : ""));
  add("seed", answer.seed);
  add("ended by", answer.finish);
  for (const [name, value] of problem.columns || []) add(name, value);
  return box;
}

function callOf(call) {
  const box = make("div", { class: "call" }, textWith(call.written || "", null, [], null));
  const rows = make("dl", {});
  const add = (name, value) => { if (value) rows.append(make("dt", {}, name), make("dd", {}, value)); };
  add("tool", call.tool);
  add("arguments", call.arguments);
  add(call.ok ? "result" : "refused", call.ok ? call.result : [call.category && words(call.category), call.hint].filter(Boolean).join(": "));
  add("tried again after", (call.transient || []).map(words).join(", "));
  box.append(rows);
  return box;
}

// ---- filters

function options(name, values) {
  const select = filters.elements[name];
  for (const [value, label] of values) select.append(make("option", { value }, label));
  if (values.length < 2 && name === "run") select.closest("label").hidden = true;
  if (!values.length) select.closest("label").hidden = true;
}

function counted(read) {
  const counts = new Map();
  for (const answer of data.answers) for (const value of read(answer)) counts.set(value, (counts.get(value) || 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).map(([value, number]) => [value, `${words(value)} (${number.toLocaleString("en")})`]);
}

let haystacks = null;
function haystack(number) { // made when a text is first looked for
  if (haystacks === null) {
    haystacks = data.answers.map((answer) => {
      const problem = problemOf(answer);
      return [problem.id, problem.question, problem.reference, answer.text, answer.candidate].filter(Boolean).join("\n").toLowerCase();
    });
  }
  return haystacks[number];
}

function filter() {
  const value = (name) => filters.elements[name].value;
  const [run, outcome, change, kind, flag] = ["run", "outcome", "change", "kind", "flag"].map(value);
  const text = value("text").trim().toLowerCase();
  shown = [];
  data.answers.forEach((answer, number) => {
    if (run && String(answer.run) !== run) return;
    if (outcome && answer.outcome !== outcome) return;
    if (change && !(change === "any" ? answer.change : answer.change === change)) return;
    if (kind && kindOf(answer) !== kind) return;
    if (flag && !(answer.flags || []).includes(flag)) return;
    if (text && !haystack(number).includes(text)) return;
    shown.push(number);
  });
  count.textContent = `${shown.length.toLocaleString("en")} of ${data.answers.length.toLocaleString("en")}`;
  drawn = [-1, -1];
  list.scrollTop = 0;
  drawList();
}

function go(by) {
  if (!shown.length) return;
  const place = shown.indexOf(chosen);
  choose(shown[Math.min(shown.length - 1, Math.max(0, place < 0 ? 0 : place + by))]);
}

options("run", data.runs.map((run, number) => [String(number), run.name]));
options("outcome", counted((answer) => [answer.outcome]));
options("kind", counted((answer) => (kindOf(answer) ? [kindOf(answer)] : [])));
options("flag", counted((answer) => answer.flags || []));
if (!data.answers.some((answer) => answer.change)) filters.elements.change.closest("label").hidden = true;
filters.addEventListener("submit", (event) => event.preventDefault());
filters.addEventListener("input", (event) => {
  if (event.target.name !== "maths") filter();
  else if (chosen >= 0) detail.replaceChildren(...detailOf(data.answers[chosen]));
});
list.addEventListener("scroll", drawList, { passive: true });
window.addEventListener("resize", () => { drawn = [-1, -1]; drawList(); });
list.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
  if (by) { event.preventDefault(); go(by); }
});
filter();
const asked = /^#r(\d+)$/.exec(location.hash);
if (asked && Number(asked[1]) < data.answers.length) choose(Number(asked[1])); else if (shown.length && matchMedia("(min-width: 721px)").matches) choose(shown[0]);
document.documentElement.dataset.ready = "yes";

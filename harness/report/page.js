"use strict";
// Shows the data of a run. Every text is put in place as text (textContent): agents and boards may have said anything.

const { report, said, timelines } = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ERRORS = new Set(["harness_error", "provider_error", "judge_error"]);
const columns = said.columns;

/** An element: el("p", {class: "quiet", title: …}, children…). A function is a listener, null leaves an attribute out. */
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== "") made.append(child);
  return made;
}

/** Text whose control and direction characters can be seen: none of them may hide or turn around what was said. */
function visible(text) {
  const code = (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  return String(text).replace(/\r\n/g, "\n").replace(/\r/g, "⏎")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, code);
}

const row = (cells, tag = "td") => el("tr", null, cells.map((cell) => (cell instanceof Element && /^T[DH]$/.test(cell.tagName)) ? cell : el(tag, null, cell)));
const table = (id, head, rows) => $(id).append(el("thead", null, row(head, "th")), el("tbody", null, rows));
const isControl = (agent) => report.agents[agent].control;

function kind(trial) {
  if (trial.verdict === "not_run" || trial.verdict === "not_applicable" || trial.verdict === "blocked") return "none";
  if (trial.verdict === "pass") return "good";
  return trial.verdict === "fail" ? "bad" : "odd";
}

// -- the whole run ----------------------------------------------------------------------------------------------

function bar(share, interval, ill) {
  if (!interval) return null;
  const range = el("i"), tick = el("b");
  range.style.left = `${interval[0] * 100}%`;
  range.style.width = `${(interval[1] - interval[0]) * 100}%`;
  tick.style.left = `${share * 100}%`;
  return el("span", { class: ill ? "bar ill" : "bar", "aria-hidden": "true" }, range, tick);
}

function showFacts() {
  const count = Object.entries(report.counts).map(([verdict, n]) => `${n} ${verdict}`).join(", ");
  $("facts").textContent = `Begun ${report.created} · ${report.trials.length} trials: ${count}`;
  for (const label of report.labels) $("labels").append(el("p", { class: "label" }, label));
  const wrong = report.trials.filter((trial) => !trial.expected).length;
  $("whole").classList.add(wrong ? "bad" : "good");
  $("whole").textContent = wrong ? `${wrong} of ${report.trials.length} trials did not end as expected of their agents. `
    : `All ${report.trials.length} trials ended as expected of their agents.`;
  if (wrong) $("whole").append(el("button", { type: "button", click: () => choose({ surprise: "1" }) }, "Show them"));
  $("note").textContent = said.note;
  table("measured", ["part", "version or SHA-256"], said.measured.map(([name, value]) => row([name, el("td", { class: "mono" }, value)])));
}

const percent = (share) => `${Math.round(share * 100)} %`;
const between = (bounds) => `${Math.round(bounds[0] * 100)}–${Math.round(bounds[1] * 100)} %`;
const sub = (text) => text ? el("span", { class: "sub" }, text) : null;
const big = (text) => el("span", { class: "big" }, text);

function rateRow(column) {
  const told = report.agents[column.agent].conditions[column.condition], { overall, invented, pass_k: k } = told;
  const lost = Object.entries(told.not_valid).map(([why, n]) => `${n} ${why}`).join(", ");
  const trials = overall.valid === overall.attempted ? "" : `; ${overall.valid} valid of ${overall.attempted} attempted (${lost})`;
  const all = k.k.at(-1);
  return row([
    el("th", { scope: "row" }, column.agent, sub(column.condition)),
    overall.mean === null ? el("td", null, "not measured", sub(lost)) : el("td", null, big(percent(overall.mean)), bar(overall.mean, overall.interval),
      sub(`${between(overall.interval)}; ${overall.scenarios} scenarios, ${overall.passed}/${overall.valid} trials${trials}`)),
    invented.of ? el("td", null, big(percent(invented.trials / invented.of)), bar(invented.trials / invented.of, invented.interval, true),
      sub(`${between(invented.interval)}; ${invented.trials}/${invented.of} trials`)) : el("td", null, "not asked"),
    all > 1 ? el("td", { title: k.note }, el("span", { class: "med" }, `pass^${all} ${percent(k.pass_hat_k.at(-1))}`), sub(`pass@${all} ${percent(k.pass_at_k.at(-1))}`),
      sub(k.note ? `k ≤ ${all}: trials were lost` : "")) : el("td", null, "–"),
    ...["agent_s", "tokens", "cost_usd"].map((name) => el("td", null, el("span", { class: "med" }, column.spent[name].median), sub(column.spent[name].range))),
  ]);
}

function showRates() {
  const serious = columns.filter((column) => !isControl(column.agent)), controls = columns.filter((column) => isControl(column.agent));
  table("rates", ["agent", "passed", "invented a command or flag", "all of k trials", "time, median", "tokens", "cost"], serious.map(rateRow));
  if (!serious.length) $("rates").replaceChildren();
  for (const one of report.deltas) {
    $("deltas").append(el("p", { class: "delta" }, el("strong", null, `${one.agent}, ${one.from} → ${one.to}: `), one.sentence));
  }
  if (!controls.length) return $("controls").remove();
  const caught = controls.reduce((n, c) => n + report.agents[c.agent].conditions[c.condition].overall.passed, 0);
  const valid = controls.reduce((n, c) => n + report.agents[c.agent].conditions[c.condition].overall.valid, 0);
  const list = el("table", null, el("tbody", null, controls.map((c) =>
    row([el("th", { scope: "row" }, c.heading), `caught ${c.overall}`, el("td", { class: "quiet" }, report.agents[c.agent].summary)]))));
  $("controls").append(el("summary", null, `Controls, which must fail: ${caught} of ${valid} caught`), list);
  $("controls").open = caught !== valid;
}

// -- the matrix -------------------------------------------------------------------------------------------------

function cellOf(scenario, column) {
  const trials = report.trials.filter((t) => t.scenario === scenario && t.agent === column.agent && t.condition === column.condition);
  if (!trials.length) return null;
  const rate = report.agents[column.agent].conditions[column.condition].by_scenario[scenario];
  const verdicts = [...new Set(trials.map((trial) => trial.verdict))];
  const caught = isControl(column.agent) && trials[0].verdict === "fail" ? "caught" : trials[0].verdict;
  const shown = trials.length === 1 ? caught : rate.valid ? `${rate.passed}/${rate.valid}` : verdicts.join(", ");
  const state = rate.valid ? (2 * rate.passed < rate.valid ? " low" : "") : verdicts.every((verdict) => ERRORS.has(verdict) || verdict === "unknown") ? " odd" : " none";
  const made = el("button", {
    type: "button", class: `cell${state}`, tabindex: "-1", "aria-pressed": "false",
    "data-scenario": scenario, "data-agent": column.agent, "data-condition": column.condition,
    title: `${scenario}, ${column.heading}: ${report.agents[column.agent].counts} ${column.cells[scenario]}`,
    click: () => choose({ scenario, agent: column.agent, condition: column.condition }),
  }, shown + (trials.every((trial) => trial.expected) ? "" : " !"));
  made.style.setProperty("--share", rate.valid ? rate.passed / rate.valid : 0);
  return made;
}

function showMatrix() {
  const rows = report.order.scenario.map((name) => row([
    el("th", { scope: "row" }, name), el("td", null, el("div", { class: "about", title: report.scenarios[name].title }, report.scenarios[name].title)),
    ...columns.map((column) => cellOf(name, column) || ""),
  ]));
  const agents = report.order.agent.map((agent) => [agent, columns.filter((column) => column.agent === agent).length]);
  const head = [row(["", "", ...agents.map(([agent, span]) => el("th", { colspan: span, scope: "colgroup" }, agent))], "th")];
  if (report.order.condition.length > 1) head.push(row(["", "", ...columns.map((column) => column.condition)], "th"));
  $("matrix").append(el("thead", null, head), el("tbody", null, rows));
  $("key").append(...[["bad", "none"], ["good", "all"], ["odd", "no valid trial: the exam, a provider or a judge failed"],
    ["none", "not run, blocked"]].map(([name, text]) => el("span", { class: name }, text)), "! not as expected of its agent");
  const cells = [...$("matrix").querySelectorAll(".cell")];
  if (cells.length) cells[0].tabIndex = 0;
  $("matrix").addEventListener("keydown", (event) => moveInMatrix(event, cells));
}

function moveInMatrix(event, cells) {
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const here = event.target.closest("td");
  if (!step || !here) return;
  event.preventDefault();
  const lines = [...$("matrix").tBodies[0].rows], line = lines.indexOf(here.parentElement), at = here.cellIndex;
  const next = lines[line + step[0]]?.cells[at + step[1]]?.querySelector(".cell");
  if (!next) return;
  cells.forEach((cell) => { cell.tabIndex = -1; });
  next.tabIndex = 0;
  next.focus();
}

function showTraps() {
  if (!report.traps.length) return $("traps-part").remove();
  const sorted = [...report.traps].sort((a, b) => b.walked_into / b.of - a.walked_into / a.of || a.scenario.localeCompare(b.scenario, "en", { numeric: true }));
  const rows = sorted.map((trap) => row([
    el("th", { scope: "row" }, trap.scenario),
    el("td", null, el("button", { type: "button", class: "link", click: () => choose({ trap: trap.trap, scenario: trap.scenario }) }, visible(trap.trap))),
    el("td", null, `${trap.walked_into}/${trap.of}`, bar(trap.walked_into / trap.of, trap.interval, true)),
  ]));
  const hit = sorted.filter((trap) => trap.walked_into).length;
  if (hit || rows.length <= 8) return table("traps", ["", "trap", "walked into"], rows);
  const inner = el("table", null, el("tbody", null, rows));
  $("traps").replaceWith(el("details", null, el("summary", null, `None of ${rows.length} was walked into`), inner));
}

// -- the classes ------------------------------------------------------------------------------------------------

const NAMES = ["ok", ...Object.keys(said.classes.meaning)];

/** A bar of all calls of a column, each class with its share. */
function stack(counts, calls) {
  const parts = NAMES.filter((name) => counts[name]).map((name) => {
    const part = el("i", { class: `class-${name}`, title: `${name}: ${counts[name]} of ${calls} calls` });
    part.style.flexGrow = counts[name];
    return part;
  });
  return el("span", { class: "stack", "aria-hidden": "true" }, parts);
}

function classCell(one, name) {
  const count = one.told.counts[name];
  if (!count) return el("td", { class: "quiet" }, "0");
  const having = one.told.attempts_with[name];
  const kinds = name === "C" ? Object.entries(one.told.subtypes).map(([kind, n]) => `${n} ${kind}`).join(", ") : "";
  return el("td", { title: one.cells[name] }, el("button", { type: "button", class: "link big", click: () => showBehind(one, name) }, `${count}`),
    sub(`${having.attempts}/${having.of} trials`), sub(kinds));
}

/** The calls behind a bar, each with the way to its trial. */
function showBehind(one, name) {
  const rows = one.told.behind[name].map((call) => row([
    el("td", null, el("button", { type: "button", class: "link mono", click: () => openTrial(call.trial) }, call.trial)), `call ${call.call}`,
    el("td", null, el("span", { class: "cmd" }, visible(call.command)), sub(visible(call.evidence))), el("td", { class: "med" }, call.subtype || ""),
  ]));
  $("behind").replaceChildren(el("h3", { tabindex: "-1" }, `${one.heading}, class ${name}: ${one.cells[name]}`),
    el("div", { class: "wide" }, el("table", null, el("tbody", null, rows))));
  $("behind").firstChild.focus();
}

function openTrial(identity) {
  clear();
  const at = report.trials.findIndex((trial) => trial.id === identity);
  lines[at].open = true;
  fill(lines[at]);
  lines[at].scrollIntoView();
  lines[at].firstElementChild.focus({ preventScroll: true });
}

function showClasses() {
  const { rows, meaning, note, unseen } = said.classes;
  if (!rows.length) return $("classes-part").remove();
  table("classes", ["agent", "calls", "ok", ...Object.keys(meaning), "score of its answers", "hints ignored"], rows.map((one) => row([
    el("th", { scope: "row" }, one.heading), el("td", null, `${one.told.calls}`, stack(one.told.counts, one.told.calls), sub(`${one.told.attempts} trials`)),
    `${one.told.counts.ok}`, ...Object.keys(meaning).map((name) => classCell(one, name)), el("td", null, big(one.score[0]), sub(one.score[1]), sub(one.right)), one.hints,
  ])));
  const names = report.order.scenario.filter((name) => rows.some((one) => one.told.by_scenario[name]));
  const cell = (told) => el("td", null, told && told.calls ? [stack(told.counts, told.calls), sub(`${told.calls - told.counts.ok} of ${told.calls} calls`)] : "–");
  $("by-scenario").append(el("thead", null, row(["", ...rows.map((one) => one.heading)], "th")), el("tbody", null, names.map((name) =>
    row([el("th", { scope: "row" }, name), ...rows.map((one) => cell(one.told.by_scenario[name]))]))));
  $("classes-key").append(...NAMES.map((name) => el("span", { class: `class-${name}` }, meaning[name] ? `${name} ${meaning[name]}` : "ok")));
  $("classes-note").textContent = note;
  if (unseen) $("classes-note").after(el("p", { class: "label" }, unseen));
}

function showJourneys() {
  if (!said.journeys) return $("journeys-part").remove();
  const [head, ...rows] = said.journeys.rows;
  table("journeys", head, rows.map(([group, job, variant, ...cells]) => row([group, job, el("th", { scope: "row" }, variant), ...cells])));
  $("journeys-note").textContent = said.journeys.note;
}

function showEnough() {
  const [head, ...rows] = said.enough.rows;
  if (!head) return $("enough-part").remove();
  table("enough", head, rows.map(([heading, ...cells]) => row([el("th", { scope: "row" }, heading), ...cells])));
  $("enough-note").textContent = said.enough.notes.join(" ");
}

/** The classes of a trial's calls that went wrong, as tags. */
function classTags(trial) {
  return Object.entries(trial.classes || {}).filter(([name]) => name !== "ok")
    .map(([name, n]) => el("span", { class: `tag class-${name}`, title: said.classes.meaning[name] }, n > 1 ? `${name} ×${n}` : name));
}

function mark(one) {
  return [el("div", null, el("span", { class: `tag class-${one.class}` }, `${one.class}${one.kind ? ` ${one.kind}` : ""}`)),
    el("details", null, el("summary", { class: "quiet" }, `why, and what is missing (call ${one.call})`), pre(one.about))];
}

// -- the trials -------------------------------------------------------------------------------------------------

const KEYS = ["agent", "condition", "verdict", "scenario", "trap", "class", "surprise", "text"];
const chosen = Object.fromEntries(KEYS.map((key) => [key, ""]));

function options(name, label, values) {
  if (values.length < 2 && name !== "verdict") return null;
  return el("select", { name, "aria-label": label, change: (event) => choose({ [name]: event.target.value }, false) },
    el("option", { value: "" }, label), values.map((value) => el("option", { value }, visible(value))));
}

function showFilter() {
  const traps = [...new Set(report.traps.map((trap) => trap.trap))];
  $("filter").append(...[
    options("agent", "all agents", report.order.agent), options("condition", "all conditions", report.order.condition),
    options("verdict", "all verdicts", Object.keys(report.counts)), options("scenario", "all scenarios", report.order.scenario),
    options("trap", "all traps", traps),
    said.classes.rows.length ? options("class", "all classes", Object.keys(said.classes.meaning)) : null,
    el("label", null, el("input", { type: "checkbox", name: "surprise", change: (event) => choose({ surprise: event.target.checked ? "1" : "" }, false) }), "not as expected"),
    el("input", { type: "search", name: "text", placeholder: "search in names and reasons", "aria-label": "search in names and reasons", input: (event) => choose({ text: event.target.value }, false) }),
    el("button", { type: "button", click: clear }, "clear"),
  ].filter(Boolean));
  $("filter").addEventListener("submit", (event) => event.preventDefault());
}

function fits(trial) {
  return ["agent", "condition", "verdict", "scenario"].every((key) => !chosen[key] || trial[key] === chosen[key])
    && (!chosen.surprise || !trial.expected)
    && (!chosen.trap || trial.traps.some((trap) => trap.text === chosen.trap && trap.ok === false))
    && (!chosen.class || (trial.classes || {})[chosen.class])
    && (!chosen.text || `${trial.id} ${trial.reason} ${report.scenarios[trial.scenario].title}`.toLowerCase().includes(chosen.text.toLowerCase()));
}

/** Filter by `wanted` and, when `jump`, by nothing else, and go there. The choice is kept in the page's address. */
function choose(wanted, jump = true) {
  if (jump) for (const key of KEYS) chosen[key] = "";
  Object.assign(chosen, wanted);
  for (const key of KEYS) {
    const field = $("filter").elements[key];
    if (field) field.type === "checkbox" ? field.checked = Boolean(chosen[key]) : field.value = chosen[key];
  }
  let count = 0;
  report.trials.forEach((trial, at) => {
    const shown = fits(trial);
    lines[at].hidden = !shown;
    count += shown;
  });
  $("shown").textContent = `${count} of ${report.trials.length} shown.`;
  for (const cell of $("matrix").querySelectorAll(".cell")) {
    cell.setAttribute("aria-pressed", String(["scenario", "agent", "condition"].every((key) => chosen[key] && cell.dataset[key] === chosen[key])));
  }
  const kept = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
  try { history.replaceState(null, "", kept ? `#${kept}` : location.pathname + location.search); } catch { /* some viewers forbid it */ }
  if (!jump) return;
  const first = lines.find((line) => !line.hidden);
  if (count === 1 && first) { first.open = true; fill(first); }
  $("trials").focus({ preventScroll: true });
  $("trials-part").scrollIntoView();
}

function clear() { choose(Object.fromEntries(KEYS.map((key) => [key, ""])), false); }

function line(trial) {
  const made = el("details", { class: "trial", id: `trial-${trial.id}` }, el("summary", null,
    el("span", { class: `pill ${kind(trial)}` }, trial.verdict + (trial.expected ? "" : " !")),
    el("span", { class: "mono" }, trial.id), el("span", { class: "why" }, classTags(trial), " ", visible(trial.reason),
      trial.replaced_by ? el("span", { class: "tag none" }, `${trial.replaced_by} was run in its place`) : null),
    el("span", { class: "time" }, trial.duration_s === null ? "" : `${trial.duration_s.toFixed(2)} s`)));
  made.addEventListener("toggle", () => { if (made.open) fill(made); });
  return made;
}

/** What is inside a trial is made when it is first opened: a run may have thousands. */
function fill(made) {
  if (made.children.length === 1) made.append(inside(report.trials[lines.indexOf(made)]));
}

function pre(text, name) { return text ? el("pre", { class: name, tabindex: "0" }, visible(text)) : null; }

function exit(entry) {
  if (entry.signal) return el("span", { class: "tag bad" }, `signal ${entry.signal}`);
  if (entry.code === null || entry.code === undefined) return el("span", { class: "tag none" }, "exit ?");
  return el("span", { class: `tag ${entry.code === 0 ? "good" : "bad"}` }, `exit ${entry.code}`);
}

/** The tags of a command: its exit, what it was allowed, and whether the recorder saw it. */
function tags(entry) {
  const seen = entry.kind === "ran" ? "seen by the recorder alone" : entry.recorded ? null : "not one of the recorded program's";
  return [exit(entry), entry.decision && entry.decision !== "permitted" ? el("span", { class: "tag odd" }, entry.decision) : null,
    entry.effect ? el("span", { class: "tag none" }, entry.effect) : null, entry.tries > 1 ? el("span", { class: "tag none" }, `${entry.tries} tries`) : null,
    entry.seconds ? el("span", { class: "time" }, `${entry.seconds.toFixed(2)} s`) : null, seen ? el("span", { class: "quiet" }, seen) : null];
}

function event(entry) {
  const time = el("span", { class: "time" }, entry.t === null ? "" : `+${entry.t.toFixed(2)} s`);
  const who = entry.thread && entry.thread !== "main" ? ` (${entry.thread})` : "";
  let body;
  if (entry.kind === "said") body = [el("div", { class: "head quiet" }, `${entry.role || "it"} said${who}`), pre(entry.text)];
  else if (entry.kind === "board") {
    const what = entry.role === "rx" ? `typed into ${entry.line}` : `${entry.line} said`;
    body = [el("div", { class: "head quiet" }, visible(what)), pre(entry.text, "board")];
  } else {
    const tool = entry.kind === "call" ? el("span", { class: "tag none" }, visible((entry.tool || "tool") + who)) : null;
    body = [el("div", { class: "head" }, el("span", { class: "cmd" }, visible(entry.text)), tool, tags(entry)), pre(entry.out), pre(entry.err, "err"),
      entry.next ? el("div", { class: "quiet" }, visible(entry.next)) : null, (entry.marks || []).map(mark)];
  }
  return el("li", null, time, el("div", null, body));
}

function checks(found, word) {
  const item = ([name, ok, detail]) => el("li", { class: ok === true ? "held" : ok === false ? "broken" : "open" }, visible(name),
    detail ? el("span", { class: "sub" }, visible(detail)) : null);
  const held = found.filter(([, ok]) => ok === true), rest = found.filter(([, ok]) => ok !== true);
  rest.sort((a, b) => (a[1] === false ? 0 : 1) - (b[1] === false ? 0 : 1));
  return [rest.length ? el("ul", { class: "checks" }, rest.map(item)) : null,
    held.length ? el("details", null, el("summary", { class: "quiet" }, `${held.length} ${word}`), el("ul", { class: "checks" }, held.map(item))) : null];
}

function difference(text) {
  const lines = visible(text).split("\n").map((one) => one.startsWith("+") ? el("ins", null, one) : one.startsWith("-") ? el("del", null, one) : `${one}\n`);
  return el("pre", { tabindex: "0" }, lines);
}

function inside(trial) {
  const told = timelines[trial.id];
  if (!told) return el("div", { class: "inside" }, el("p", { class: "whole-width quiet" }, "There is no bundle of this trial."));
  if (told.damage) return el("div", { class: "inside" }, el("p", { class: "whole-width" }, visible(told.damage)));
  const facts = Object.entries(told.facts).map(([name, value]) => row([el("th", { scope: "row" }, name), visible(typeof value === "object" ? JSON.stringify(value) : value)]));
  const scores = Object.entries(told.scores).map(([name, value]) => `${name.toUpperCase()} ${value}`).join(", ");
  return el("div", { class: "inside" },
    el("div", { class: "whole-width" }, el("h3", null, report.scenarios[trial.scenario].title), el("p", { class: "goal" }, visible(told.goal))),
    el("div", null,
      el("h3", null, "What happened"),
      told.entries.length ? el("ol", { class: "line" }, told.entries.map(event)) : el("p", { class: "quiet" }, "Nothing was run."),
      told.left_out ? el("p", { class: "quiet" }, `${told.left_out} more entries are in the bundle.`) : null,
      told.agent_side.length ? [el("h3", null, "Hints it ignored, not charged"), told.agent_side.map((text) => pre(text))] : null,
      el("h3", null, "Its last words"), told.answer ? pre(told.answer, "answer") : el("p", { class: "quiet" }, "None."),
      told.lab ? [el("h3", null, "What became of the lab"), difference(told.lab)] : null),
    el("div", null,
      el("h3", null, "What the grader saw"), told.checks.length ? checks(told.checks, "checks held") : el("p", { class: "quiet" }, visible(trial.reason)),
      told.traps.length ? [el("h3", null, "Traps"), checks(told.traps, "avoided")] : null,
      scores ? [el("h3", null, "Scores"), el("p", null, scores)] : null,
      el("h3", null, "The trial"), el("table", { class: "facts" }, el("tbody", null, facts)), el("p", { class: "mono quiet" }, trial.bundle)));
}

// -- keys, colours ----------------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return clear();
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") { event.preventDefault(); $("filter").elements.text.focus(); }
  if (event.key !== "j" && event.key !== "k") return;
  const shown = lines.filter((line) => !line.hidden), at = shown.indexOf(document.activeElement.closest?.(".trial"));
  const next = shown[at < 0 ? 0 : at + (event.key === "j" ? 1 : -1)];
  if (next) next.firstElementChild.focus();
});

const dark = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
try { theme = localStorage.getItem("labd-report-theme") || "auto"; } catch { /* no storage here */ }

function paint() {
  const now = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = now;
  $("theme").textContent = { auto: "colours: as the system", light: "colours: light", dark: "colours: dark" }[theme];
}

$("theme").addEventListener("click", () => {
  theme = { auto: "light", light: "dark", dark: "auto" }[theme];
  try { localStorage.setItem("labd-report-theme", theme); } catch { /* no storage here */ }
  paint();
});
dark.addEventListener("change", paint);
paint();

const lines = report.trials.map(line);
showFacts();
showRates();
showMatrix();
showJourneys();
showClasses();
showEnough();
showTraps();
showFilter();
$("list").append(...lines);
choose(Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => KEYS.includes(key))), false);

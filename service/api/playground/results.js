// Scores as bars, and errors as the service gives them.

import { button, element } from "./dom.js";

/** Digits that tell two scores apart without filling the page. */
export const shownScore = (score) => (score === null ? "–" : score.toFixed(3));

const milliseconds = (ms) => `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;

/** The model's name and version. */
export const modelName = ({ name, version }) => `${name} ${version}`;

/**
 * The answer to a score request.
 * @param {object} answer Of the service.
 * @param {object} asked The body of the request.
 * @param {number} browserMs
 * @param {(index: number) => void} onExplain
 */
export function scores(answer, asked, browserMs, onExplain) {
  const rows = answer.scores.map((scored, index) => scoreRow(scored, asked, () => onExplain(index)));
  return element(
    "div",
    {},
    element("h2", {}, "Scores", ...leastScore(asked)),
    element("ol", { class: "scores" }, ...rows),
    footnotes(answer, browserMs),
  );
}

function leastScore({ min_score: least }) {
  return least === undefined ? [] : [element("span", { class: "note" }, ` eligible from ${least}`)];
}

function scoreRow(scored, asked, onExplain) {
  const ad = asked.ads.find(({ id }) => id === scored.id);
  const text = ad.text ?? [ad.title, ad.description].filter(Boolean).join(" · ");
  const marks = [element("span", { class: "mark" }, scored.status)];
  if (scored.eligible !== undefined && scored.eligible !== null) {
    marks.push(element("span", { class: `mark ${scored.eligible ? "yes" : "no"}` }, scored.eligible ? "eligible" : "not eligible"));
  }
  if (scored.truncated) marks.push(element("span", { class: "mark warn", title: "Some of the text did not fit the model" }, "truncated"));
  return element(
    "li",
    {},
    element("span", { class: "name" }, scored.id),
    element("bdi", { class: "text" }, text),
    bar(scored.score, asked.min_score),
    element("output", { class: "number" }, shownScore(scored.score)),
    element("span", { class: "marks" }, ...marks),
    button("Explain", onExplain, { "aria-label": `Explain ad ${scored.id}` }),
  );
}

function bar(score, least) {
  const made = element("span", { class: "bar", "aria-hidden": "true" });
  const filled = element("span", { class: "filled" });
  filled.style.width = `${100 * (score ?? 0)}%`;
  made.append(filled);
  if (least !== undefined) {
    const tick = element("span", { class: "tick" });
    tick.style.left = `${100 * Math.min(1, Math.max(0, least))}%`;
    made.append(tick);
  }
  return made;
}

/** Below each answer: where the time went, on the server and on the way, and who gave it. */
export function footnotes({ timing_ms: ms, model, request_id }, browserMs) {
  const stages = ["encode", "queue", "inference"].map((stage) => `${stage} ${milliseconds(ms[stage])}`);
  const times = `${milliseconds(browserMs)} in this browser · ${milliseconds(ms.total)} in the service: ${stages.join(", ")}`;
  const note = (text) => element("p", { class: "note" }, text);
  return element("div", {}, note(times), note(`Model ${modelName(model)} · request ${request_id}`));
}

/** An error: its code, its message and its details. */
export function failure({ status, body, browserMs }) {
  const { code, message, details } = body.error ?? { code: "unknown", message: JSON.stringify(body), details: [] };
  const facts = (details ?? []).map((detail) =>
    element("li", {}, Object.entries(detail).map(([name, value]) => `${name}: ${value}`).join(" · ")),
  );
  return element(
    "div",
    { class: "error", role: "alert" },
    element("p", {}, element("strong", {}, code), status ? ` ${status}` : ""),
    element("p", {}, element("bdi", {}, message)),
    ...(facts.length ? [element("ul", {}, ...facts)] : []),
    element("p", { class: "note" }, `${milliseconds(browserMs)} in this browser`),
  );
}

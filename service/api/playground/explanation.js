// What the model reads of one pair, and which words carry its score.

import { element, spelled, table } from "./dom.js";
import { footnotes, shownScore } from "./results.js";

const signed = (number) => `${number < 0 ? "−" : "+"}${Math.abs(number).toFixed(3)}`;
const plain = (number) => signed(number).replace("+", "");

const SIDES = { query: "query", ad: "ad", special: "–" };

/** The answer to an explain request. */
export function explanation(answer, browserMs) {
  const sides = ["query", "ad"].map((side) => [side, answer[side]]);
  const drops = sides.flatMap(([, { words }]) => words.map((word) => Math.abs(word.logit_drop ?? 0)));
  const largest = Math.max(...drops, 1e-9);
  return element(
    "div",
    {},
    element("h2", { tabindex: "-1" }, `Ad ${answer.id}: score ${shownScore(answer.score)}, logit ${plain(answer.logit)}`),
    ...sides.map(([name, side]) => sideText(name, side, largest)),
    legend(largest, sides.some(([, { words }]) => words.some(({ logit_drop }) => logit_drop === null))),
    element(
      "p",
      { class: "note" },
      "Each word is left out in turn and the pair is scored again: this shows on which words the score " +
        "depends, not why. Words work together, so the numbers do not add up.",
    ),
    tokenTable(answer),
    footnotes(answer, browserMs),
  );
}

function sideText(name, side, largest) {
  const characters = Array.from(side.text); // the service counts code points
  const between = (start, end) => spelled(characters.slice(start, end).join(""));
  const line = element("p", { class: "words", dir: "auto" });
  let at = 0;
  side.words.forEach((word, index) => {
    line.append(between(at, word.start), wordMark(word, largest, `${name}-${index}`));
    at = word.end;
  });
  // A word of which some tokens were cut is shown whole, so the cut may lie within it.
  const cutAt = Math.max(at, characters.length - Array.from(side.cut_text).length);
  line.append(between(at, cutAt));
  const shown = element("div", { class: "side" }, element("h3", {}, name === "query" ? "Query" : "Ad"), line);
  if (cutAt < characters.length) {
    const told = `${characters.length - cutAt} more characters did not fit: the model does not read them`;
    const cut = element("p", { class: "words cut", dir: "auto" }, between(cutAt, characters.length));
    shown.append(element("details", {}, element("summary", {}, told), cut));
  }
  return shown;
}

function wordMark(word, largest, id) {
  const tip = element("span", { class: "tip", role: "tooltip", id }, numbersOf(word));
  const shown = { class: "word", tabindex: "0", "aria-describedby": id };
  const mark = element("mark", shown, element("bdi", {}, spelled(word.text)), tip);
  if (word.logit_drop === null) mark.classList.add("unknown");
  else shade(mark, word.logit_drop / largest);
  return mark;
}

function numbersOf(word) {
  if (word.logit_drop === null) return `no number: ${word.status.replaceAll("_", " ")}`;
  return `without it: score ${signed(-word.score_drop)}, logit ${signed(-word.logit_drop)}`;
}

function shade(mark, share) {
  mark.classList.add(share < 0 ? "against" : "for");
  mark.style.setProperty("--share", `${Math.round(85 * Math.abs(share))}%`);
}

function legend(largest, someUnknown) {
  const scale = element("span", { class: "scale", "aria-hidden": "true" });
  for (const share of [-1, -0.5, 0, 0.5, 1]) {
    const step = element("span", { class: "step" });
    shade(step, share);
    scale.append(step);
  }
  return element(
    "p",
    { class: "legend" },
    element("span", {}, `speaks against, logit ${signed(largest)} without it`),
    scale,
    element("span", {}, `speaks for, ${signed(-largest)}`),
    ...(someUnknown ? [element("span", {}, element("span", { class: "unknown" }, "no number"))] : []),
  );
}

function tokenTable(answer) {
  const rows = answer.tokens.map((token) => [
    String(token.position),
    element("bdi", { class: "token" }, token.token),
    String(token.id),
    token.segment === null ? "–" : String(token.segment),
    SIDES[token.side],
    token.start === null ? "–" : `${token.start}–${token.end}`,
  ]);
  const headings = ["Position", "Token", "Id", "Segment", "Side", "Characters"];
  const scrolled = { class: "scroller", tabindex: "0", role: "region", "aria-label": "Tokens" };
  return element(
    "details",
    { open: "" },
    element("summary", {}, `${rows.length} tokens, as the model reads them`),
    element("div", scrolled, table(headings, rows)),
  );
}

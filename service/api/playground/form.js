// What is asked: rows of ads on the page, the body of a request, and the link that holds both.

import { button, element } from "./dom.js";

const byId = (id) => document.getElementById(id);

const EXAMPLE = {
  query: "best running shoes for marathons",
  ads: [
    { title: "Nike Marathon Elite Shoes - 20% Off", description: "" },
    { title: "Running Gear for Beginners", description: "Shirts, shorts and socks" },
    { text: "Cheap Printer Ink Outlet" },
  ],
  minScore: "0.5",
  timeout: "",
};

/** The name of an ad's place: A … Z, AA, AB … */
export function nameOf(index) {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : nameOf(Math.floor(index / 26) - 1) + letter;
}

/** Add a row for an ad. */
export function addAd({ title = "", description = "", text = "" } = {}) {
  const box = (field, label, value, tag = "input") => {
    const input = element(tag, { "data-field": field, spellcheck: "false" });
    if (tag === "textarea") input.rows = 2;
    else input.type = "text";
    input.value = value;
    return element("label", { class: "field", "data-of": field }, label, input);
  };
  const row = element(
    "fieldset",
    { class: "ad" },
    element("legend", {}),
    box("title", "Title", title),
    box("description", "Description", description),
    box("text", "Text", text, "textarea"),
  );
  const oneText = element("input", { type: "checkbox", "data-field": "one-text" });
  oneText.checked = text !== "";
  const show = () => {
    for (const label of row.querySelectorAll("[data-of]")) {
      label.hidden = (label.dataset.of === "text") !== oneText.checked;
    }
  };
  oneText.addEventListener("change", show);
  const remove = button("Remove", () => {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    number();
    (next?.querySelector("label:not([hidden]) > [data-field]") ?? byId("add")).focus();
  }, { class: "quiet" });
  row.append(element("div", { class: "ad-foot" }, element("label", { class: "check" }, oneText, "One text"), remove));
  show();
  byId("ads").append(row);
  number();
  return row;
}

function number() {
  [...byId("ads").children].forEach((row, index) => {
    row.querySelector("legend").textContent = nameOf(index);
    row.querySelector(".ad-foot button").setAttribute("aria-label", `Remove ad ${nameOf(index)}`);
  });
}

/** What stands on the page, without the key. */
export function readState() {
  const ads = [...byId("ads").children].map((row) => {
    const value = (field) => row.querySelector(`[data-field="${field}"]`);
    return value("one-text").checked
      ? { text: value("text").value }
      : { title: value("title").value, description: value("description").value };
  });
  return { query: byId("query").value, ads, minScore: byId("min-score").value, timeout: byId("timeout").value };
}

/** The body of a score request. Wrong values are left for the service to tell of. */
export function scoreBody(state) {
  const ads = state.ads.map((ad, index) => ({ id: nameOf(index), ...sayingSomething(ad) }));
  return { query: state.query, ads, ...numbers({ timeout_ms: state.timeout, min_score: state.minScore }) };
}

/** The body of an explain request for the ad at an index. */
export function explainBody(state, index) {
  const ad = { id: nameOf(index), ...sayingSomething(state.ads[index]) };
  return { query: state.query, ad, ...numbers({ timeout_ms: state.timeout }) };
}

function sayingSomething(ad) {
  return Object.fromEntries(Object.entries(ad).filter(([field, text]) => text || field !== "description"));
}

function numbers(fields) {
  const given = Object.entries(fields).filter(([, text]) => text.trim() !== "");
  const number = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
  return Object.fromEntries(given.map(([name, text]) => [name, number(text)]));
}

/** Fill the page from its link, or with an example. */
export function restore() {
  const state = fromFragment(location.hash) ?? EXAMPLE;
  byId("query").value = state.query;
  byId("min-score").value = state.minScore;
  byId("timeout").value = state.timeout;
  byId("ads").replaceChildren();
  for (const ad of state.ads) addAd(ad);
}

/** The state as the part of a link that is never sent to a server. */
export function toFragment(state) {
  return `#${encodeURIComponent(JSON.stringify(state))}`;
}

function fromFragment(hash) {
  if (hash.length < 2) return null;
  try {
    // A link is somebody else's: whatever is not a text counts as none.
    const text = (value) => (typeof value === "string" ? value : "");
    const { query, ads, minScore, timeout } = JSON.parse(decodeURIComponent(hash.slice(1)));
    const known = Array.isArray(ads) ? ads : [];
    return {
      query: text(query),
      ads: known.map((ad) => ({ title: text(ad?.title), description: text(ad?.description), text: text(ad?.text) })),
      minScore: text(minScore),
      timeout: text(timeout),
    };
  } catch {
    return null;
  }
}

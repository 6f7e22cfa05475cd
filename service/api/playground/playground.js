// Joins the page's parts: form → service → results.

import { call, curl, modelFacts } from "./api.js";
import { explanation } from "./explanation.js";
import { addAd, explainBody, readState, restore, scoreBody, toFragment } from "./form.js";
import { failure, modelName, scores } from "./results.js";

const byId = (id) => document.getElementById(id);

async function score() {
  const state = readState();
  const body = scoreBody(state);
  history.replaceState(null, "", toFragment(state));
  const answer = await shownIn(byId("results"), "v1/score", body);
  byId("explanation").replaceChildren();
  if (!answer.ok) return byId("results").replaceChildren(failure(answer));
  byId("model").textContent = modelName(answer.body.model);
  const explain = (index) => explainAd(state, index);
  return byId("results").replaceChildren(scores(answer.body, body, answer.browserMs, explain));
}

async function explainAd(state, index) {
  const answer = await shownIn(byId("explanation"), "v1/explain", explainBody(state, index));
  const made = answer.ok ? explanation(answer.body, answer.browserMs) : failure(answer);
  byId("explanation").replaceChildren(made);
  made.querySelector("h2")?.focus({ preventScroll: true });
  made.scrollIntoView({ block: "nearest" });
}

/** Call while a part of the page says that it waits, and no second call can be started. */
async function shownIn(place, path, body) {
  const buttons = document.querySelectorAll("#score, .scores button");
  place.setAttribute("aria-busy", "true");
  for (const one of buttons) one.disabled = true;
  try {
    return await call(path, body, byId("key").value);
  } finally {
    place.removeAttribute("aria-busy");
    for (const one of buttons) one.disabled = false;
  }
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    byId("copied").textContent = `${what} copied`;
  } catch {
    byId("copied").textContent = `${what}: the browser does not let this page copy`;
  }
}

function copyCurl() {
  const command = curl("v1/score", scoreBody(readState()), byId("key").value !== "");
  byId("curl").textContent = command;
  byId("curl-box").hidden = false;
  byId("curl-box").open = true;
  return copy(command, "Command");
}

function copyLink() {
  history.replaceState(null, "", toFragment(readState()));
  return copy(location.href, "Link");
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("score").disabled) score();
});
byId("add").addEventListener("click", () => addAd().querySelector("input").focus());
byId("copy-curl").addEventListener("click", copyCurl);
byId("copy-link").addEventListener("click", copyLink);
addEventListener("hashchange", () => restore());
restore();
const facts = await modelFacts();
if (facts) byId("model").textContent = modelName(facts.model);

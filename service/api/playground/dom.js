// Elements out of plain values. Text goes in as text, so nothing that an ad says becomes markup.

/**
 * A new element.
 * @param {string} tag
 * @param {Object<string, string>} attributes
 * @param {...(Node|string)} children Strings become text.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/**
 * A text with its invisible characters spelled out, such as those that turn the direction around.
 * Line ends and tabs stay, and so do the two that join letters and emoji.
 */
export function spelled(text) {
  return text.replace(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu, (one) => {
    return `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** A button that does something. */
export function button(label, onClick, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", onClick);
  return made;
}

/** A table; the first column of each row is its heading. */
export function table(headings, rows, attributes = {}) {
  const head = headings.map((text) => element("th", { scope: "col" }, text));
  const body = rows.map(([first, ...rest]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, cell))),
  );
  return element("table", attributes, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
}

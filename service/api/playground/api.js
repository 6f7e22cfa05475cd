// Calls of the service, and the same calls for a shell.

/**
 * One call of the service that serves this page.
 * @returns {Promise<{ok: boolean, status: number, body: object, browserMs: number}>} `browserMs` from
 *   the call until its body was read, as this browser saw it. A call that got no answer of the
 *   service has status 0 and a body in the shape of an error.
 */
export async function call(path, body, key) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const started = performance.now();
  let status = 0;
  try {
    const options = { method: "POST", headers, body: JSON.stringify(body), credentials: "omit" };
    const response = await fetch(path, options);
    status = response.status;
    const answer = await response.json();
    return { ok: response.ok, status, body: answer, browserMs: performance.now() - started };
  } catch (error) {
    const code = status ? "not_json" : "no_answer";
    const shown = { error: { code, message: String(error.message ?? error), details: [] } };
    return { ok: false, status, body: shown, browserMs: performance.now() - started };
  }
}

/** The facts of the model, or null. */
export async function modelFacts(key) {
  try {
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const response = await fetch("v1/model", { headers, credentials: "omit" });
    return response.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** A text as one word of a POSIX shell: nothing is special between single quotes but they themselves. */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** The call as a curl command; a key is left to the environment of whoever runs it. */
export function curl(path, body, hasKey) {
  const lines = [
    `curl -sS ${quoted(new URL(path, document.baseURI).href)}`,
    "-H 'Content-Type: application/json'",
    ...(hasKey ? ['-H "Authorization: Bearer $ADREL_API_KEY"'] : []),
    `--data-binary ${quoted(JSON.stringify(body, null, 2))}`,
  ];
  return lines.join(" \\\n  ");
}

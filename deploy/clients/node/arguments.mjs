// What the caller gives, judged when it is given: a TypeError or RangeError names what is wrong.

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/; // RFC 9110, 5.6.2
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const OWN_HEADERS = ["host", "content-length", "transfer-encoding", "connection"];

/**
 * Where the scores of the service at an address are.
 * @param {string} baseUrl
 * @returns {URL}
 */
export function scoreUrl(baseUrl) {
  const takes = "baseUrl: takes a URL such as http://127.0.0.1:8000";
  // URL by itself takes http:host, and spaces around it.
  if (!/^https?:\/\/[^/\s]\S*$/i.test(baseUrl)) throw new TypeError(`${takes}, got ${baseUrl}`);
  let url;
  try {
    url = new URL(baseUrl);
  } catch (cause) {
    throw new TypeError(`${takes}, got ${baseUrl}`, { cause });
  }
  if (url.username || url.password)
    throw new TypeError("baseUrl: takes no user and password; send an Authorization header");
  if (/[?#]/.test(baseUrl))
    throw new TypeError(`baseUrl: takes no query and no fragment, got ${baseUrl}`);
  if (url.port === "0") throw new TypeError("baseUrl: takes a port from 1 to 65535, got 0");
  url.pathname = url.pathname.replace(/\/+$/, "") + "/v1/score";
  return url;
}

/**
 * The headers with small letters. No message quotes a value: it may be a key.
 * @param {Record<string, string>} headers
 * @returns {Record<string, string>}
 */
export function checkedHeaders(headers) {
  /** @type {Record<string, string>} */
  const checked = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name))
      throw new TypeError(`headers: ${JSON.stringify(name)} is no name of a header`);
    if (OWN_HEADERS.includes(name.toLowerCase()))
      throw new TypeError(`headers: ${name} is the client's own`);
    if (typeof value !== "string" || !HEADER_VALUE.test(value))
      throw new TypeError(`headers: ${name} takes printable ASCII characters`);
    checked[name.toLowerCase()] = value;
  }
  return checked;
}

/**
 * @param {number} timeoutMs
 * @returns {number}
 */
export function checkedTimeoutMs(timeoutMs) {
  if (typeof timeoutMs !== "number" || !(timeoutMs > 0 && timeoutMs < 2 ** 31))
    throw new RangeError(`timeoutMs: takes a number of ms from 0 to 2^31, got ${timeoutMs}`);
  return timeoutMs;
}

/**
 * A misspelt option must not be taken for an absent one.
 * @param {object} options
 * @param {string[]} known
 */
export function refuseUnknown(options, known) {
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw new TypeError(`${name}: no such option; there are ${known.join(", ")}`);
  }
}

/**
 * @param {string} id
 * @param {unknown} score
 * @returns {number}
 */
export function checkedFallbackScore(id, score) {
  const takes = `the fallback's score for ad ${JSON.stringify(id)}: takes a number from 0 to 1`;
  if (typeof score !== "number")
    throw new TypeError(`${takes}, got ${Object.prototype.toString.call(score)}`);
  if (!(score >= 0 && score <= 1)) throw new RangeError(`${takes}, got ${score}`);
  return score;
}

// One exchange over HTTP, and what its answer means: strict where the wrong ad would rank.
import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";

import { AdrelError } from "./errors.mjs";

const IDLE_MS = 50_000; // less than the service (75 s) and usual load balancers (60 s) allow

/**
 * @typedef {import("./adrel.mjs").Ad} Ad
 * @typedef {import("./adrel.mjs").Answer} Answer
 * @typedef {{status: number, headers: http.IncomingHttpHeaders, content: string}} Reply
 */

/**
 * Lets a proxy send the same query to the same replica, whose cache knows it.
 * @param {string} query
 */
export function affinityKey(query) {
  // What is no text is the service's to refuse.
  return createHash("sha256").update(String(query)).digest("hex").slice(0, 16);
}

/**
 * Keeps connections; those that are idle do not keep the process.
 * @param {URL} url
 * @returns {http.Agent}
 */
export function agentFor({ protocol }) {
  const { Agent } = protocol === "https:" ? https : http;
  return new Agent({ keepAlive: true, timeout: IDLE_MS });
}

/**
 * Sends a body and takes the whole answer. fetch would not tell what had come of an answer when a
 * connection closed.
 * @param {URL} url
 * @param {{agent: http.Agent, headers: http.OutgoingHttpHeaders, signal: AbortSignal}} options
 * @param {Buffer} body
 * @param {number} maxBytes of the answer
 * @returns {Promise<Reply>}
 * @throws {AdrelError} no answer, or too much of one
 */
export async function exchange(url, { agent, headers, signal }, body, maxBytes) {
  const { request: open } = url.protocol === "https:" ? https : http;
  const request = open(url, { method: "POST", agent, headers, signal });
  request.on("error", () => {}); // one behind the answer's head is the answer's too
  /** @type {import("node:net").Socket | undefined} */
  let socket;
  let nBytesBefore = 0;
  request.once("socket", (given) => {
    socket = given;
    nBytesBefore = given.bytesRead;
  });
  try {
    request.end(body);
    const [response] = await once(request, "response");
    const content = await contentOf(response, maxBytes);
    return { status: response.statusCode, headers: response.headers, content };
  } catch (cause) {
    if (cause instanceof AdrelError) throw cause;
    if (signal.aborted) throw new AdrelError("deadline_exceeded", "no answer in time", { cause });
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (cause);
    const unanswered =
      code === "ECONNREFUSED" ||
      ((code === "ECONNRESET" || code === "EPIPE") &&
        wasOpen(socket) &&
        socket?.bytesRead === nBytesBefore);
    throw new AdrelError("connection_failed", message || String(code), { unanswered, cause });
  }
}

/**
 * Whether a connection had been made, its TLS included.
 * @param {import("node:net").Socket | undefined} socket
 */
function wasOpen(socket) {
  return (
    socket !== undefined &&
    !socket.connecting &&
    !("secureConnecting" in socket && socket.secureConnecting)
  );
}

/**
 * @param {http.IncomingMessage} response
 * @param {number} maxBytes
 * @returns {Promise<string>}
 */
async function contentOf(response, maxBytes) {
  const pieces = [];
  let nBytes = 0;
  for await (const piece of response) {
    nBytes += piece.length;
    // Leaving the loop closes the connection.
    if (nBytes > maxBytes) throw badAnswer(`more than ${maxBytes} bytes`, response.statusCode);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

/**
 * More than an answer can need: it repeats the ids, which are in the request, and says some words
 * about each ad.
 * @param {number} nAds
 * @param {number} requestBytes
 */
export function maxAnswerBytes(nAds, requestBytes) {
  return 65_536 + 1024 * nAds + requestBytes;
}

/**
 * The error that an answer other than 200 stands for.
 * @param {Reply} reply
 * @returns {AdrelError}
 */
export function errorOf({ status, headers, content }) {
  const seconds = headers["retry-after"] ?? "";
  const headerMs = /^\d{1,9}$/.test(seconds) ? 1000 * Number(seconds) : undefined;
  const said = serviceError(content);
  if (said === undefined) {
    // Of something on the way, so no fault of the request. A redirect is not followed: it would
    // take the time of the call again.
    const redirect = status >= 300 && status < 400;
    const message = redirect ? `leads to ${headers.location}` : content.slice(0, 200);
    return new AdrelError(`http_${status}`, message, {
      httpStatus: status,
      retryAfterMs: headerMs,
    });
  }
  const waitsMs = said.details
    .map((detail) => detail?.retry_after_ms)
    .filter((ms) => typeof ms === "number" && ms >= 0 && ms <= 1e9);
  return new AdrelError(said.code, said.message, {
    httpStatus: status,
    retryAfterMs: waitsMs[0] ?? headerMs,
    // Not 401, 403 or 404: they are faults of the address or the key, and auctions go on.
    refused: [413, 415, 422].includes(status),
  });
}

/**
 * What an error body of the service says; undefined where it is not the service's.
 * @param {string} content
 * @returns {{code: string, message: string, details: any[]} | undefined}
 */
function serviceError(content) {
  let error;
  try {
    error = JSON.parse(content)?.error;
  } catch {
    return undefined;
  }
  const ours =
    typeof error?.code === "string" &&
    typeof error.message === "string" &&
    Array.isArray(error.details);
  return ours ? error : undefined;
}

/**
 * The answer that a 200 holds; fields that are not known here stay as they are.
 * @param {string} content
 * @param {Ad[]} ads
 * @param {boolean} wantsEligible
 * @returns {Answer}
 * @throws {AdrelError} not the service's answer to these ads
 */
export function parse(content, ads, wantsEligible) {
  let answer;
  try {
    answer = JSON.parse(content);
  } catch (cause) {
    throw badAnswer(String(cause));
  }
  const scores = answer?.scores;
  if (!Array.isArray(scores) || scores.length !== ads.length) {
    throw badAnswer(`scores: not one for each of ${ads.length} ads`);
  }
  scores.forEach((one, index) => {
    const scored = one?.status === "ok" || one?.status === "cached";
    const where = `scores[${index}]`;
    if (one?.id !== ads[index].id)
      throw badAnswer(`${where}.id: ${one?.id} instead of ${ads[index].id}`);
    if (!scored && one.status !== "deadline" && one.status !== "failed")
      throw badAnswer(`${where}.status: ${one.status}`);
    const inRange = typeof one.score === "number" && one.score >= 0 && one.score <= 1;
    if (scored ? !inRange : one.score !== null)
      throw badAnswer(`${where}.score: ${one.score} does not fit the status ${one.status}`);
    const mayLack = !(scored && wantsEligible);
    if (typeof one.eligible !== "boolean" && !(mayLack && (one.eligible ?? null) === null))
      throw badAnswer(`${where}.eligible: ${one.eligible}`);
    if (typeof (one.truncated ?? false) !== "boolean")
      throw badAnswer(`${where}.truncated: ${one.truncated}`);
  });
  return answer;
}

/**
 * @param {string} problem
 * @param {number} [httpStatus]
 */
function badAnswer(problem, httpStatus = 200) {
  return new AdrelError("bad_answer", problem, { httpStatus });
}

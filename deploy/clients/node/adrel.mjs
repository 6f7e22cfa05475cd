// Asks an adrel service how relevant ads are to a query. Node 18 or newer, nothing to install.

const NETWORK_MARGIN_MS = 2; // kept back of what the service is told it has
const MAX_RETRY_CREDIT = 100; // a call earns 1, a retry costs 10: one in ten, ten in a burst

/** Why no ad has a score. */
export class AdrelError extends Error {
  name = "AdrelError";

  /**
   * @param {string} code the service's, or deadline_exceeded, connection_failed, bad_answer,
   *   http_<status>
   * @param {string} message
   * @param {object} facts
   * @param {number} [facts.httpStatus] absent where no answer came
   * @param {number} [facts.retryAfterMs] absent where the service names none
   * @param {boolean} [facts.refused] the request is wrong, and would be again
   * @param {boolean} [facts.unanswered] no part of an answer had come, so another try is safe
   * @param {unknown} [facts.cause]
   */
  constructor(
    code,
    message,
    { httpStatus, retryAfterMs, refused = false, unanswered = false, cause } = {},
  ) {
    super(`${code}: ${message}`, { cause });
    this.code = code;
    this.httpStatus = httpStatus;
    this.retryAfterMs = retryAfterMs;
    this.refused = refused;
    this.unanswered = unanswered;
  }
}

/**
 * @typedef {{id: string, text: string} | {id: string, title: string, description?: string}} Ad
 * @typedef {{id: string, score: number | null, eligible?: boolean, truncated?: boolean,
 *   status: "ok" | "cached" | "deadline" | "failed" | "fallback"}} AdScore
 * @typedef {{request_id?: string, model?: {name: string, version: string}, scores: AdScore[],
 *   error?: AdrelError}} Answer one AdScore per ad, in the order asked; `error` says why no answer
 *   came, and only scoreOrFallback returns one with it
 * @typedef {{timeoutMs?: number, minScore?: number, priority?: "auction" | "batch",
 *   requestId?: string}} Options
 */

/** Asks one service. Make one for the process: fetch keeps the connections. */
export class AdrelClient {
  #url;
  #timeoutMs;
  #retryCredit = MAX_RETRY_CREDIT;

  /**
   * @param {string} baseUrl such as http://127.0.0.1:8000
   * @param {number} timeoutMs for a whole call that names none
   */
  constructor(baseUrl, timeoutMs) {
    this.#url = baseUrl.replace(/\/+$/, "") + "/v1/score";
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Scores the ads; some may have no score, see each one's status.
   * @param {string} query
   * @param {Ad[]} ads
   * @param {Options} [options]
   * @returns {Promise<Answer>}
   * @throws {AdrelError} no ad has a score; its code says why
   */
  async score(query, ads, { timeoutMs = this.#timeoutMs, minScore, priority, requestId } = {}) {
    // A number that is none becomes null in JSON, which the service takes for absent.
    if (minScore !== undefined && !Number.isFinite(minScore))
      throw new RangeError(`minScore: ${minScore}`);
    if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new RangeError(`timeoutMs: ${timeoutMs}`);
    const deadline = performance.now() + timeoutMs;
    const body = JSON.stringify({
      query,
      ads,
      min_score: minScore,
      priority,
      request_id: requestId,
    });
    this.#spendRetryCredit(-1);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeoutMs);
    try {
      return await this.#attempt(body, ads, deadline, late.signal);
    } catch (error) {
      if (!error.unanswered || !this.#spendRetryCredit(10)) throw error;
      return await this.#attempt(body, ads, deadline, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Asks `fallback` about each ad that has no score in time; it must be quick.
   * @param {string} query
   * @param {Ad[]} ads
   * @param {(query: string, ad: Ad) => number} fallback
   * @param {Options} [options]
   * @returns {Promise<Answer>}
   * @throws {AdrelError} the request is wrong
   */
  async scoreOrFallback(query, ads, fallback, options = {}) {
    const answer = await this.score(query, ads, options).catch((error) => {
      if (!(error instanceof AdrelError) || error.refused) throw error;
      return {
        request_id: options.requestId,
        scores: ads.map(({ id }) => ({ id, score: null })),
        error,
      };
    });
    const scores = answer.scores.map((one, index) => {
      if (one.score !== null) return one;
      const score = fallback(query, ads[index]);
      const eligible = options.minScore === undefined ? undefined : score >= options.minScore;
      return { ...one, score, status: "fallback", eligible };
    });
    return { ...answer, scores };
  }

  async #attempt(body, ads, deadline, signal) {
    const leftMs = Math.max(0.001, deadline - performance.now());
    const serviceMs = leftMs - Math.min(NETWORK_MARGIN_MS, leftMs / 4);
    let response;
    let content;
    try {
      response = await fetch(this.#url, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "X-Request-Timeout-Ms": serviceMs.toFixed(6),
        },
        body,
        redirect: "manual",
        signal,
      });
      content = await response.text(); // all of it, or the connection is not kept
    } catch (cause) {
      if (signal.aborted) throw new AdrelError("deadline_exceeded", "no answer in time", { cause });
      const message = String(cause.cause?.message || cause.cause?.code || cause.message);
      throw new AdrelError("connection_failed", message, {
        unanswered: response === undefined,
        cause,
      });
    }
    if (response.status !== 200) throw errorOf(response, content);
    return parse(content, ads);
  }

  /** Takes from the credit if there is so much; negative amounts are earned. */
  #spendRetryCredit(amount) {
    if (this.#retryCredit < amount) return false;
    this.#retryCredit = Math.min(MAX_RETRY_CREDIT, this.#retryCredit - amount);
    return true;
  }
}

function errorOf({ status, headers }, content) {
  let error;
  try {
    ({ error } = JSON.parse(content));
  } catch {
    // A page of something on the way.
  }
  const ours = typeof error?.code === "string";
  const [code, message] = ours
    ? [error.code, error.message]
    : [`http_${status}`, content.slice(0, 200)];
  // A 4xx of something on the way, such as a proxy that has lost its route, is no fault of the
  // request.
  const refused =
    [413, 415, 422].includes(status) || (ours && status >= 400 && status < 500 && status !== 429);
  const seconds = headers.get("Retry-After");
  const headerMs = /^\d{1,9}$/.test(seconds) ? 1000 * seconds : undefined;
  const detail = ours && error.details?.find(({ retry_after_ms: ms }) => typeof ms === "number");
  const retryAfterMs = detail?.retry_after_ms ?? headerMs;
  return new AdrelError(code, message, { httpStatus: status, retryAfterMs, refused });
}

/** Strict in what would rank the wrong ad; fields that it does not know stay as they are. */
function parse(content, ads) {
  const bad = (problem) => new AdrelError("bad_answer", problem, { httpStatus: 200 });
  let answer;
  try {
    answer = JSON.parse(content);
  } catch (cause) {
    throw bad(cause.message);
  }
  const scores = answer?.scores;
  if (!Array.isArray(scores) || scores.length !== ads.length) {
    throw bad(`scores: not one for each of ${ads.length} ads`);
  }
  scores.forEach((one, index) => {
    const scored = one?.status === "ok" || one?.status === "cached";
    if (one?.id !== ads[index].id)
      throw bad(`scores[${index}].id: ${one?.id} instead of ${ads[index].id}`);
    if (!scored && one.status !== "deadline" && one.status !== "failed") {
      throw bad(`scores[${index}].status: ${one.status}`);
    }
    const inRange = typeof one.score === "number" && one.score >= 0 && one.score <= 1;
    if (scored ? !inRange : one.score !== null) {
      throw bad(`scores[${index}].score: ${one.score} does not fit the status ${one.status}`);
    }
  });
  return answer;
}

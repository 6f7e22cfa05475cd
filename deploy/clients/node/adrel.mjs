// Asks an adrel service how relevant ads are to a query. Node 18 or newer, nothing to install.
import {
  checkedFallbackScore,
  checkedHeaders,
  checkedTimeoutMs,
  refuseUnknown,
  scoreUrl,
} from "./arguments.mjs";
import { AdrelError } from "./errors.mjs";
import { affinityKey, agentFor, errorOf, exchange, maxAnswerBytes, parse } from "./wire.mjs";

export { AdrelError };

const NETWORK_MARGIN_MS = 2; // kept back of what the service is told it has
const MAX_RETRY_CREDIT = 100; // a call earns 1, a retry costs 10: one in ten, ten in a burst

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

/** Asks one service. Make one for the process: it keeps the connections. */
export class AdrelClient {
  #url;
  #timeoutMs;
  #headers;
  #agent;
  #retryCredit = MAX_RETRY_CREDIT;

  /**
   * @param {string} baseUrl such as http://127.0.0.1:8000
   * @param {number} timeoutMs for a whole call that names none
   * @param {object} [options]
   * @param {Record<string, string>} [options.headers] sent with every request, such as an
   *   Authorization for a service that asks for keys
   * @throws {TypeError | RangeError} names the argument that cannot work
   */
  constructor(baseUrl, timeoutMs, options = {}) {
    refuseUnknown(options, ["headers"]);
    this.#url = scoreUrl(baseUrl);
    this.#timeoutMs = checkedTimeoutMs(timeoutMs);
    this.#headers = checkedHeaders(options.headers ?? {});
    this.#agent = agentFor(this.#url);
  }

  /**
   * Scores the ads; some may have no score, see each one's status.
   * @param {string} query
   * @param {Ad[]} ads
   * @param {Options} [options]
   * @returns {Promise<Answer>}
   * @throws {AdrelError} no ad has a score; its code says why
   */
  async score(query, ads, options = {}) {
    refuseUnknown(options, ["timeoutMs", "minScore", "priority", "requestId"]);
    const { timeoutMs = this.#timeoutMs, minScore, priority, requestId } = options;
    // A number that is none becomes null in JSON, which the service takes for absent.
    if (minScore !== undefined && !Number.isFinite(minScore))
      throw new RangeError(`minScore: ${minScore}`);
    const deadline = performance.now() + checkedTimeoutMs(timeoutMs);
    const asked = { query, ads, min_score: minScore, priority, request_id: requestId };
    const request = {
      body: Buffer.from(JSON.stringify(asked)),
      affinityKey: affinityKey(query),
      nAds: ads.length,
    };
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeoutMs);
    try {
      const content = await this.#contentOf(request, deadline, late.signal);
      return parse(content, ads, minScore !== undefined);
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
   * @throws {TypeError | RangeError} the fallback gave no number in 0-1
   */
  async scoreOrFallback(query, ads, fallback, options = {}) {
    const answer = await this.score(query, ads, options).catch((error) => {
      if (!(error instanceof AdrelError) || error.refused) throw error;
      /** @type {AdScore["status"]} */
      const status = "failed";
      const scores = ads.map(({ id }) => ({ id, score: null, status }));
      return { request_id: options.requestId, scores, error };
    });
    const scores = answer.scores.map((one, index) => {
      if (one.score !== null) return one;
      const score = checkedFallbackScore(one.id, fallback(query, ads[index]));
      const eligible = options.minScore === undefined ? undefined : score >= options.minScore;
      /** @type {AdScore} */
      const filled = { ...one, score, status: "fallback", eligible };
      return filled;
    });
    return { ...answer, scores };
  }

  /**
   * The content of a 200, at the second try if the first one may have another.
   * @param {{body: Buffer, nAds: number, affinityKey: string}} request
   * @param {number} deadline
   * @param {AbortSignal} signal
   */
  async #contentOf(request, deadline, signal) {
    this.#spendRetryCredit(-1);
    const attempt = () => this.#attempt(request, deadline, signal);
    const reply = await attempt().catch((error) => {
      if (!error.unanswered || !this.#spendRetryCredit(10)) throw error;
      return attempt();
    });
    if (reply.status !== 200) throw errorOf(reply);
    return reply.content;
  }

  /**
   * @param {{body: Buffer, nAds: number, affinityKey: string}} request
   * @param {number} deadline
   * @param {AbortSignal} signal
   */
  #attempt({ body, nAds, affinityKey: key }, deadline, signal) {
    const leftMs = Math.max(0.001, deadline - performance.now());
    const serviceMs = leftMs - Math.min(NETWORK_MARGIN_MS, leftMs / 4);
    const headers = {
      ...this.#headers,
      "content-type": "application/json",
      "accept-encoding": "identity",
      "x-affinity-key": key,
      "x-request-timeout-ms": serviceMs.toFixed(6),
    };
    const options = { agent: this.#agent, headers, signal };
    return exchange(this.#url, options, body, maxAnswerBytes(nAds, body.length));
  }

  /**
   * Takes from the credit if there is so much; negative amounts are earned.
   * @param {number} amount
   */
  #spendRetryCredit(amount) {
    if (this.#retryCredit < amount) return false;
    this.#retryCredit = Math.min(MAX_RETRY_CREDIT, this.#retryCredit - amount);
    return true;
  }
}

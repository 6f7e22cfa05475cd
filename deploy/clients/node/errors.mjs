/** Why no ad has a score. */
export class AdrelError extends Error {
  name = "AdrelError";

  /**
   * @param {string} code the service's, or deadline_exceeded, connection_failed, bad_answer,
   *   http_<status>
   * @param {string} message
   * @param {object} [facts]
   * @param {number} [facts.httpStatus] absent where no answer came
   * @param {number} [facts.retryAfterMs] absent where the service names none
   * @param {boolean} [facts.refused] the request is wrong, and would be again
   * @param {boolean} [facts.unanswered] refused, or closed before any byte of an answer: worth
   *   another try
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

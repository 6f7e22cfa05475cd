package adrel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Error is why no ad has a score.
type Error struct {
	// Code is the service's, or deadline_exceeded, connection_failed, bad_answer, http_<status>.
	Code       string
	Message    string
	HTTPStatus int           // 0 where no answer came
	RetryAfter time.Duration // 0 where the service names none
	Refused    bool          // the request is wrong, and would be again
	unanswered bool          // no part of an answer had come, so another try is safe
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

func networkError(ctx context.Context, err error, unanswered bool) error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Code: "deadline_exceeded", Message: err.Error()}
	default:
		return &Error{Code: "connection_failed", Message: err.Error(), unanswered: unanswered}
	}
}

func errorOf(response *http.Response, content []byte) *Error {
	var body struct {
		Error struct {
			Code, Message string
			Details       []struct {
				RetryAfterMs float64 `json:"retry_after_ms"`
			}
		}
	}
	status := response.StatusCode
	failure := &Error{Code: fmt.Sprintf("http_%d", status), HTTPStatus: status}
	failure.Message = fmt.Sprintf("%.200q", content)
	ours := json.Unmarshal(content, &body) == nil && body.Error.Code != ""
	if ours {
		failure.Code, failure.Message = body.Error.Code, body.Error.Message
	}
	// A 4xx of something on the way, such as a proxy that has lost its route, is no fault of the
	// request.
	failure.Refused = status == 413 || status == 415 || status == 422 ||
		ours && status >= 400 && status < 500 && status != 429
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		failure.RetryAfter = time.Duration(seconds) * time.Second
	}
	for _, detail := range body.Error.Details {
		if detail.RetryAfterMs > 0 && detail.RetryAfterMs < 1e9 {
			failure.RetryAfter = time.Duration(detail.RetryAfterMs * float64(time.Millisecond))
		}
	}
	return failure
}

// parse is strict in what would rank the wrong ad, and ignores fields that it does not know.
func parse(content []byte, request Request) (*Answer, error) {
	answer := new(Answer)
	if err := json.Unmarshal(content, answer); err != nil {
		return nil, badAnswer("%v", err)
	}
	if len(answer.Scores) != len(request.Ads) {
		return nil, badAnswer("%d scores for %d ads", len(answer.Scores), len(request.Ads))
	}
	for i, one := range answer.Scores {
		scored := one.Status == "ok" || one.Status == "cached"
		switch {
		case one.ID != request.Ads[i].ID:
			return nil, badAnswer("scores[%d].id: %q instead of %q", i, one.ID, request.Ads[i].ID)
		case !scored && one.Status != "deadline" && one.Status != "failed":
			return nil, badAnswer("scores[%d].status: %q", i, one.Status)
		case scored != (one.Score != nil), scored && (*one.Score < 0 || *one.Score > 1):
			return nil, badAnswer("scores[%d].score: does not fit the status %s", i, one.Status)
		}
	}
	return answer, nil
}

func badAnswer(format string, values ...any) *Error {
	problem := fmt.Sprintf(format, values...)
	return &Error{Code: "bad_answer", Message: problem, HTTPStatus: http.StatusOK}
}

package adrel

import (
	"context"
	"crypto/sha256"
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
	unanswered bool          // refused, or closed before any byte of an answer: worth another try
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

// affinityKey lets a proxy send the same query to the same replica, whose cache knows it.
func affinityKey(query string) string {
	digest := sha256.Sum256([]byte(query))
	return fmt.Sprintf("%x", digest[:8])
}

// maxAnswerBytes is more than an answer can need: it repeats the ids, which are in the request, and
// says some words about each ad.
func maxAnswerBytes(ads, requestBytes int) int64 {
	return int64(64<<10 + 1<<10*ads + requestBytes)
}

func errorOf(response *http.Response, content []byte) *Error {
	status := response.StatusCode
	failure := &Error{Code: fmt.Sprintf("http_%d", status), HTTPStatus: status}
	failure.Message = fmt.Sprintf("%.200q", content)
	if status >= 300 && status < 400 { // not followed: it would take the time of the call again
		failure.Message = fmt.Sprintf("leads to %.200q", response.Header.Get("Location"))
	}
	if seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31); err == nil {
		failure.RetryAfter = time.Duration(seconds) * time.Second
	}
	var body struct {
		Error struct {
			Code, Message *string
			Details       *[]json.RawMessage
		}
	}
	said := &body.Error
	if json.Unmarshal(content, &body) != nil ||
		said.Code == nil || said.Message == nil || said.Details == nil {
		return failure // of something on the way, so no fault of the request
	}
	failure.Code, failure.Message = *said.Code, *said.Message
	// Not 401, 403 or 404: they are faults of the address or the key, and auctions go on.
	failure.Refused = status == 413 || status == 415 || status == 422
	for _, detail := range *said.Details {
		var wait struct {
			Ms float64 `json:"retry_after_ms"`
		}
		if json.Unmarshal(detail, &wait) == nil && wait.Ms > 0 && wait.Ms <= 1e9 {
			failure.RetryAfter = time.Duration(wait.Ms * float64(time.Millisecond))
		}
	}
	return failure
}

// parse is strict in what would rank the wrong ad, and ignores fields that it does not know.
func parse(content []byte, request Request) (*Answer, error) {
	answer := new(Answer)
	if err := json.Unmarshal(content, answer); err != nil {
		return nil, badAnswer(http.StatusOK, "%v", err)
	}
	if len(answer.Scores) != len(request.Ads) {
		return nil, badAnswer(
			http.StatusOK, "%d scores for %d ads", len(answer.Scores), len(request.Ads))
	}
	for i, one := range answer.Scores {
		scored := one.Status == "ok" || one.Status == "cached"
		switch {
		case one.ID != request.Ads[i].ID:
			return nil, badAnswer(
				http.StatusOK, "scores[%d].id: %q instead of %q", i, one.ID, request.Ads[i].ID)
		case !scored && one.Status != "deadline" && one.Status != "failed":
			return nil, badAnswer(http.StatusOK, "scores[%d].status: %q", i, one.Status)
		case scored != (one.Score != nil), scored && (*one.Score < 0 || *one.Score > 1):
			return nil, badAnswer(
				http.StatusOK, "scores[%d].score: does not fit the status %s", i, one.Status)
		case scored && request.MinScore != nil && one.Eligible == nil:
			return nil, badAnswer(http.StatusOK, "scores[%d].eligible: is absent", i)
		}
	}
	return answer, nil
}

func badAnswer(status int, format string, values ...any) *Error {
	problem := fmt.Sprintf(format, values...)
	return &Error{Code: "bad_answer", Message: problem, HTTPStatus: status}
}

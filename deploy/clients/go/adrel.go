// Package adrel asks an adrel service how relevant ads are to a query.
package adrel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Ad is one advertisement: Text as shown, or Title with an optional Description.
type Ad struct {
	ID          string `json:"id"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Text        string `json:"text,omitempty"`
}

// Request is what is asked. All but Query and Ads may be left out; the service judges the values.
type Request struct {
	Query     string   `json:"query"`
	Ads       []Ad     `json:"ads"`
	MinScore  *float64 `json:"min_score,omitempty"` // asks for Eligible
	Priority  string   `json:"priority,omitempty"`  // "auction" or "batch"
	RequestID string   `json:"request_id,omitempty"`
}

// AdScore is one ad's outcome. Score is nil unless Status is ok, cached or fallback.
type AdScore struct {
	ID        string   `json:"id"`
	Score     *float64 `json:"score"`
	Status    string   `json:"status"` // ok, cached, deadline, failed or fallback
	Eligible  *bool    `json:"eligible"`
	Truncated bool     `json:"truncated"`
}

// Answer has one AdScore per ad, in the order asked.
type Answer struct {
	RequestID string `json:"request_id"`
	Model     struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"model"`
	Scores []AdScore `json:"scores"`
	Err    error     `json:"-"` // why no answer came; only ScoreOrFallback sets it
}

const (
	networkMargin  = 2 * time.Millisecond // kept back of what the service is told it has
	maxAnswerBytes = 16 << 20
	maxRetryCredit = 100 // a call earns 1, a retry costs 10: one in ten, ten in a burst
)

// Client asks one service and keeps its connections. Goroutines may share it.
type Client struct {
	HTTP    *http.Client // set its Transport for TLS of your own
	url     string
	timeout time.Duration

	mutex       sync.Mutex
	retryCredit int
}

// New gives a client whose calls end after timeout, or by their context's deadline if that is
// sooner.
func New(baseURL string, timeout time.Duration) *Client {
	return &Client{
		HTTP: &http.Client{
			// Idle for less than the service (75 s) and usual load balancers (60 s) allow. Proxies
			// that the environment names are not used.
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 100, IdleConnTimeout: 50 * time.Second, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:         strings.TrimRight(baseURL, "/") + "/v1/score",
		timeout:     timeout,
		retryCredit: maxRetryCredit,
	}
}

// Score scores the ads; some may have no score, see each one's Status. Its error is an *Error, the
// context's own if that was canceled, or json's for a number that is not finite.
func (c *Client) Score(ctx context.Context, request Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	c.spendRetryCredit(-1)
	answer, err := c.attempt(ctx, body, request)
	var failure *Error
	if errors.As(err, &failure) && failure.unanswered && c.spendRetryCredit(10) {
		answer, err = c.attempt(ctx, body, request)
	}
	return answer, err
}

// ScoreOrFallback asks fallback about each ad that has no score in time; it must be quick. Its
// error is for wrong requests and canceled contexts alone.
func (c *Client) ScoreOrFallback(
	ctx context.Context, request Request, fallback func(query string, ad Ad) float64,
) (*Answer, error) {
	answer, err := c.Score(ctx, request)
	var failure *Error
	if errors.As(err, &failure) && !failure.Refused {
		answer = &Answer{RequestID: request.RequestID, Err: err}
		answer.Scores = make([]AdScore, len(request.Ads))
	} else if err != nil {
		return nil, err
	}
	for i, ad := range request.Ads {
		if one := &answer.Scores[i]; one.Score == nil {
			score := fallback(request.Query, ad)
			one.ID, one.Score, one.Status = ad.ID, &score, "fallback"
			if request.MinScore != nil {
				eligible := score >= *request.MinScore
				one.Eligible = &eligible
			}
		}
	}
	return answer, nil
}

func (c *Client) attempt(ctx context.Context, body []byte, request Request) (*Answer, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	margin := networkMargin
	if margin > left/4 {
		margin = left / 4
	}
	post.Header.Set("Content-Type", "application/json")
	serviceMs := (left - margin).Seconds() * 1000
	post.Header.Set("X-Request-Timeout-Ms", strconv.FormatFloat(serviceMs, 'f', 6, 64))
	response, err := c.HTTP.Do(post)
	if err != nil {
		return nil, networkError(ctx, err, true)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return nil, networkError(ctx, err, false)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errorOf(response, content)
	}
	return parse(content, request)
}

// spendRetryCredit takes from the credit if there is so much; negative amounts are earned.
func (c *Client) spendRetryCredit(amount int) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.retryCredit < amount {
		return false
	}
	if c.retryCredit -= amount; c.retryCredit > maxRetryCredit {
		c.retryCredit = maxRetryCredit
	}
	return true
}

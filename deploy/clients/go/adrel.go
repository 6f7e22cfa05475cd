// Package adrel asks an adrel service how relevant ads are to a query.
package adrel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
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
	networkMargin = 2 * time.Millisecond // kept back of what the service is told it has
	maxHeadBytes  = 64 << 10             // of an answer

	maxRetryCredit = 100 // a call earns 1, a retry costs 10: one in ten, ten in a burst
)

// Client asks one service and keeps its connections. Goroutines may share it.
type Client struct {
	HTTP    *http.Client // set its Transport for TLS of your own
	url     string
	timeout time.Duration
	headers http.Header

	mutex       sync.Mutex
	retryCredit int
}

// Option is more about a new Client.
type Option func(*Client) error

// WithHeaders has every request carry these too, such as an Authorization for a service that asks
// for keys.
func WithHeaders(headers http.Header) Option {
	return func(c *Client) error {
		for name, values := range headers {
			for _, value := range values {
				c.headers.Add(name, value)
			}
		}
		return checkHeaders(headers)
	}
}

// New gives a client whose calls end after timeout, or by their context's deadline if that is
// sooner. Its error names the argument that cannot work.
func New(baseURL string, timeout time.Duration, options ...Option) (*Client, error) {
	url, err := scoreURL(baseURL)
	if err != nil {
		return nil, err
	}
	if timeout <= 0 {
		return nil, fmt.Errorf("timeout: takes more than 0, got %v", timeout)
	}
	client := &Client{
		HTTP: &http.Client{
			// Idle for less than the service (75 s) and usual load balancers (60 s) allow. Proxies
			// that the environment names are not used.
			Transport: &http.Transport{
				MaxIdleConnsPerHost: 100, IdleConnTimeout: 50 * time.Second,
				MaxResponseHeaderBytes: maxHeadBytes, DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:         url,
		timeout:     timeout,
		headers:     http.Header{},
		retryCredit: maxRetryCredit,
	}
	for _, option := range options {
		if err := option(client); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// Score scores the ads; some may have no score, see each one's Status. Its error is an *Error, the
// context's own if that was canceled, or json's for a number that is not finite.
func (c *Client) Score(ctx context.Context, request Request) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if err := checkTexts(request); err != nil {
		return nil, err
	}
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
// error is for wrong requests, canceled contexts and a fallback that gives no score in 0-1.
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
			if !(score >= 0 && score <= 1) { // nor NaN
				return nil, fmt.Errorf(
					"the fallback's score for ad %q: takes a number from 0 to 1, got %v", ad.ID, score)
			}
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
	var connected, answerBegun atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:              func(string) { connected.Store(false) },
		GotConn:              func(httptrace.GotConnInfo) { connected.Store(true) },
		GotFirstResponseByte: func() { answerBegun.Store(true) },
	})
	post, err := http.NewRequestWithContext(traced, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	post.Header = c.headers.Clone()
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	margin := networkMargin
	if margin > left/4 {
		margin = left / 4
	}
	post.Header.Set("Content-Type", "application/json")
	post.Header.Set("Accept-Encoding", "identity")
	post.Header.Set("X-Affinity-Key", affinityKey(request.Query))
	serviceMs := (left - margin).Seconds() * 1000
	post.Header.Set("X-Request-Timeout-Ms", strconv.FormatFloat(serviceMs, 'f', 6, 64))
	response, err := c.HTTP.Do(post)
	if err != nil {
		closed := connected.Load() && !answerBegun.Load()
		return nil, networkError(ctx, err, closed || errors.Is(err, syscall.ECONNREFUSED))
	}
	defer response.Body.Close()
	maxBytes := maxAnswerBytes(len(request.Ads), len(body))
	content, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		return nil, networkError(ctx, err, false)
	}
	if int64(len(content)) > maxBytes {
		return nil, badAnswer(response.StatusCode, "more than %d bytes", maxBytes)
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

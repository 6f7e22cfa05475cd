// Makes the calls that its input names, one a line; see driver.py for both formats.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"example.com/adrel"
)

var clients = map[string]*adrel.Client{}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		for i, field := range fields {
			fields[i], _ = url.PathUnescape(field)
		}
		out := call(fields)
		for i, field := range out {
			out[i] = url.PathEscape(field)
		}
		fmt.Println(strings.Join(out, "\t"))
	}
}

func call(fields []string) []string {
	client, err := clientOf(fields[0], fields[1], fields[2])
	if err != nil {
		return []string{"raised", "", err.Error(), "", "", "0"}
	}
	minScore := fields[3]
	kind, fixed, _ := strings.Cut(fields[4], " ")
	request := adrel.Request{Query: fields[5]}
	for rest := fields[6:]; len(rest) > 0; rest = rest[4:] {
		ad := adrel.Ad{ID: rest[0], Title: rest[1], Description: rest[2], Text: rest[3]}
		request.Ads = append(request.Ads, ad)
	}
	if least, err := strconv.ParseFloat(minScore, 64); err == nil {
		request.MinScore = &least
	}
	start := time.Now()
	var answer *adrel.Answer
	if kind == "fallback" {
		answer, err = client.ScoreOrFallback(context.Background(), request, fallbackOf(fixed))
	} else {
		answer, err = client.Score(context.Background(), request)
	}
	elapsed := fmt.Sprint(time.Since(start).Seconds() * 1000)
	ending := "raised"
	if err == nil {
		ending, err = "returned", answer.Err
	}
	out := []string{ending, "", "", "", "", elapsed}
	if err != nil {
		out[2] = err.Error()
	}
	var failure *adrel.Error
	if errors.As(err, &failure) {
		out[1], out[3] = failure.Code, strconv.Itoa(failure.HTTPStatus)
		out[4] = fmt.Sprint(failure.RetryAfter.Seconds() * 1000)
	}
	if answer != nil {
		for _, ad := range answer.Scores {
			out = append(out, ad.ID, shown(ad.Score), ad.Status)
			out = append(out, shown(ad.Eligible), shown(&ad.Truncated))
		}
	}
	return out
}

func clientOf(base, timeoutMs, header string) (*adrel.Client, error) {
	key := base + timeoutMs + header
	if client := clients[key]; client != nil {
		return client, nil
	}
	ms, _ := strconv.Atoi(timeoutMs)
	var options []adrel.Option
	if name, value, given := strings.Cut(header, ": "); given {
		options = append(options, adrel.WithHeaders(http.Header{name: {value}}))
	}
	client, err := adrel.New(base, time.Duration(ms)*time.Millisecond, options...)
	if err == nil {
		clients[key] = client
	}
	return client, err
}

func fallbackOf(fixed string) func(string, adrel.Ad) float64 {
	if score, err := strconv.ParseFloat(fixed, 64); err == nil {
		return func(string, adrel.Ad) float64 { return score }
	}
	return func(query string, ad adrel.Ad) float64 { return float64(len(query)) / 100 }
}

func shown[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

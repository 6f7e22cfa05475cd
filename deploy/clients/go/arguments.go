package adrel

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var (
	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$") // RFC 9110, 5.6.2
	headerValue = regexp.MustCompile(`^[\t\x20-\x7e]*$`)
	ownHeaders  = regexp.MustCompile("^(?i:host|content-length|transfer-encoding|connection)$")
)

// scoreURL is where the scores of the service at baseURL are; its error says what is wrong with
// that.
func scoreURL(baseURL string) (string, error) {
	const takes = "baseURL: takes a URL such as http://127.0.0.1:8000"
	parsed, err := url.Parse(baseURL)
	if err != nil {
		return "", fmt.Errorf("%s: %w", takes, err)
	}
	port, err := strconv.Atoi(parsed.Port())
	switch {
	case parsed.Scheme != "http" && parsed.Scheme != "https", parsed.Hostname() == "":
		return "", fmt.Errorf("%s, got %q", takes, baseURL)
	case parsed.User != nil:
		return "", fmt.Errorf("baseURL: takes no user and password; send an Authorization header")
	case strings.ContainsAny(baseURL, "?#"):
		return "", fmt.Errorf("baseURL: takes no query and no fragment, got %q", baseURL)
	case parsed.Port() != "" && (err != nil || port < 1 || port > 65_535):
		return "", fmt.Errorf("baseURL: takes a port from 1 to 65535, got %s", parsed.Port())
	}
	return strings.TrimRight(baseURL, "/") + "/v1/score", nil
}

// checkHeaders says which header cannot be sent; never its value, which may be a key.
func checkHeaders(headers http.Header) error {
	for name, values := range headers {
		if !headerName.MatchString(name) {
			return fmt.Errorf("headers: %q is no name of a header", name)
		}
		if ownHeaders.MatchString(name) {
			return fmt.Errorf("headers: %q is the client's own", name)
		}
		for _, value := range values {
			if !headerValue.MatchString(value) {
				return fmt.Errorf("headers[%q]: takes printable ASCII characters", name)
			}
		}
	}
	return nil
}

// checkTexts refuses what encoding/json would change without a word. The service refuses a whole
// request for one text that it cannot read, so this does too.
func checkTexts(request Request) error {
	if err := checkText("query", request.Query); err != nil {
		return err
	}
	for i, ad := range request.Ads {
		for _, field := range []struct{ name, text string }{
			{"id", ad.ID}, {"title", ad.Title}, {"description", ad.Description}, {"text", ad.Text},
		} {
			if !utf8.ValidString(field.text) {
				return checkText(fmt.Sprintf("ads[%d].%s", i, field.name), field.text)
			}
		}
	}
	if err := checkText("priority", request.Priority); err != nil {
		return err
	}
	return checkText("request_id", request.RequestID)
}

func checkText(name, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	message := fmt.Sprintf("%s: takes UTF-8, got %.60q", name, text)
	return &Error{Code: "invalid_request", Message: message, Refused: true}
}

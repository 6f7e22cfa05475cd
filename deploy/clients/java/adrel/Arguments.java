package adrel;

import java.net.URI;
import java.net.URISyntaxException;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Pattern;

/** What the caller gives, judged when it is given: IllegalArgumentException names what is wrong. */
final class Arguments {
    /** RFC 9110, 5.6.2. */
    private static final Pattern HEADER_NAME = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+");

    private static final Pattern HEADER_VALUE = Pattern.compile("[\\t\\x20-\\x7e]*");
    private static final Pattern OWN_HEADERS =
            Pattern.compile("(?i)host|content-length|transfer-encoding|connection");

    private Arguments() {}

    /** Where the scores of the service at an address are. */
    static URI scoreUri(String baseUrl) {
        String takes = "baseUrl: takes a URL such as http://127.0.0.1:8000";
        URI uri;
        try {
            uri = new URI(baseUrl.replaceAll("/+$", "") + "/v1/score");
        } catch (URISyntaxException broken) {
            throw new IllegalArgumentException(takes + ": " + broken.getMessage(), broken);
        }
        if (uri.getRawUserInfo() != null) {
            throw new IllegalArgumentException(
                    "baseUrl: takes no user and password; send an Authorization header");
        }
        if (!String.valueOf(uri.getScheme()).matches("(?i)https?") || uri.getHost() == null) {
            throw new IllegalArgumentException(takes + ", got " + baseUrl);
        }
        if (baseUrl.contains("?") || baseUrl.contains("#")) {
            throw new IllegalArgumentException(
                    "baseUrl: takes no query and no fragment, got " + baseUrl);
        }
        if (uri.getPort() == 0 || uri.getPort() > 65_535) {
            throw new IllegalArgumentException(
                    "baseUrl: takes a port from 1 to 65535, got " + uri.getPort());
        }
        return uri;
    }

    static Duration timeout(Duration timeout) {
        if (timeout.isNegative() || timeout.isZero()) {
            throw new IllegalArgumentException("timeout: takes more than 0, got " + timeout);
        }
        return timeout;
    }

    /** The headers, if they can be sent. No message quotes a value: it may be a key. */
    static Map<String, String> headers(Map<String, String> headers) {
        headers.forEach((name, value) -> {
            if (!HEADER_NAME.matcher(name).matches()) {
                throw new IllegalArgumentException(
                        "headers: \"" + name + "\" is no name of a header");
            }
            if (OWN_HEADERS.matcher(name).matches()) {
                throw new IllegalArgumentException("headers: " + name + " is the client's own");
            }
            if (!HEADER_VALUE.matcher(value).matches()) {
                throw new IllegalArgumentException(
                        "headers: " + name + " takes printable ASCII characters");
            }
        });
        return headers;
    }

    static double fallbackScore(String id, double score) {
        if (!(score >= 0 && score <= 1)) { // nor NaN
            throw new IllegalArgumentException("the fallback's score for ad \"" + id
                    + "\": takes a number from 0 to 1, got " + score);
        }
        return score;
    }
}

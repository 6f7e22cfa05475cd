package adrel;

import java.io.IOException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.ToDoubleBiFunction;

/**
 * Asks one adrel service how relevant ads are to a query. Keeps its connections; threads may share
 * it.
 */
public final class AdrelClient {

    /** One advertisement: a text as shown, or a title with or without a description; else null. */
    public record Ad(String id, String title, String description, String text) {
        public static Ad titled(String id, String title, String description) {
            return new Ad(id, title, description, null);
        }

        public static Ad ofText(String id, String text) {
            return new Ad(id, null, null, text);
        }
    }

    /** What is asked; all but query and ads may be null. The service judges the values. */
    public record Request(
            String query, List<Ad> ads, Double minScore, String priority, String requestId) {
        public Request(String query, List<Ad> ads) {
            this(query, ads, null, null, null);
        }
    }

    /**
     * One ad's outcome. The status is ok, cached, deadline, failed or fallback; the score is null
     * where it is deadline or failed, and eligible where the score or minScore is.
     */
    public record AdScore(
            String id, Double score, String status, Boolean eligible, boolean truncated) {}

    /**
     * One AdScore per ad, in the order asked. Only scoreOrFallback returns one with an error: why
     * no answer came; modelVersion is null then.
     */
    public record Answer(
            String requestId, String modelVersion, List<AdScore> scores, AdrelException error) {}

    /** Kept back of what the service is told it has, for the way there and back. */
    private static final long NETWORK_MARGIN_NS = 2_000_000;

    /** A call earns 1 and a retry costs 10: one in ten in the long run, ten in a burst. */
    private static final int MAX_RETRY_CREDIT = 100;

    private final HttpRequest.Builder template;
    private final Duration timeout;
    private final HttpClient http;
    private int retryCredit = MAX_RETRY_CREDIT;

    /** A client whose requests carry no headers of the caller's. */
    public AdrelClient(String baseUrl, Duration timeout) {
        this(baseUrl, timeout, Map.of());
    }

    /**
     * A client of the service at, say, {@code http://127.0.0.1:8000}; calls end by timeout.
     *
     * @param headers sent with every request, such as an Authorization for a service that asks
     *     for keys
     * @throws IllegalArgumentException names the argument that cannot work
     */
    public AdrelClient(String baseUrl, Duration timeout, Map<String, String> headers) {
        this.template = HttpRequest.newBuilder(Arguments.scoreUri(baseUrl));
        this.timeout = Arguments.timeout(timeout);
        Arguments.headers(headers).forEach(template::setHeader);
        template.setHeader("Content-Type", "application/json");
        template.setHeader("Accept-Encoding", "identity");
        // By default every request asks for an upgrade to HTTP/2, which the service does not speak.
        this.http = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .proxy(HttpClient.Builder.NO_PROXY)
                .build();
    }

    /**
     * Scores the ads; some may have no score, see each one's status.
     *
     * @throws AdrelException no ad has a score; its code says why
     */
    public Answer score(Request request) throws AdrelException, InterruptedException {
        long deadlineNs = System.nanoTime() + timeout.toNanos();
        byte[] body = Wire.bodyOf(request);
        spendRetryCredit(-1);
        try {
            return attempt(request, body, deadlineNs);
        } catch (AdrelException failure) {
            if (!failure.unanswered() || !spendRetryCredit(10)) {
                throw failure;
            }
            return attempt(request, body, deadlineNs);
        }
    }

    /**
     * Asks {@code fallback} about each ad that has no score in time; it must be quick.
     *
     * @throws AdrelException the request is wrong
     * @throws IllegalArgumentException the fallback gave a score that is not in 0-1
     */
    public Answer scoreOrFallback(Request request, ToDoubleBiFunction<String, Ad> fallback)
            throws AdrelException, InterruptedException {
        Answer answer;
        try {
            answer = score(request);
        } catch (AdrelException failure) {
            if (failure.refused()) {
                throw failure;
            }
            answer = new Answer(request.requestId(), null, null, failure);
        }
        List<AdScore> filled = new ArrayList<>();
        for (int i = 0; i < request.ads().size(); i++) {
            AdScore scored = answer.scores() == null ? null : answer.scores().get(i);
            if (scored == null || scored.score() == null) {
                Ad ad = request.ads().get(i);
                double score = Arguments.fallbackScore(
                        ad.id(), fallback.applyAsDouble(request.query(), ad));
                Boolean eligible = request.minScore() == null ? null : score >= request.minScore();
                boolean truncated = scored != null && scored.truncated();
                scored = new AdScore(ad.id(), score, "fallback", eligible, truncated);
            }
            filled.add(scored);
        }
        return new Answer(answer.requestId(), answer.modelVersion(), filled, answer.error());
    }

    private Answer attempt(Request request, byte[] body, long deadlineNs)
            throws AdrelException, InterruptedException {
        long leftNs = Math.max(1, deadlineNs - System.nanoTime());
        double serviceMs = (leftNs - Math.min(NETWORK_MARGIN_NS, leftNs / 4)) / 1e6;
        HttpRequest post = template.copy()
                .setHeader("X-Affinity-Key", Wire.affinityKey(request.query()))
                .setHeader("X-Request-Timeout-Ms", String.format(Locale.ROOT, "%.6f", serviceMs))
                .POST(BodyPublishers.ofByteArray(body))
                .build();
        long maxBytes = Wire.maxAnswerBytes(request.ads().size(), body.length);
        CompletableFuture<HttpResponse<byte[]>> exchange =
                http.sendAsync(post, head -> new BoundedBody(head.statusCode(), maxBytes));
        try {
            // HttpRequest's own timeout bounds the wait for the answer's head; this bounds it all.
            HttpResponse<byte[]> response = exchange.get(leftNs, TimeUnit.NANOSECONDS);
            if (response.statusCode() != 200) {
                throw Wire.errorOf(response);
            }
            return Wire.parse(response.body(), request);
        } catch (TimeoutException late) {
            throw AdrelException.outOfTime(timeout);
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof AdrelException tooMuch) {
                throw tooMuch;
            }
            if (failed.getCause() instanceof IOException broken) {
                throw AdrelException.noConnection(broken);
            }
            throw new IllegalStateException(failed.getCause());
        } finally {
            exchange.cancel(true); // closes the connection if the exchange has not ended
        }
    }

    /** Takes from the credit if there is so much; negative amounts are earned. */
    private synchronized boolean spendRetryCredit(int amount) {
        if (retryCredit < amount) {
            return false;
        }
        retryCredit = Math.min(MAX_RETRY_CREDIT, retryCredit - amount);
        return true;
    }
}

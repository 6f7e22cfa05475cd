package adrel;

import adrel.AdrelClient.Ad;
import adrel.AdrelClient.AdScore;
import adrel.AdrelClient.Answer;
import adrel.AdrelClient.Request;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** Requests to bytes, answers to records: strict where the wrong ad would rank, else lenient. */
final class Wire {
    private Wire() {}

    static byte[] bodyOf(Request request) {
        List<Object> ads = new ArrayList<>();
        for (Ad ad : request.ads()) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("id", ad.id());
            putGiven(fields, "title", ad.title());
            putGiven(fields, "description", ad.description());
            putGiven(fields, "text", ad.text());
            ads.add(fields);
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("query", request.query());
        fields.put("ads", ads);
        putGiven(fields, "min_score", request.minScore());
        putGiven(fields, "priority", request.priority());
        putGiven(fields, "request_id", request.requestId());
        return Json.write(fields).getBytes(StandardCharsets.UTF_8);
    }

    /** Lets a proxy send the same query to the same replica, whose cache knows it. */
    static String affinityKey(String query) {
        try {
            MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
            byte[] digest = sha256.digest(query.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException absent) { // every Java has it
            throw new IllegalStateException(absent);
        }
    }

    private static void putGiven(Map<String, Object> fields, String name, Object value) {
        if (value != null) {
            fields.put(name, value);
        }
    }

    static Answer parse(byte[] content, Request request) throws AdrelException {
        try {
            Map<?, ?> answer = (Map<?, ?>) Json.parse(new String(content, StandardCharsets.UTF_8));
            List<?> scores = (List<?>) answer.get("scores");
            int nAds = request.ads().size();
            if (scores.size() != nAds) {
                throw AdrelException.badAnswer(200, scores.size() + " scores for " + nAds + " ads");
            }
            List<AdScore> ads = new ArrayList<>();
            for (int i = 0; i < nAds; i++) {
                String id = request.ads().get(i).id();
                boolean wantsEligible = request.minScore() != null;
                Map<?, ?> fields = (Map<?, ?>) scores.get(i);
                ads.add(adScore(fields, id, wantsEligible, "scores[" + i + "]"));
            }
            String version = (String) ((Map<?, ?>) answer.get("model")).get("version");
            return new Answer((String) answer.get("request_id"), version, ads, null);
        } catch (IllegalArgumentException | ClassCastException | NullPointerException fault) {
            // Not JSON, or a field is absent or of another type.
            throw AdrelException.badAnswer(200, fault.toString());
        }
    }

    private static AdScore adScore(
            Map<?, ?> fields, String id, boolean wantsEligible, String where)
            throws AdrelException {
        String status = (String) fields.get("status");
        Double score = (Double) fields.get("score");
        boolean scored = status.equals("ok") || status.equals("cached");
        if (!id.equals(fields.get("id"))) {
            throw AdrelException.badAnswer(200, where + ".id: " + fields.get("id") + ", not " + id);
        }
        if (!scored && !status.equals("deadline") && !status.equals("failed")) {
            throw AdrelException.badAnswer(200, where + ".status: " + status);
        }
        if (scored != (score != null) || scored && (score < 0 || score > 1)) {
            throw AdrelException.badAnswer(
                    200, where + ".score: does not fit the status " + status);
        }
        Boolean eligible = (Boolean) fields.get("eligible");
        if (scored && wantsEligible && eligible == null) {
            throw AdrelException.badAnswer(200, where + ".eligible: is absent");
        }
        boolean truncated = Boolean.TRUE.equals((Boolean) fields.get("truncated"));
        return new AdScore(id, score, status, eligible, truncated);
    }

    /**
     * More than an answer can need: it repeats the ids, which are in the request, and says some
     * words about each ad.
     */
    static long maxAnswerBytes(int nAds, int requestBytes) {
        return 65_536 + 1024L * nAds + requestBytes;
    }

    /** The error that an answer other than 200 stands for. */
    static AdrelException errorOf(HttpResponse<byte[]> response) {
        int status = response.statusCode();
        String content = new String(response.body(), StandardCharsets.UTF_8);
        Duration retryAfter = retryAfter(response.headers().firstValue("Retry-After"));
        try {
            Map<?, ?> error = (Map<?, ?>) ((Map<?, ?>) Json.parse(content)).get("error");
            String code = Objects.requireNonNull((String) error.get("code"));
            String message = Objects.requireNonNull((String) error.get("message"));
            for (Object detail : (List<?>) error.get("details")) {
                if (detail instanceof Map<?, ?> facts
                        && facts.get("retry_after_ms") instanceof Double ms
                        && ms >= 0
                        && ms <= 1e9) {
                    retryAfter = Duration.ofNanos((long) (ms * 1e6));
                }
            }
            // Not 401, 403 or 404: they are faults of the address or the key, and auctions go on.
            boolean refused = status == 413 || status == 415 || status == 422;
            return AdrelException.ofStatus(code, message, status, retryAfter, refused);
        } catch (IllegalArgumentException | ClassCastException | NullPointerException foreign) {
            // Of something on the way, so no fault of the request. A redirect is not followed: it
            // would take the time of the call again.
            String message = status >= 300 && status < 400
                    ? "leads to " + response.headers().firstValue("Location").orElse("nowhere")
                    : content.substring(0, Math.min(200, content.length()));
            return AdrelException.ofStatus("http_" + status, message, status, retryAfter, false);
        }
    }

    private static Duration retryAfter(Optional<String> header) {
        return header.filter(text -> text.matches("[0-9]{1,9}"))
                .map(text -> Duration.ofSeconds(Long.parseLong(text)))
                .orElse(null);
    }
}

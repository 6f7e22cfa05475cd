import adrel.AdrelClient;
import adrel.AdrelClient.Ad;
import adrel.AdrelClient.AdScore;
import adrel.AdrelClient.Answer;
import adrel.AdrelClient.Request;
import adrel.AdrelException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleBiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Makes the calls that its input names, one a line; see driver.py for both formats. */
final class Driver {
    private static final Map<String, AdrelClient> CLIENTS = new HashMap<>();

    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            List<String> fields = Stream.of(line.split("\t", -1))
                    .map(field -> URLDecoder.decode(field, StandardCharsets.UTF_8))
                    .toList();
            System.out.println(
                    call(fields).stream().map(Driver::encoded).collect(Collectors.joining("\t")));
        }
    }

    private static String encoded(String field) {
        return URLEncoder.encode(field, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static List<String> call(List<String> fields) throws InterruptedException {
        Double minScore = fields.get(3).isEmpty() ? null : Double.valueOf(fields.get(3));
        String[] kind = fields.get(4).split(" ");
        List<Ad> ads = new ArrayList<>();
        for (int i = 6; i < fields.size(); i += 4) {
            ads.add(new Ad(
                    fields.get(i),
                    given(fields.get(i + 1)),
                    given(fields.get(i + 2)),
                    given(fields.get(i + 3))));
        }
        Request request = new Request(fields.get(5), ads, minScore, null, null);
        long startNs = System.nanoTime();
        String ending = "returned";
        List<AdScore> scores = List.of();
        AdrelException error;
        try {
            AdrelClient client = clientOf(fields.get(0), fields.get(1), fields.get(2));
            Answer answer = kind[0].equals("fallback")
                    ? client.scoreOrFallback(request, fallbackOf(kind))
                    : client.score(request);
            scores = answer.scores();
            error = answer.error();
        } catch (AdrelException raised) {
            ending = "raised";
            error = raised;
        } catch (IllegalArgumentException wrong) {
            return List.of("raised", "", wrong.getMessage(), "", "", "0");
        }
        double elapsedMs = (System.nanoTime() - startNs) / 1e6;
        List<String> out = new ArrayList<>(List.of(ending, "", "", "", "", String.valueOf(elapsedMs)));
        if (error != null) {
            out.set(1, error.code());
            out.set(2, error.getMessage());
            out.set(3, String.valueOf(error.httpStatus()));
            Duration wait = error.retryAfter();
            out.set(4, wait == null ? "0" : String.valueOf(wait.toNanos() / 1e6));
        }
        for (AdScore ad : scores) {
            out.addAll(List.of(ad.id(), shown(ad.score()), ad.status()));
            out.addAll(List.of(shown(ad.eligible()), shown(ad.truncated())));
        }
        return out;
    }

    private static AdrelClient clientOf(String base, String timeoutMs, String header) {
        Duration timeout = Duration.ofMillis(Long.parseLong(timeoutMs));
        return CLIENTS.computeIfAbsent(base + timeoutMs + header, key -> {
            String[] parts = header.split(": ", 2);
            return parts.length < 2
                    ? new AdrelClient(base, timeout)
                    : new AdrelClient(base, timeout, Map.of(parts[0], parts[1]));
        });
    }

    private static ToDoubleBiFunction<String, Ad> fallbackOf(String[] kind) {
        return kind.length > 1
                ? (query, ad) -> Double.parseDouble(kind[1])
                : (query, ad) -> query.getBytes(StandardCharsets.UTF_8).length / 100.0;
    }

    private static String given(String field) {
        return field.isEmpty() ? null : field;
    }

    private static String shown(Object value) {
        return value == null ? "" : value.toString();
    }
}

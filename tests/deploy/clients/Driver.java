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
        AdrelClient client = CLIENTS.computeIfAbsent(
                fields.get(0) + fields.get(1),
                key -> new AdrelClient(
                        fields.get(0), Duration.ofMillis(Long.parseLong(fields.get(1)))));
        Double minScore = fields.get(2).isEmpty() ? null : Double.valueOf(fields.get(2));
        List<Ad> ads = new ArrayList<>();
        for (int i = 5; i < fields.size(); i += 4) {
            ads.add(new Ad(
                    fields.get(i),
                    given(fields.get(i + 1)),
                    given(fields.get(i + 2)),
                    given(fields.get(i + 3))));
        }
        Request request = new Request(fields.get(4), ads, minScore, null, null);
        long startNs = System.nanoTime();
        String ending = "returned";
        List<AdScore> scores = List.of();
        AdrelException error;
        try {
            Answer answer = fields.get(3).equals("fallback")
                    ? client.scoreOrFallback(request, (query, ad) -> bytesOf(query) / 100.0)
                    : client.score(request);
            scores = answer.scores();
            error = answer.error();
        } catch (AdrelException raised) {
            ending = "raised";
            error = raised;
        }
        double elapsedMs = (System.nanoTime() - startNs) / 1e6;
        List<String> out = new ArrayList<>(List.of(ending, "", "", "", String.valueOf(elapsedMs)));
        if (error != null) {
            out.set(1, error.code());
            out.set(2, String.valueOf(error.httpStatus()));
            Duration wait = error.retryAfter();
            out.set(3, wait == null ? "0" : String.valueOf(wait.toNanos() / 1e6));
        }
        for (AdScore ad : scores) {
            out.addAll(List.of(ad.id(), shown(ad.score()), ad.status()));
            out.addAll(List.of(shown(ad.eligible()), shown(ad.truncated())));
        }
        return out;
    }

    private static int bytesOf(String text) {
        return text.getBytes(StandardCharsets.UTF_8).length;
    }

    private static String given(String field) {
        return field.isEmpty() ? null : field;
    }

    private static String shown(Object value) {
        return value == null ? "" : value.toString();
    }
}

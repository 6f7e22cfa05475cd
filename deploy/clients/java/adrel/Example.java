package adrel;

import adrel.AdrelClient.Ad;
import adrel.AdrelClient.AdScore;
import adrel.AdrelClient.Answer;
import adrel.AdrelClient.Request;
import java.time.Duration;
import java.util.List;

/** Scores the README's ads and prints id, score, status. Arguments, if any: URL, timeout in ms. */
final class Example {
    private Example() {}

    public static void main(String[] arguments) throws AdrelException, InterruptedException {
        String url = arguments.length > 0 ? arguments[0] : "http://127.0.0.1:8000";
        long timeoutMs = arguments.length > 1 ? Long.parseLong(arguments[1]) : 250;
        AdrelClient client = new AdrelClient(url, Duration.ofMillis(timeoutMs));
        Request request = new Request(
                "best running shoes for marathons",
                List.of(
                        Ad.titled("A", "Nike Marathon Elite Shoes - 20% Off", null),
                        Ad.titled("B", "Running Gear for Beginners", "Shirts, shorts and socks"),
                        Ad.ofText("C", "Cheap Printer Ink Outlet")));
        Answer answer = client.scoreOrFallback(request, (query, ad) -> 0.1);
        for (AdScore ad : answer.scores()) {
            System.out.println(ad.id() + " " + ad.score() + " " + ad.status());
        }
    }
}

package perihelion.support;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Requests that the SDK does not make. */
public final class ByHand {
    private ByHand() {}

    /** Creates a resource of a kind under a parent. */
    public static void create(Server server, String parent, String kind, String body) {
        String date = DateTimeFormatter.RFC_1123_DATE_TIME.format(ZonedDateTime.now(ZoneOffset.UTC));
        HttpRequest request = HttpRequest.newBuilder(URI.create(server.endpoint(Scheme.HTTP) + parent + "/" + kind))
                .header("authorization", signed("post\n" + kind + "\n" + parent + "\n" + date.toLowerCase() + "\n\n"))
                .header("x-ms-date", date)
                .header("x-ms-version", "2020-07-15")
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        try {
            var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
            assertEquals(201, answer.statusCode(), answer::body);
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private static String signed(String text) {
        try {
            Mac code = Mac.getInstance("HmacSHA256");
            code.init(new SecretKeySpec(Base64.getDecoder().decode(Server.KEY), "HmacSHA256"));
            String signature = Base64.getEncoder().encodeToString(code.doFinal(text.getBytes(StandardCharsets.UTF_8)));
            return URLEncoder.encode("type=master&ver=1.0&sig=" + signature, StandardCharsets.UTF_8);
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}

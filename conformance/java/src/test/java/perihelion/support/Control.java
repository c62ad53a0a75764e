package perihelion.support;

import com.azure.cosmos.CosmosContainer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/** The control API and the metrics of a server: what the SDK does not tell of physical partitions. */
public final class Control {
    private static final Pattern SAMPLE = Pattern.compile(
            "^perihelion_partition_requests_total\\{database=\"([^\"]*)\",container=\"([^\"]*)\",partition=\"([^\"]*)\"} (\\d+)",
            Pattern.MULTILINE);
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final Server server;
    private final String database;
    private final String container;
    private final HttpClient client = HttpClient.newHttpClient();

    public Control(Server server, String database, CosmosContainer container) {
        this.server = server;
        this.database = database;
        this.container = container.getId();
    }

    /** The physical partitions of the container. */
    public List<JsonNode> partitions() {
        List<JsonNode> partitions = new ArrayList<>();
        send("GET", "").get("partitions").forEach(partitions::add);
        return partitions;
    }

    /** Splits a partition and answers its children. */
    public JsonNode split(String partition) {
        return send("POST", "/" + partition + "/split").get("children");
    }

    /** How many requests each partition has had, from the metrics. */
    public Map<String, Integer> requestsByPartition() {
        String text = text(HttpRequest.newBuilder(URI.create(server.endpoint(Scheme.HTTP) + "metrics")));
        Map<String, Integer> counts = new TreeMap<>();
        SAMPLE.matcher(text).results()
                .filter(sample -> sample.group(1).equals(database) && sample.group(2).equals(container))
                .forEach(sample -> counts.put(sample.group(3), Integer.valueOf(sample.group(4))));
        return counts;
    }

    private JsonNode send(String verb, String path) {
        String place = "_control/dbs/" + database + "/colls/" + container + "/partitions" + path;
        var request = HttpRequest.newBuilder(URI.create(server.endpoint(Scheme.HTTP) + place))
                .header("authorization", "Bearer " + Server.KEY)
                .method(verb, HttpRequest.BodyPublishers.noBody());
        try {
            return MAPPER.readTree(text(request));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private String text(HttpRequest.Builder request) {
        try {
            var answer = client.send(request.build(), BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(answer.statusCode() + " " + answer.body());
            }
            return answer.body();
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}

package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import perihelion.support.Scheme;
import perihelion.support.Server;

/** Bulk procedures whose time is used up: they go on where they stopped, and nothing is lost or comes twice. */
class ContinuationTest {
    private static final PartitionKey KEY = new PartitionKey("k");
    /** A time of scripts in which so many items can neither be imported nor deleted. */
    private static final String SHORT_MS = "200";

    private static final int ITEMS = 20_000;
    /** How many are not to be deleted. */
    private static final int KEPT = 100;
    /** Bounds a test whose procedure gets nowhere. */
    private static final int CALLS_MAX = 1_000;

    private CosmosContainer container;
    private int good;
    private int late;

    @Test
    void bulkProceduresGoOnWhereTheyStopped() throws IOException {
        try (var server = Server.own("dev", "--script-timeout-ms", SHORT_MS);
                var client = server.client(Scheme.HTTP)) {
            client.createDatabase("d");
            client.getDatabase("d").createContainer("c", "/pk");
            container = client.getDatabase("d").getContainer("c");
            for (String name : List.of("bulkImport", "bulkDelete")) {
                String text = Files.readString(Path.of("..", "scripts", name + ".js"));
                container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties(name, text));
            }
            bulkImport();
            bulkDelete();
            var query = "SELECT VALUE c.n FROM c";
            var left = container.queryItems(query, new CosmosQueryRequestOptions(), Integer.class);
            assertEquals(IntStream.range(0, KEPT).boxed().toList(), left.stream().sorted().toList());
        }
    }

    private void bulkImport() {
        var items = IntStream.range(0, ITEMS)
                .mapToObj(n -> Map.of("id", "i" + n, "pk", "k", "n", n))
                .toList();
        good = late = 0;
        int done = 0;
        while (done < ITEMS) {
            done += run("bulkImport", items.subList(done, ITEMS), false).map(Integer::parseInt).orElse(0);
            assertEquals(done, count());
        }
        assertTrue(good > 1);
    }

    private void bulkDelete() {
        good = late = 0;
        int deleted = 0;
        boolean hasMore = true;
        while (hasMore) {
            var answer = run("bulkDelete", "SELECT * FROM c WHERE c.n >= " + KEPT);
            if (answer.isPresent()) {
                deleted += json(answer.get()).get("deleted").intValue();
                hasMore = json(answer.get()).get("continuation").booleanValue();
            }
            assertEquals(ITEMS - deleted, count());
        }
        assertTrue(good > 1);
    }

    /** What the procedure answers; empty if it was stopped, and then nothing of the call is committed. */
    private Optional<String> run(String name, Object... parameters) {
        assertTrue(good + late < CALLS_MAX);
        var options = new CosmosStoredProcedureRequestOptions().setPartitionKey(KEY);
        try {
            var answer = container.getScripts().getStoredProcedure(name).execute(List.of(parameters), options);
            good++;
            return Optional.of(answer.getResponseAsString());
        } catch (CosmosException error) {
            assertEquals(408, error.getStatusCode(), error::getMessage);
            late++;
            return Optional.empty();
        }
    }

    private int count() {
        var options = new CosmosQueryRequestOptions().setPartitionKey(KEY);
        var counts = container.queryItems("SELECT VALUE COUNT(1) FROM c", options, Integer.class);
        return counts.stream().findFirst().orElseThrow();
    }
}

package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.good;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.ThrottlingRetryOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import perihelion.support.Control;
import perihelion.support.Partitioning;
import perihelion.support.Scheme;
import perihelion.support.Server;

/** Throughput that is enforced: a hot partition is throttled alone, and the retries of the SDK carry a client through. */
class HotPartitionTest {
    private static final JsonNode WALK = Partitioning.WALK.get("hot");

    private static Server server;
    /** Does not retry what is throttled. */
    private static CosmosClient impatient;
    /** Retries as the SDK does by default. */
    private static CosmosClient patient;

    @BeforeAll
    static void start() {
        server = Server.own("dev", Partitioning.texts(WALK.get("flags")).toArray(String[]::new));
        patient = server.client(Scheme.HTTP);
        impatient = server.builder(Scheme.HTTP)
                .throttlingRetryOptions(new ThrottlingRetryOptions().setMaxRetryAttemptsOnThrottledRequests(0))
                .buildClient();
    }

    @AfterAll
    static void stop() {
        patient.close();
        impatient.close();
        server.close();
    }

    private static CosmosDatabase makeDatabase(int throughput) {
        String name = unique("db");
        if (throughput > 0) {
            impatient.createDatabase(name, ThroughputProperties.createManualThroughput(throughput));
        } else {
            impatient.createDatabase(name);
        }
        return impatient.getDatabase(name);
    }

    /** The container as the patient client sees it, which has connected already. */
    private static CosmosContainer connected(CosmosDatabase database, CosmosContainer container, String device) {
        CosmosContainer seen = patient.getDatabase(database.getId()).getContainer(container.getId());
        assertThrows(CosmosException.class, () -> seen.readItem("none", new PartitionKey(device), JsonNode.class));
        return seen;
    }

    private static CompletableFuture<Void> create(CosmosContainer container, String device, int count) {
        return CompletableFuture.runAsync(() -> {
            for (int number = 0; number < count; number++) {
                container.createItem(Partitioning.item("patient" + number, "deviceId", device));
            }
        });
    }

    private static void isThrottled(CosmosContainer container, String device) {
        var item = Partitioning.item("2", "deviceId", device);
        CosmosException refusal = assertThrows(CosmosException.class, () -> container.createItem(item));
        assertEquals("429/3200", refusal.getStatusCode() + "/" + refusal.getSubStatusCode());
        assertTrue(refusal.getRetryAfterDuration().toMillis() > 0);
    }

    private static Map<String, Integer> throttled(Control control) {
        Map<String, Integer> counts = new TreeMap<>();
        for (JsonNode partition : control.partitions()) {
            if (partition.get("throttledRequests").asInt() > 0) {
                counts.put(partition.get("id").asText(), partition.get("throttledRequests").asInt());
            }
        }
        return counts;
    }

    @Test
    void aHotPartitionThrottlesItselfOnly() {
        CosmosDatabase database = makeDatabase(0);
        CosmosContainer container = Partitioning.make(database, WALK.get("throughput").asInt(), "/deviceId");
        Control control = new Control(server, database.getId(), container);
        Map<String, String> home = new HashMap<>();
        for (JsonNode reading : Partitioning.WALK.at("/telemetry/readings")) {
            home.computeIfAbsent(reading.get("deviceId").asText(), device -> {
                var item = Partitioning.item("1", "deviceId", device);
                Set<String> reached = Partitioning.reached(control, () -> container.createItem(item));
                assertEquals(1, reached.size());
                return reached.iterator().next();
            });
        }
        assertEquals(WALK.get("partitions").asInt(), new HashSet<>(home.values()).size());
        String hot = Partitioning.WALK.at("/telemetry/readings/0/deviceId").asText();
        String partition = home.get(hot);
        CosmosContainer seen = connected(database, container, hot);
        container.createItem(Partitioning.large("deviceId", hot, WALK.get("values").asInt()));
        isThrottled(container, hot);
        int before = throttled(control).get(partition);
        var created = create(seen, hot, 3);
        home.forEach((device, other) -> {
            if (!other.equals(partition)) {
                good(201, container.createItem(Partitioning.item("2", "deviceId", device)));
            }
        });
        created.join();
        Map<String, Integer> after = throttled(control);
        assertEquals(Set.of(partition), after.keySet());
        assertTrue(after.get(partition) > before, "the patient client was refused, too");
    }

    @Test
    void containersShareAnEnforcedThroughput() {
        CosmosDatabase database = makeDatabase(WALK.get("throughput").asInt());
        CosmosContainer one = Partitioning.make(database, 0, "/deviceId");
        CosmosContainer two = Partitioning.make(database, 0, "/deviceId");
        CosmosContainer own = Partitioning.make(database, 400, "/deviceId");
        CosmosContainer seen = connected(database, two, "b");
        one.createItem(Partitioning.large("deviceId", "a", WALK.get("sharedValues").asInt()));
        isThrottled(two, "b");
        var created = create(seen, "b", 1);
        good(201, own.createItem(Partitioning.item("1", "deviceId", "b")));
        created.join();
    }
}

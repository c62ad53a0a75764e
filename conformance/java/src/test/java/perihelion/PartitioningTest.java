package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.good;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.PartitionKeyBuilder;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import perihelion.support.Control;
import perihelion.support.Fixture;
import perihelion.support.Partitioning;
import perihelion.support.Scheme;
import perihelion.support.Server;

/**
 * The walk-throughs of the articles about partitioning: what is stored where, which partitions a query reaches. The data
 * and the answers are shared with the suites of the other languages. Partitions are counted by the server's metrics.
 */
class PartitioningTest extends Fixture {
    private static final JsonNode WALK = Partitioning.WALK;
    private static final JsonNode TELEMETRY = WALK.get("telemetry");
    private static final Map<Scheme, CosmosContainer> FILLED = new EnumMap<>(Scheme.class);

    /** The container with the readings. */
    private CosmosContainer readings;

    @BeforeEach
    void fill() {
        readings = FILLED.computeIfAbsent(scheme, scheme -> {
            CosmosContainer made = make(TELEMETRY.get("throughput").asInt(), TELEMETRY.get("partitionKey").asText());
            fill(made);
            return made;
        });
    }

    private static void fill(CosmosContainer container) {
        TELEMETRY.get("readings").forEach(container::createItem);
    }

    private CosmosContainer make(int throughput, String... paths) {
        return Partitioning.make(database, throughput, paths);
    }

    private Control control(CosmosContainer container) {
        return new Control(Server.shared(), database.getId(), container);
    }

    private List<JsonNode> partitions(CosmosContainer container) {
        return control(container).partitions();
    }

    private void reaches(int count, CosmosContainer container, Runnable call) {
        assertEquals(count, Partitioning.reached(control(container), call).size(), "partitions");
    }

    private static List<String> rows(CosmosContainer container, String query, CosmosQueryRequestOptions options, int size) {
        return StreamSupport.stream(
                        container.queryItems(query, options, JsonNode.class).iterableByPage(size).spliterator(), false)
                .flatMap(page -> page.getResults().stream())
                .map(Partitioning::text)
                .toList();
    }

    private static List<String> rows(CosmosContainer container, String query) {
        return rows(container, query, new CosmosQueryRequestOptions(), 100);
    }

    private static List<String> sorted(List<String> texts) {
        return texts.stream().sorted().toList();
    }

    @Test
    void throughputDecidesTheNumberOfPartitions() {
        int count = TELEMETRY.get("partitions").asInt();
        assertEquals(count, readings.getFeedRanges().size());
        List<Integer> documents = partitions(readings).stream().map(found -> found.get("documents").asInt()).toList();
        assertEquals(count, documents.size());
        assertFalse(documents.contains(0));
        assertEquals(TELEMETRY.get("readings").size(), documents.stream().mapToInt(Integer::intValue).sum());
    }

    @Test
    void aReadingIsFoundByItsDevice() {
        ObjectNode reading = TELEMETRY.get("reading").deepCopy();
        String id = reading.get("id").asText();
        PartitionKey key = new PartitionKey(reading.get("deviceId").asText());
        reaches(1, readings, () -> {
            good(201, readings.createItem(reading));
            assertEquals(105, readings.readItem(id, key, JsonNode.class).getItem().get("metricValue").asInt());
            good(200, readings.replaceItem(reading.put("metricValue", 104), id, key, null));
            assertEquals(104, readings.readItem(id, key, JsonNode.class).getItem().get("metricValue").asInt());
            good(204, readings.deleteItem(id, key, new CosmosItemRequestOptions()));
        });
        refused(404, 0, () -> readings.readItem(id, key, JsonNode.class));
    }

    @Test
    void aFilterOnTheKeyReachesOnePartition() {
        for (JsonNode walk : TELEMETRY.get("queries")) {
            String text = walk.get("text").asText();
            List<String> expected = Partitioning.texts(walk.get("expected"));
            for (int size : new int[] {3, 100}) {
                reaches(walk.get("reaches").asInt(), readings, () -> {
                    var found = rows(readings, text, new CosmosQueryRequestOptions(), size);
                    assertEquals(expected, walk.get("isOrdered").asBoolean() ? found : sorted(found), text);
                });
            }
        }
    }

    @Test
    void parallelQueriesHaveTheOrderOfSerialOnes() {
        for (String text : List.of("SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.metricType")) {
            var one = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(0);
            List<String> serial = rows(readings, text, one, 5);
            assertEquals(TELEMETRY.get("readings").size(), new HashSet<>(serial).size());
            for (int degree : new int[] {1, 2, 4, -1}) {
                var options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(degree).setMaxBufferedItemCount(10);
                assertEquals(serial, rows(readings, text, options, 5), "degree " + degree);
            }
        }
    }

    @Test
    void raisedThroughputSplitsEachPartitionTwice() {
        JsonNode walk = WALK.get("raise");
        int pendingCount = 0;
        for (int turn = 0; turn < walk.get("containers").asInt(); turn++) {
            CosmosContainer raised = make(walk.get("from").asInt(), TELEMETRY.get("partitionKey").asText());
            fill(raised);
            assertEquals(1, partitions(raised).size());
            var wanted = ThroughputProperties.createManualThroughput(walk.get("to").asInt());
            // The bound is only for a server that never gets there.
            Instant deadline = Instant.now().plus(Duration.ofSeconds(20));
            var answer = raised.replaceThroughput(wanted);
            while (answer.isReplacePending()) {
                pendingCount++;
                assertTrue(Instant.now().isBefore(deadline));
                answer = raised.readThroughput();
            }
            assertEquals(walk.get("to").asInt(), answer.getProperties().getManualThroughput());
            List<JsonNode> found = partitions(raised);
            assertEquals(walk.get("partitions").asInt(), found.size());
            int generations = walk.get("generations").asInt();
            assertTrue(found.stream().allMatch(partition -> partition.get("parents").size() == generations));
            assertEquals(TELEMETRY.get("readings").size(), new HashSet<>(rows(raised, "SELECT VALUE c.id FROM c")).size());
        }
        assertTrue(pendingCount > 0, "one of several, since a fast server may be ready before it answers");
    }

    @Test
    void aSyntheticKeySpreadsADeviceOverDays() {
        JsonNode walk = WALK.get("synthetic");
        CosmosContainer spread = make(walk.get("throughput").asInt(), walk.get("partitionKey").asText());
        List<String> dates = Partitioning.texts(walk.get("dates"));
        for (String device : Partitioning.texts(walk.get("devices"))) {
            for (String date : dates) {
                spread.createItem(Partitioning.item("1", "deviceId", device, "date", date, "partitionKey", device + "-" + date));
            }
        }
        String device = walk.get("devices").get(0).asText();
        String key = device + "-" + dates.get(0);
        reaches(1, spread, () -> {
            good(200, spread.readItem("1", new PartitionKey(key), JsonNode.class));
            String query = "SELECT VALUE c.date FROM c WHERE c.partitionKey = '" + key + "'";
            assertEquals(List.of(dates.get(0)), rows(spread, query));
        });
        String query = "SELECT VALUE c.date FROM c WHERE c.deviceId = '" + device + "' ORDER BY c.date";
        reaches(4, spread, () -> assertEquals(dates, rows(spread, query)));
    }

    @Test
    void tenantsShareAContainer() {
        JsonNode walk = WALK.get("tenants");
        CosmosContainer shared = make(walk.get("throughput").asInt(), walk.get("partitionKey").asText());
        List<String> names = Partitioning.texts(walk.get("names"));
        for (String tenant : names) {
            CosmosBatch batch = CosmosBatch.createCosmosBatch(new PartitionKey(tenant));
            batch.createItemOperation(Partitioning.item("profile", "tenantId", tenant, "owner", tenant));
            batch.createItemOperation(Partitioning.item("settings", "tenantId", tenant, "owner", tenant));
            assertTrue(shared.executeCosmosBatch(batch).isSuccessStatusCode());
        }
        String first = names.get(0);
        PartitionKey key = new PartitionKey(first);
        reaches(1, shared, () -> {
            String query = "SELECT VALUE c.owner FROM c WHERE c.tenantId = '" + first + "'";
            assertEquals(List.of(first, first), rows(shared, query));
            assertEquals(2, shared.readAllItems(key, JsonNode.class).stream().count());
        });
        CosmosBatch batch = CosmosBatch.createCosmosBatch(key);
        batch.deleteItemOperation("profile");
        batch.createItemOperation(Partitioning.item("settings", "tenantId", first));
        assertFalse(shared.executeCosmosBatch(batch).isSuccessStatusCode());
        good(204, shared.deleteItem("profile", key, new CosmosItemRequestOptions()));
        good(200, shared.readItem("profile", new PartitionKey(names.get(1)), JsonNode.class));
        String count = String.valueOf(2 * names.size() - 1);
        reaches(4, shared, () -> assertEquals(List.of(count), rows(shared, "SELECT VALUE COUNT(1) FROM c")));
    }

    @Test
    void aLargeTenantHasAContainerOfItsOwn() {
        CosmosContainer small = make(400, "/id");
        CosmosContainer large = make(20_000, "/id");
        assertEquals(1, partitions(small).size());
        assertEquals(4, partitions(large).size());
        small.createItem(Partitioning.item("1"));
        reaches(0, large, () -> {
            assertEquals(List.of("1"), rows(small, "SELECT VALUE c.id FROM c"));
            small.replaceThroughput(ThroughputProperties.createManualThroughput(500));
        });
        assertEquals(List.of(), rows(large, "SELECT VALUE c.id FROM c"));
        assertEquals(20_000, large.readThroughput().getProperties().getManualThroughput());
    }

    @Test
    void prefixesOfHierarchicalKeysReachOnePartition() {
        JsonNode walk = WALK.get("hierarchical");
        String[] paths = Partitioning.texts(walk.get("partitionKeys")).toArray(String[]::new);
        CosmosContainer deep = make(walk.get("throughput").asInt(), paths);
        List<String> tenants = Partitioning.texts(walk.get("tenants"));
        for (String tenant : tenants) {
            for (String user : Partitioning.texts(walk.get("users"))) {
                for (String session : Partitioning.texts(walk.get("sessions"))) {
                    String id = user + session;
                    deep.createItem(Partitioning.item(id, "tenantId", tenant, "userId", user, "sessionId", session));
                }
            }
        }
        String tenant = tenants.get(0);
        reaches(1, deep, () -> {
            good(200, deep.readItem("u1s1", key(tenant, "u1", "s1"), JsonNode.class));
            assertEquals(List.of("u1s1", "u1s2", "u2s1", "u2s2"), below(deep, tenant));
            assertEquals(List.of("u1s1", "u1s2"), below(deep, tenant, "u1"));
            assertEquals(List.of("u1s1"), below(deep, tenant, "u1", "s1"));
        });
        String query = "SELECT VALUE c.id FROM c WHERE c.userId = 'u1'";
        reaches(4, deep, () -> assertEquals(2 * tenants.size(), rows(deep, query).size()));
    }

    private static PartitionKey key(String... components) {
        var builder = new PartitionKeyBuilder();
        List.of(components).forEach(builder::add);
        return builder.build();
    }

    private static List<String> below(CosmosContainer container, String... components) {
        var options = new CosmosQueryRequestOptions().setPartitionKey(key(components));
        return sorted(rows(container, "SELECT VALUE c.id FROM c", options, 100));
    }

    @Test
    void containersShareTheThroughputOfADatabase() {
        int throughput = WALK.at("/shared/throughput").asInt();
        String name = unique("db");
        client.createDatabase(name, ThroughputProperties.createManualThroughput(throughput));
        CosmosDatabase sharing = client.getDatabase(name);
        CosmosContainer shared = Partitioning.make(sharing, 0, "/pk");
        CosmosContainer own = Partitioning.make(sharing, throughput, "/pk");
        assertEquals(1, new Control(Server.shared(), name, shared).partitions().size());
        assertEquals(4, new Control(Server.shared(), name, own).partitions().size());
        assertEquals(throughput, sharing.readThroughput().getProperties().getManualThroughput());
        // The SDK finds no offer and makes an error of it.
        assertEquals(400, assertThrows(CosmosException.class, shared::readThroughput).getStatusCode());
        sharing.delete();
    }
}

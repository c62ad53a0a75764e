package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static perihelion.support.Check.eventually;
import static perihelion.support.Check.json;
import static perihelion.support.Check.unique;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import perihelion.support.ProcessorHost;
import perihelion.support.Scheme;
import perihelion.support.Server;

/** The change feed processor of the SDK: two hosts share the ranges of a container, and one of them is killed. */
class ChangeFeedProcessorTest {
    private static final int COUNT = 60;
    /** Two more virtual machines start on a busy machine. */
    private static final int SECONDS_MAX = 90;

    private static Set<String> owners(CosmosContainer leases) {
        String query = "SELECT VALUE c.Owner FROM c WHERE IS_STRING(c.Owner)";
        return leases.queryItems(query, new CosmosQueryRequestOptions(), String.class).stream().collect(Collectors.toSet());
    }

    private static void create(CosmosContainer container, int first) {
        for (int number = first; number < first + COUNT; number++) {
            container.createItem(json("{'id':'" + number + "','pk':'key-" + number + "'}"));
        }
    }

    private static Set<String> ids(int first) {
        return IntStream.range(first, first + COUNT).mapToObj(String::valueOf).collect(Collectors.toSet());
    }

    @ParameterizedTest
    @EnumSource(ProcessorHost.Kind.class)
    void theOtherHostTakesOverWhatAKilledOneHad(ProcessorHost.Kind kind) {
        Server server = Server.shared();
        try (var client = server.client(Scheme.HTTP)) {
            String name = unique("db");
            client.createDatabase(name);
            CosmosDatabase database = client.getDatabase(name);
            var properties = new CosmosContainerProperties("feed", "/pk");
            properties.setChangeFeedPolicy(ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10)));
            database.createContainer(properties, ThroughputProperties.createManualThroughput(24_000));
            database.createContainer("leases", "/id");
            CosmosContainer feed = database.getContainer("feed");
            CosmosContainer leases = database.getContainer("leases");
            String endpoint = server.endpoint(Scheme.HTTP);
            try (var one = new ProcessorHost(endpoint, kind, name, "feed", "leases", "one");
                    var other = new ProcessorHost(endpoint, kind, name, "feed", "leases", "other")) {
                eventually(SECONDS_MAX, () -> one.isReady() && other.isReady() && owners(leases).equals(Set.of("one", "other")));
                create(feed, 0);
                eventually(SECONDS_MAX, () -> {
                    Set<String> seen = new HashSet<>(one.changes());
                    seen.addAll(other.changes());
                    return seen.equals(ids(0));
                });
                one.kill();
                create(feed, COUNT);
                Set<String> expected = ids(COUNT);
                if (kind == ProcessorHost.Kind.ALL_VERSIONS) {
                    feed.deleteItem("7", new PartitionKey("key-7"), new CosmosItemRequestOptions());
                    expected.add("-7");
                }
                eventually(SECONDS_MAX, () -> new HashSet<>(other.changes()).containsAll(expected));
                eventually(SECONDS_MAX, () -> owners(leases).equals(Set.of("other")));
            }
            String all = "SELECT * FROM c WHERE IS_DEFINED(c.LeaseToken)";
            var found = leases.queryItems(all, new CosmosQueryRequestOptions(), JsonNode.class).stream().toList();
            assertEquals(4, found.size(), found::toString);
            database.delete();
        }
    }
}

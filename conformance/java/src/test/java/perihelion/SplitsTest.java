package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static perihelion.support.Check.eventually;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import perihelion.support.Control;
import perihelion.support.Scheme;
import perihelion.support.Server;
import perihelion.support.Walkers;

/**
 * A container that splits while clients write, query and follow the change feed, and the server is killed twice. No
 * error but that of a broken connection may reach the application, and nothing may be lost or come twice.
 */
class SplitsTest {
    private static final int PARTITIONS = 8;
    private static final int WRITERS = 3;
    /** The number of documents from which on a partition is worth a split. */
    private static final int SPLIT_FROM = 40;
    /** More turns than splits, for the first documents to arrive. */
    private static final int TURNS_MAX = 2000;

    @Test
    void nobodyNoticesThatAContainerSplits() throws InterruptedException {
        try (Server server = Server.own(); var client = server.client(Scheme.HTTP); var walkers = new Walkers(server)) {
            client.createDatabase("d");
            client.getDatabase("d").createContainer("c", "/pk");
            CosmosContainer container = client.getDatabase("d").getContainer("c");
            Control control = new Control(server, "d", container);
            for (int index = 0; index < WRITERS; index++) {
                walkers.start(walkers.writer(index));
            }
            walkers.start(walkers.querier());
            walkers.start(walkers.lister());
            Walkers.Work follow = walkers.follower();
            walkers.start(follow);
            assertEquals(2, splitAll(walkers, control), "kills");
            walkers.stop();
            assertTrue(walkers.drained.get() > 0);
            check(walkers, container, follow);
            assertTrue(control.partitions().stream().allMatch(partition -> !partition.get("parents").isEmpty()));
        }
    }

    /** Splits the largest partition again and again, and kills the server twice. */
    private static int splitAll(Walkers walkers, Control control) {
        int kills = 0;
        for (int turn = 0; turn < TURNS_MAX; turn++) {
            walkers.everyoneGoesOn();
            List<JsonNode> found = control.partitions();
            if (found.size() >= PARTITIONS) {
                return kills;
            }
            JsonNode largest = found.stream().max(Comparator.comparingInt(one -> one.get("documents").asInt())).orElseThrow();
            if (largest.get("documents").asInt() < SPLIT_FROM) {
                continue;
            }
            var splitting = CompletableFuture.supplyAsync(() -> control.split(largest.get("id").asText()));
            if (kills == 1 && found.size() >= 6) {
                // In the middle of a split; it may have happened or not.
                walkers.crash();
                splitting.handle((children, error) -> null).join();
                kills++;
                continue;
            }
            assertEquals(2, splitting.join().size());
            if (kills == 0 && found.size() >= 3) {
                walkers.crash();
                kills++;
            }
        }
        return fail("the splits take too long");
    }

    /** The journal, the items, their number and the change feed agree. */
    private static void check(Walkers walkers, CosmosContainer container, Walkers.Work follow) {
        Map<String, Integer> values = new HashMap<>();
        container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), JsonNode.class)
                .forEach(item -> values.put(item.get("id").asText(), item.get("value").asInt()));
        var count = container.queryItems("SELECT VALUE COUNT(1) FROM c", new CosmosQueryRequestOptions(), Integer.class);
        assertEquals(List.of(values.size()), count.stream().toList());
        values.forEach((id, value) -> {
            Walkers.Entry entry = walkers.journal.get(id);
            assertNotNull(entry, id);
            assertTrue(value == entry.acknowledged || entry.uncertain.contains(value), () -> id + " is " + value);
            var read = container.readItem(id, new PartitionKey(entry.key), JsonNode.class).getItem();
            assertEquals(value, read.get("value").asInt());
        });
        walkers.journal.forEach((id, entry) -> assertTrue(
                values.getOrDefault(id, 0) >= entry.acknowledged,
                () -> id + " is " + values.get(id) + ", not " + entry.acknowledged));
        Walkers.Caller caller = walkers.new Caller();
        eventually(() -> {
            follow.run(caller);
            return values.entrySet().stream().allMatch(item -> {
                List<Integer> seen = walkers.seen.getOrDefault(item.getKey(), List.of());
                return !seen.isEmpty() && seen.get(seen.size() - 1).equals(item.getValue());
            });
        });
        walkers.seen.forEach((id, seen) -> {
            for (int index = 1; index < seen.size(); index++) {
                int last = seen.get(index - 1);
                int value = seen.get(index);
                boolean isRepeated = last == value && walkers.journal.get(id).uncertain.contains(value);
                assertTrue(last < value || isRepeated, () -> "the feed of " + id + " is out of order or repeats: " + seen);
            }
        });
    }
}

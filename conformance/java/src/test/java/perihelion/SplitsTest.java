package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static perihelion.support.Check.eventually;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.models.ChangeFeedPolicy;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
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
 * A container that splits while clients write, delete, query and follow both change feeds, and the server is killed
 * twice. No error but that of a broken connection may reach the application, and nothing may be lost or come twice.
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
            client.getDatabase("d").createContainer(new CosmosContainerProperties("c", "/pk").setChangeFeedPolicy(
                    ChangeFeedPolicy.createAllVersionsAndDeletesPolicy(Duration.ofMinutes(10))));
            CosmosContainer container = client.getDatabase("d").getContainer("c");
            Control control = new Control(server, "d", container);
            Walkers.Work every = walkers.versionFollower();
            every.run(walkers.new Caller()); // before the first write
            walkers.start(every);
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
            checkVersions(walkers, every);
            assertTrue(control.partitions().stream().allMatch(partition -> !partition.get("parents").isEmpty()));
        }
    }

    /** Splits the largest partition again and again, and kills the server twice, once while a split is unfinished. */
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
            if (kills == 1 && found.size() >= 4) {
                kills += crashIn(splitting, walkers, control);
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

    /** Kills the server as soon as a split is seen to be at work; answers how often it was killed. */
    private static int crashIn(CompletableFuture<JsonNode> splitting, Walkers walkers, Control control) {
        boolean isUnfinished = false;
        while (!isUnfinished && !splitting.isDone()) {
            isUnfinished = isUnfinished(control);
        }
        // The split itself may be too short to be seen; its children go on sharing rows for a while.
        isUnfinished |= isUnfinished(control);
        if (isUnfinished) {
            walkers.crash();
        }
        splitting.handle((children, error) -> null).join();
        return isUnfinished ? 1 : 0;
    }

    private static boolean isUnfinished(Control control) {
        return control.partitions().stream()
                .anyMatch(partition -> List.of("splitting", "separating").contains(partition.get("state").asText()));
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
            assertTrue(entry.mayBe(value) && !entry.deletes.contains(value), () -> id + " is " + value);
            var read = container.readItem(id, new PartitionKey(entry.key), JsonNode.class).getItem();
            assertEquals(value, read.get("value").asInt());
        });
        walkers.journal.forEach((id, entry) ->
                assertTrue(values.containsKey(id) || entry.mayBeAbsent(), () -> id + " is lost"));
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

    /** The feed of all versions has what the journal has, in its order; only what met an outage may be absent or twice. */
    private static void checkVersions(Walkers walkers, Walkers.Work every) {
        Walkers.Caller caller = walkers.new Caller();
        eventually(() -> {
            every.run(caller);
            return walkers.journal.entrySet().stream()
                    .allMatch(item -> isComplete(item.getValue(), walkers.versions.getOrDefault(item.getKey(), List.of())));
        });
        assertTrue(walkers.journal.keySet().containsAll(walkers.versions.keySet()));
        assertTrue(walkers.journal.values().stream().anyMatch(entry -> !entry.uncertain.containsAll(entry.deletes)));
        walkers.versions.forEach((id, versions) -> {
            Walkers.Entry entry = walkers.journal.get(id);
            int place = 0;
            int last = 0;
            for (Walkers.Version version : versions) {
                String expected = version.value() == 0 ? "delete" : last == 0 ? "create" : "replace";
                assertEquals(expected + " after " + last, version.operation() + " after " + version.before(), id);
                last = version.value();
                place = placeAfter(entry, place, version.value(), id + ": " + versions);
            }
            List<Integer> rest = entry.operations.subList(place, entry.operations.size());
            assertTrue(entry.uncertain.containsAll(rest), () -> "the feed lacks " + rest + " of " + id + ": " + versions);
        });
    }

    /** The place in the journal after the operation that a version shows: that with its value, or a delete. */
    private static int placeAfter(Walkers.Entry entry, int from, int value, String about) {
        for (int place = from; place < entry.operations.size(); place++) {
            int count = entry.operations.get(place);
            if (count == value) {
                // An upsert that the SDK has sent twice may come again.
                return entry.uncertain.contains(count) ? place : place + 1;
            }
            if (value == 0 && entry.deletes.contains(count)) {
                return place + 1;
            }
            assertTrue(entry.uncertain.contains(count), () -> "the feed lacks " + count + " of " + about);
        }
        return fail("the feed has " + value + " too often or too late: " + about);
    }

    /** Whether the last certain operation is among these versions. */
    private static boolean isComplete(Walkers.Entry entry, List<Walkers.Version> versions) {
        List<Integer> certain =
                entry.operations.stream().filter(count -> !entry.uncertain.contains(count)).toList();
        if (certain.isEmpty()) {
            return true;
        }
        int last = certain.get(certain.size() - 1);
        if (!entry.deletes.contains(last)) {
            return versions.stream().anyMatch(version -> version.value() == last);
        }
        long deletes = certain.stream().filter(entry.deletes::contains).count();
        return versions.stream().filter(version -> version.value() == 0).count() >= deletes;
    }
}

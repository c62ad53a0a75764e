package perihelion.support;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.eventually;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.FeedResponse;
import com.azure.cosmos.models.PartitionKey;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Clients that work on one container until they are stopped, while it splits and the server is killed, and what they
 * have seen.
 */
public final class Walkers implements AutoCloseable {
    private static final int KEYS = 24;
    /** Bounds the items of a writer; later writes replace them. */
    private static final int ITEMS_MAX = 300;
    private static final int PAGES_MAX = 1000;
    private static final int SECONDS_MAX = 60;
    /** Every so many calls of a writer delete one of its items, if it is there. */
    private static final int DELETE_EVERY = 5;
    private static final String QUERY = "SELECT c.id, c.number FROM c ORDER BY c.number";

    /**
     * What its writer knows of an item. An operation is known by the count of its writer, which an upsert also writes.
     * Uncertain are those that met an outage: they may have had no effect, and an upsert two by a retry of the SDK.
     */
    public static final class Entry {
        public final String key;
        public volatile int acknowledged = 0;
        public final Set<Integer> uncertain = ConcurrentHashMap.newKeySet();
        public final Set<Integer> deletes = ConcurrentHashMap.newKeySet();
        public final List<Integer> operations = new CopyOnWriteArrayList<>();
        private volatile int deletesBegun = 0;
        private volatile boolean isBeingDeleted = false;

        private Entry(String key) {
            this.key = key;
        }

        private void beginDelete(int count) {
            deletes.add(count);
            isBeingDeleted = true;
            deletesBegun++; // only its writer does so
        }

        private void add(int count, boolean metOutage, boolean isAcknowledged) {
            if (metOutage) {
                uncertain.add(count);
            }
            if (isAcknowledged) {
                acknowledged = count;
            }
            operations.add(count);
            isBeingDeleted = false;
        }

        /** Whether it is there for certain, as long as no delete begins. */
        private boolean isPresent() {
            int last = operations.isEmpty() ? 0 : operations.get(operations.size() - 1);
            return last > 0 && last == acknowledged && !deletes.contains(last) && !isBeingDeleted;
        }

        /** Whether this may be the last operation that had an effect. */
        public boolean mayBe(int count) {
            return count == acknowledged || count > acknowledged && uncertain.contains(count);
        }

        public boolean mayBeAbsent() {
            return acknowledged == 0 || deletes.stream().anyMatch(this::mayBe);
        }
    }

    /** A row of the feed of all versions: the operation, and the values after and before it, 0 if there is none. */
    public record Version(String operation, int value, int before) {}

    /** What a client does again and again. */
    public interface Work {
        void run(Caller caller);
    }

    /** The answer of a call, unless the connection broke in an outage, and whether it met one. */
    private record Answer<T>(Optional<T> result, boolean metOutage) {}

    private final Server server;
    /** Counts the beginnings and ends of outages: odd while the server is down. */
    private final AtomicInteger outages = new AtomicInteger();
    /** What a client reports to have reached with each call that succeeds. */
    private final AtomicLong round = new AtomicLong();
    private final List<Caller> callers = new ArrayList<>();
    private final List<CosmosClient> clients = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    private volatile boolean isStopped = false;

    public final Map<String, Entry> journal = new ConcurrentHashMap<>();
    /** The values of each item in the order of the change feed. */
    public final Map<String, List<Integer>> seen = new ConcurrentHashMap<>();
    /** The versions of each item in the order of the feed of all versions. */
    public final Map<String, List<Version>> versions = new ConcurrentHashMap<>();
    public final AtomicInteger drained = new AtomicInteger();

    public Walkers(Server server) {
        this.server = server;
    }

    /** The container as a client of its own sees it. */
    public CosmosContainer container() {
        CosmosClient client = server.client(Scheme.HTTP);
        clients.add(client);
        return client.getDatabase("d").getContainer("c");
    }

    /** Makes the calls of one client. */
    public final class Caller {
        private final AtomicLong reached = new AtomicLong();

        private <T> Answer<T> call(Supplier<T> call) {
            long begun = round.get();
            int before = outages.get();
            try {
                T result = call.get();
                reached.set(begun);
                return new Answer<>(Optional.of(result), isOutage(before));
            } catch (RuntimeException error) {
                if (!isOutage(before) || !isBroken(error)) {
                    throw error;
                }
                return new Answer<>(Optional.empty(), true);
            }
        }

        private boolean isOutage(int before) {
            return before % 2 == 1 || outages.get() != before;
        }

        /** Whether the connection broke: an error that the server answered has no such cause. */
        private boolean isBroken(RuntimeException error) {
            return !(error instanceof CosmosException refusal) || refusal.getCause() instanceof java.io.IOException;
        }
    }

    /** Runs a client until it is stopped. */
    public void start(Work work) {
        Caller caller = new Caller();
        callers.add(caller);
        Thread thread = new Thread(() -> {
            try {
                while (!isStopped) {
                    work.run(caller);
                }
            } catch (Throwable error) {
                failures.add(error);
            }
        });
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** Stops all clients at the end of what they do. */
    public void stop() throws InterruptedException {
        isStopped = true;
        for (Thread thread : threads) {
            thread.join(SECONDS_MAX * 1000L);
            assertFalse(thread.isAlive(), "a client hangs");
        }
        noFailure();
    }

    @Override
    public void close() {
        isStopped = true;
        clients.forEach(CosmosClient::close);
    }

    private boolean noFailure() {
        if (!failures.isEmpty()) {
            throw new AssertionError(failures.peek());
        }
        return true;
    }

    /** Waits until each client has succeeded with a call that it began after now. */
    public void everyoneGoesOn() {
        long wanted = round.incrementAndGet();
        eventually(SECONDS_MAX, () -> noFailure() && callers.stream().allMatch(caller -> caller.reached.get() >= wanted));
    }

    /** Kills the server and starts it again; the outage ends when each client has been served. */
    public void crash() {
        outages.incrementAndGet();
        server.kill();
        server.start();
        everyoneGoesOn();
        outages.incrementAndGet();
    }

    /** Creates items and replaces some of them. The number of an item never changes, its value grows with each write. */
    public Work writer(int index) {
        CosmosContainer container = container();
        ObjectMapper mapper = new ObjectMapper();
        AtomicInteger count = new AtomicInteger();
        return caller -> {
            int value = count.incrementAndGet();
            boolean deletes = value % DELETE_EVERY == 0;
            int number = (deletes ? value / 2 : value % 3 == 0 ? value / 3 : value) % ITEMS_MAX;
            String id = index + "-" + number;
            String key = "k" + number % KEYS;
            Entry entry = journal.computeIfAbsent(id, none -> new Entry(key));
            Answer<?> answer;
            if (deletes && entry.isPresent()) {
                entry.beginDelete(value);
                answer = delete(caller, container, id, key);
            } else {
                ObjectNode item = mapper.createObjectNode()
                        .put("id", id)
                        .put("pk", key)
                        .put("number", number)
                        .put("value", value)
                        .put("padding", "x".repeat(200));
                answer = caller.call(() -> container.upsertItem(item));
            }
            entry.add(value, answer.metOutage(), answer.result().isPresent());
        };
    }

    /** Deletes an item; without a result also if it is not there, which only a retry of the SDK may find. */
    private Answer<?> delete(Caller caller, CosmosContainer container, String id, String key) {
        int before = outages.get();
        try {
            return caller.call(() -> container.deleteItem(id, new PartitionKey(key), new CosmosItemRequestOptions()));
        } catch (CosmosException refusal) {
            if (refusal.getStatusCode() != 404 || !caller.isOutage(before)) {
                throw refusal;
            }
            return new Answer<>(Optional.empty(), true);
        }
    }

    /** Drains an ordered query page by page, each page from the continuation of the last one, over splits and outages. */
    public Work querier() {
        CosmosContainer container = container();
        return caller -> {
            Drained result = new Drained();
            String[] continuation = {null};
            for (int page = 0; page < PAGES_MAX; page++) {
                var answer = caller.call(() -> container
                        .queryItems(QUERY, new CosmosQueryRequestOptions(), JsonNode.class)
                        .iterableByPage(continuation[0], 50)
                        .iterator()
                        .next());
                if (answer.result().isEmpty()) {
                    continue; // from the same continuation
                }
                result.add(answer.result().get());
                continuation[0] = answer.result().get().getContinuationToken();
                if (continuation[0] == null) {
                    result.end();
                    return;
                }
            }
            throw new AssertionError("a query does not end");
        };
    }

    /** Drains an ordered query with one iterator, over splits; after an outage it begins anew. */
    public Work lister() {
        CosmosContainer container = container();
        return caller -> {
            Drained result = new Drained();
            var options = new CosmosQueryRequestOptions().setMaxDegreeOfParallelism(4);
            var pages = container.queryItems(QUERY, options, JsonNode.class).iterableByPage(50).iterator();
            while (true) {
                var answer = caller.call(() -> pages.hasNext() ? Optional.of(pages.next()) : Optional.<FeedResponse<JsonNode>>empty());
                if (answer.result().isEmpty()) {
                    return;
                }
                if (answer.result().get().isEmpty()) {
                    result.end();
                    return;
                }
                result.add(answer.result().get().get());
            }
        };
    }

    /** Reads a page of the change feed. */
    public Work follower() {
        var start = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        return follower(start, options -> {}, item -> seen.computeIfAbsent(
                        item.get("id").asText(), none -> new CopyOnWriteArrayList<>())
                .add(item.get("value").asInt()));
    }

    /** Reads a page of all versions and deletes, from now on. */
    public Work versionFollower() {
        var start = CosmosChangeFeedRequestOptions.createForProcessingFromNow(FeedRange.forFullRange());
        return follower(start, CosmosChangeFeedRequestOptions::allVersionsAndDeletes, row -> {
            JsonNode current = row.at("/current/id").isMissingNode() ? row.at("/previous") : row.at("/current");
            versions.computeIfAbsent(current.get("id").asText(), none -> new CopyOnWriteArrayList<>())
                    .add(new Version(
                            row.at("/metadata/operationType").asText(),
                            row.at("/current/value").asInt(),
                            row.at("/previous/value").asInt()));
        });
    }

    private Work follower(
            CosmosChangeFeedRequestOptions start,
            Consumer<CosmosChangeFeedRequestOptions> mode,
            Consumer<JsonNode> see) {
        CosmosContainer container = container();
        String[] continuation = {null};
        return caller -> {
            var options = continuation[0] == null
                    ? start
                    : CosmosChangeFeedRequestOptions.createForProcessingFromContinuation(continuation[0]);
            mode.accept(options);
            var answer = caller.call(() -> container
                    .queryChangeFeed(options.setMaxItemCount(100), JsonNode.class)
                    .iterableByPage()
                    .iterator()
                    .next());
            answer.result().ifPresent(page -> {
                page.getResults().forEach(see);
                continuation[0] = page.getContinuationToken();
            });
        };
    }

    /** The rows of an ordered query: what was there for certain before it and was not deleted since is there, once. */
    private final class Drained {
        private final Map<String, Integer> deletes = new HashMap<>();
        private final Set<String> missing = new HashSet<>();
        private final Set<String> met = new HashSet<>();
        private int last = -1;

        Drained() {
            journal.forEach((id, entry) -> {
                deletes.put(id, entry.deletesBegun);
                if (entry.isPresent()) {
                    missing.add(id);
                }
            });
        }

        void add(FeedResponse<JsonNode> page) {
            for (JsonNode row : page.getResults()) {
                String id = row.get("id").asText();
                int number = row.get("number").asInt();
                // One that was deleted meanwhile and written again is another item.
                boolean isFirst = met.add(id) || !isUntouched(id);
                assertTrue(isFirst && number >= last, () -> "a query has " + id + " twice or out of order, after " + last);
                last = number;
            }
        }

        void end() {
            missing.removeIf(id -> met.contains(id) || !isUntouched(id));
            assertTrue(missing.isEmpty(), () -> "a query lacks " + missing);
            drained.incrementAndGet();
        }

        private boolean isUntouched(String id) {
            return deletes.getOrDefault(id, 0) == journal.get(id).deletesBegun;
        }
    }
}

package perihelion.support;

import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.ChangeFeedProcessorItem;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * A host of the change feed processor as a program of its own, so that it can be killed. It prints one line for each
 * change that it gets. The rest of this class starts it and reads its lines.
 */
public final class ProcessorHost implements AutoCloseable {
    /** The kinds of processor that the SDK has. */
    public enum Kind { CHANGES, LATEST_VERSIONS, ALL_VERSIONS }

    private final Process process;
    private final Queue<String> lines = new ConcurrentLinkedQueue<>();

    /** Starts a host. */
    public ProcessorHost(String endpoint, Kind kind, String database, String feed, String leases, String name) {
        // The class path of tests is in this property; the usual one names a jar that only Surefire needs.
        String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        String plain = "-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true";
        List<String> command = List.of(
                java, plain, "-cp", classes, ProcessorHost.class.getName(), endpoint, kind.name(), database, feed, leases,
                name);
        try {
            process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Thread reader = new Thread(() -> {
            try (BufferedReader output = process.inputReader()) {
                output.lines().forEach(lines::add);
            } catch (IOException | UncheckedIOException error) {
                lines.add("ended");
            }
        });
        reader.setDaemon(true);
        reader.start();
    }

    /** The changes it got so far: an operation and an id each. */
    public List<String> changes() {
        return lines.stream().filter(line -> line.startsWith("got ")).map(line -> line.substring(4)).toList();
    }

    public boolean isReady() {
        return lines.contains("ready");
    }

    /** Ends it as a crash would: it gives no lease back. */
    public void kill() {
        process.destroyForcibly();
        process.onExit().join();
    }

    @Override
    public void close() {
        kill();
    }

    public static void main(String[] arguments) throws InterruptedException {
        CosmosAsyncClient client = new CosmosClientBuilder()
                .endpoint(arguments[0])
                .key(Server.KEY)
                .gatewayMode()
                .contentResponseOnWriteEnabled(true)
                .buildAsyncClient();
        var database = client.getDatabase(arguments[2]);
        var options = new ChangeFeedProcessorOptions()
                .setFeedPollDelay(Duration.ofMillis(100))
                .setLeaseAcquireInterval(Duration.ofMillis(500))
                .setLeaseRenewInterval(Duration.ofMillis(500))
                .setLeaseExpirationInterval(Duration.ofSeconds(3))
                .setMaxItemCount(5);
        var builder = new ChangeFeedProcessorBuilder()
                .hostName(arguments[5])
                .feedContainer(database.getContainer(arguments[3]))
                .leaseContainer(database.getContainer(arguments[4]));
        switch (Kind.valueOf(arguments[1])) {
            case CHANGES -> builder.options(options.setStartFromBeginning(true)).handleChanges(ProcessorHost::print);
            case LATEST_VERSIONS -> builder
                    .options(options.setStartFromBeginning(true))
                    .handleLatestVersionChanges(ProcessorHost::printItems);
            case ALL_VERSIONS -> builder.options(options).handleAllVersionsAndDeletesChanges(ProcessorHost::printItems);
        }
        ChangeFeedProcessor processor = builder.buildChangeFeedProcessor();
        processor.start().block();
        System.out.println("ready");
        Thread.currentThread().join();
    }

    private static void print(List<JsonNode> items) {
        items.forEach(item -> System.out.println("got " + item.get("id").asText()));
    }

    private static void printItems(List<ChangeFeedProcessorItem> items) {
        for (ChangeFeedProcessorItem item : items) {
            boolean isRemoved = item.getCurrent() == null || !item.getCurrent().has("id");
            JsonNode version = isRemoved ? item.getPrevious() : item.getCurrent();
            System.out.println("got " + (isRemoved ? "-" : "") + version.get("id").asText());
        }
    }
}

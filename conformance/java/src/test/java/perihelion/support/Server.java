package perihelion.support;

import com.azure.cosmos.CosmosClient;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.GatewayConnectionConfig;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The server under test as a child process: started, stopped in order, killed, started again on the same folder.
 * The port is chosen at the first start and kept at later ones.
 */
public final class Server implements AutoCloseable {
    public static final String KEY =
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    private static final long READY_SECONDS_MAX = 30;
    private static final long STOP_SECONDS_MAX = 20;

    private final Path folder;
    private final String mode;
    private final List<String> flags;
    private int port = 0;
    private int tablePort = 0;
    private final StringBuffer screen = new StringBuffer();
    private Process process;

    private Server(Path folder, String mode, List<String> flags) {
        this.folder = folder;
        this.mode = mode;
        this.flags = flags;
    }

    /** A server with an empty data folder that nobody else uses. */
    public static Server own() {
        return own("dev");
    }

    /** The same in a mode of the program, with more flags. */
    public static Server own(String mode, String... flags) {
        try {
            Server server = new Server(Files.createTempDirectory("conformance-"), mode, List.of(flags));
            server.start();
            return server;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static final class Shared {
        static final Server SERVER = own();

        static {
            Runtime.getRuntime().addShutdownHook(new Thread(SERVER::close));
        }
    }

    /** The server of all tests that neither stop it nor count what is in it; ends with the program. */
    public static Server shared() {
        return Shared.SERVER;
    }

    public void start() {
        Path log = folder.resolve("log");
        List<String> command = new ArrayList<>(List.of(program(), mode, "--data", data(), "--nosql", "127.0.0.1:" + port));
        command.addAll(flags);
        try {
            process = new ProcessBuilder(command)
                    .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
                    .start();
            String ready = readyLine(process.inputReader()).get(READY_SECONDS_MAX, TimeUnit.SECONDS);
            port = port(ready, "nosql").orElseThrow();
            tablePort = port(ready, "table").orElse(0);
            Trust.add(new URI("http://127.0.0.1:" + port + "/_explorer/emulator.pem"));
        } catch (IOException | ExecutionException | TimeoutException | InterruptedException error) {
            throw new IllegalStateException("the server is not ready\n" + errors(), error);
        } catch (GeneralSecurityException | java.net.URISyntaxException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The program to test: the release build, or what the environment names. */
    private static String program() {
        String named = System.getenv("PERIHELION_BIN");
        Path path = named == null || named.isEmpty()
                ? Path.of("../../target/release/perihelion").toAbsolutePath().normalize()
                : Path.of(named);
        if (!Files.exists(path)) {
            throw new IllegalStateException(
                    "no server at " + path + ": run `cargo build --release -p perihelion` first");
        }
        return path.toString();
    }

    private String data() {
        return folder.resolve("data").toString();
    }

    /** Does something with the account's keys, as an operator would, and answers what the program printed. */
    public String keys(String verb, String name) {
        try {
            Process process = new ProcessBuilder(program(), "keys", verb, name, "--data", data())
                    .redirectErrorStream(true)
                    .start();
            String printed = new String(process.getInputStream().readAllBytes()).strip();
            if (process.waitFor() != 0) {
                throw new IllegalStateException(printed);
            }
            return printed;
        } catch (IOException | InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Reads lines until the one that says that requests are served, and goes on reading so that the pipe never fills. */
    private CompletableFuture<String> readyLine(BufferedReader output) {
        CompletableFuture<String> ready = new CompletableFuture<>();
        Thread reader = new Thread(() -> {
            try (output) {
                for (String line = output.readLine(); line != null; line = output.readLine()) {
                    screen.append(line).append('\n');
                    if (line.startsWith("ready nosql=")) {
                        ready.complete(line);
                    }
                }
            } catch (IOException error) {
                ready.completeExceptionally(error);
            }
            ready.completeExceptionally(new IllegalStateException("it ended"));
        });
        reader.setDaemon(true);
        reader.start();
        return ready;
    }

    /** The port of an API in the ready line. */
    private static OptionalInt port(String ready, String api) {
        Matcher found = Pattern.compile(" " + api + "=\\S+?:(\\d+)\\b").matcher(ready);
        return found.find() ? OptionalInt.of(Integer.parseInt(found.group(1))) : OptionalInt.empty();
    }

    /** Asks it to end, as an operator would, and answers its exit code. */
    public int stop() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_SECONDS_MAX, TimeUnit.SECONDS)) {
                throw new IllegalStateException("it does not stop\n" + errors());
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return process.exitValue();
    }

    /** Ends it as a crash would: no last words, no flush. */
    public void kill() {
        process.destroyForcibly();
        process.onExit().join();
    }

    @Override
    public void close() {
        kill();
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    public String endpoint(Scheme scheme) {
        return scheme.text() + "://127.0.0.1:" + port + "/";
    }

    /** The port, for requests by hand. */
    public int port() {
        return port;
    }

    /** What it has printed. */
    public String screen() {
        return screen.toString();
    }

    /** The port of the Table API, if a flag turned it on. */
    public int tablePort() {
        return tablePort;
    }

    public CosmosClient client(Scheme scheme) {
        return builder(scheme).buildClient();
    }

    /** A client in gateway mode that asks for the written item; over TLS it trusts the authorities of the servers. */
    public CosmosClientBuilder builder(Scheme scheme) {
        return new CosmosClientBuilder()
                .endpoint(endpoint(scheme))
                .key(KEY)
                .gatewayMode(new GatewayConnectionConfig())
                .contentResponseOnWriteEnabled(true);
    }

    private String errors() {
        try {
            String text = Files.readString(folder.resolve("log"));
            return text.substring(Math.max(0, text.length() - 4000));
        } catch (IOException error) {
            return "no log: " + error;
        }
    }

    /**
     * Java's default trust store, which is all that the SDK asks. It holds the authorities of all servers so far, since
     * a test may talk to several. Each change is a new file: the old one may be remembered by its name.
     */
    private static final class Trust {
        private static final KeyStore AUTHORITIES = empty();
        private static final String PASSWORD = "changeit";
        private static int version = 0;

        static synchronized void add(URI certificate) throws IOException, GeneralSecurityException {
            try (InputStream pem = certificate.toURL().openStream()) {
                var authority = CertificateFactory.getInstance("X.509").generateCertificate(pem);
                AUTHORITIES.setCertificateEntry("authority-" + version, authority);
            }
            Path file = Files.createTempFile("conformance-" + version++, ".p12");
            file.toFile().deleteOnExit();
            try (var out = Files.newOutputStream(file)) {
                AUTHORITIES.store(out, PASSWORD.toCharArray());
            }
            System.setProperty("javax.net.ssl.trustStore", file.toString());
            System.setProperty("javax.net.ssl.trustStorePassword", PASSWORD);
        }

        private static KeyStore empty() {
            try {
                KeyStore store = KeyStore.getInstance("PKCS12");
                store.load(null, null);
                return store;
            } catch (IOException | GeneralSecurityException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}

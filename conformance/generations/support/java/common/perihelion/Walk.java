package perihelion;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The walk-through of a client: its data and expected answers, and the count of checks that passed. Knows nothing of
 * any SDK. The first wrong answer ends the program.
 */
public final class Walk {
    public static final String KEY =
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    public static final ObjectMapper MAPPER = new ObjectMapper();
    public static final ObjectNode DATA = read();
    /** More pages than any correct answer has; a continuation that leads nowhere must not run for ever. */
    public static final int PAGES_MAX = 50;
    private static final Set<String> SYSTEM = Set.of("_rid", "_self", "_etag", "_ts", "_attachments", "_lsn");

    private static final Pattern PINNED_VERSION = Pattern.compile("<client.version>(.*)</client.version>");

    private static int passed = 0;

    private Walk() {
    }

    /** A walk-through, which may throw what its SDK throws. */
    public interface Through {
        void run() throws Exception;
    }

    private static ObjectNode read() {
        try {
            return (ObjectNode) MAPPER.readTree(Path.of("../walk.json").toFile());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The version of the client that this folder pins. */
    public static String version() {
        try {
            Matcher pinned = PINNED_VERSION.matcher(Files.readString(Path.of("pom.xml")));
            if (!pinned.find()) {
                throw new IllegalStateException("pom.xml pins no client");
            }
            return pinned.group(1);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The address of the server over TLS. The older clients know no other. */
    public static String endpoint() {
        return System.getenv("PERIHELION_TLS_ENDPOINT");
    }

    /** Names the client, runs the walk-through and ends the program. An error that no check expects is a failed one. */
    public static void through(String client, String protocol, Through walk) {
        ObjectNode line = MAPPER.createObjectNode();
        line.put("client", client).put("version", version()).put("language", "Java").put("protocol", protocol);
        System.out.println("client " + line);
        try {
            walk.run();
        } catch (Throwable error) {
            error.printStackTrace();
            System.out.println("FAILED after " + passed + " checks: " + error.toString().replaceAll("\\s+", " "));
            finish(1);
        }
        finish(0);
    }

    /** Counts a right answer; a wrong one ends the program. */
    public static void check(String name, Object actual, Object expected) {
        JsonNode found = MAPPER.valueToTree(actual);
        JsonNode wanted = MAPPER.valueToTree(expected);
        if (!found.equals(NUMBERS_BY_VALUE, wanted)) {
            System.out.println("FAILED " + name + ": expected " + wanted + ", got " + found);
            finish(1);
        }
        passed += 1;
        System.out.println("ok " + name);
    }

    /** A call that must fail with a status. {@code statusOf} reads it from the SDK's error and gives 0 for others. */
    public static void refused(String name, int status, ToIntFunction<Throwable> statusOf, Through call) {
        String outcome;
        try {
            call.run();
            outcome = "no error";
        } catch (Exception error) {
            int found = statusOf.applyAsInt(error);
            outcome = found == 0 ? error.toString() : "status " + found;
        }
        check(name, outcome, "status " + status);
    }

    /** Rows of a query or a feed whose order is not promised. */
    public static void checkInAnyOrder(String name, List<? extends JsonNode> actual, JsonNode expected) {
        check(name, sorted(actual), sorted(list(expected)));
    }

    /** The rows of a query of the data. */
    public static void checkQuery(JsonNode query, List<? extends JsonNode> actual) {
        checkRows(query.get("name").asText(), actual, query);
    }

    /** Pages of a bounded size that give every row once. Empty pages are allowed. */
    public static void checkPages(String name, List<? extends List<? extends JsonNode>> pages, JsonNode wanted) {
        int size = wanted.get("size").asInt();
        List<Integer> sizes = pages.stream().map(List::size).filter(count -> count > 0).toList();
        if (sizes.size() < 2 || sizes.stream().anyMatch(count -> count > size)) {
            check(name + ": sizes", sizes, "several of at most " + size + " rows");
        }
        List<JsonNode> rows = new ArrayList<>();
        pages.forEach(rows::addAll);
        checkRows(name, rows, wanted);
    }

    private static void checkRows(String name, List<? extends JsonNode> actual, JsonNode wanted) {
        if (wanted.get("isOrdered").asBoolean()) {
            check(name, actual, wanted.get("expected"));
        } else {
            checkInAnyOrder(name, actual, wanted.get("expected"));
        }
    }

    /** The item without system properties. */
    public static JsonNode plain(JsonNode item) {
        ObjectNode copy = item.deepCopy();
        copy.remove(SYSTEM);
        return copy;
    }

    public static List<JsonNode> list(JsonNode array) {
        List<JsonNode> rows = new ArrayList<>();
        array.forEach(rows::add);
        return rows;
    }

    public static ObjectNode data(String name) {
        return (ObjectNode) DATA.get(name);
    }

    public static List<JsonNode> documents() {
        return list((ArrayNode) DATA.get("documents"));
    }

    public static String text(JsonNode node, String name) {
        return node.get(name).asText();
    }

    private static List<JsonNode> sorted(List<? extends JsonNode> rows) {
        List<JsonNode> sorted = new ArrayList<>(rows);
        sorted.sort(Comparator.comparing(row -> row.has("id") ? text(row, "id") : row.asText()));
        return sorted;
    }

    /** SDKs differ in the types of numbers: 3 is 3.0. */
    private static final Comparator<JsonNode> NUMBERS_BY_VALUE = (left, right) -> {
        if (left.isNumber() && right.isNumber()) {
            return Double.compare(left.doubleValue(), right.doubleValue());
        }
        return left.equals(right) ? 0 : 1;
    };

    private static void finish(int failed) {
        System.out.println(passed + " passed, " + failed + " failed");
        System.out.flush();
        // Not a return: threads that a client left running must not keep the program.
        Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
    }
}

package perihelion.support;

import com.azure.cosmos.CosmosContainer;
import com.azure.cosmos.CosmosDatabase;
import com.azure.cosmos.models.CosmosContainerProperties;
import com.azure.cosmos.models.PartitionKeyDefinition;
import com.azure.cosmos.models.PartitionKeyDefinitionVersion;
import com.azure.cosmos.models.PartitionKind;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.StreamSupport;

/** What the tests of partitioning share: the data of all languages, containers, and which partitions a call reached. */
public final class Partitioning {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    public static final JsonNode WALK = read();

    private Partitioning() {}

    private static JsonNode read() {
        try {
            return MAPPER.readTree(Path.of("../partitioning.json").toFile());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** A new container with these key paths; a throughput of 0 is none. */
    public static CosmosContainer make(CosmosDatabase database, int throughput, String... paths) {
        var definition = new PartitionKeyDefinition()
                .setPaths(List.of(paths))
                .setKind(paths.length > 1 ? PartitionKind.MULTI_HASH : PartitionKind.HASH)
                .setVersion(PartitionKeyDefinitionVersion.V2);
        var properties = new CosmosContainerProperties(Check.unique("c"), definition);
        if (throughput > 0) {
            database.createContainer(properties, ThroughputProperties.createManualThroughput(throughput));
        } else {
            database.createContainer(properties);
        }
        return database.getContainer(properties.getId());
    }

    /** An item of texts. */
    public static ObjectNode item(String id, String... members) {
        ObjectNode item = MAPPER.createObjectNode().put("id", id);
        for (int index = 0; index < members.length; index += 2) {
            item.put(members[index], members[index + 1]);
        }
        return item;
    }

    /** An item with many indexed values, which is expensive to write. */
    public static ObjectNode large(String key, String value, int count) {
        ObjectNode item = item("large", key, value);
        var values = item.putArray("values");
        for (int number = 0; number < count; number++) {
            values.add(number);
        }
        return item;
    }

    /** The partitions that had requests in a call. */
    public static Set<String> reached(Control control, Runnable call) {
        Map<String, Integer> before = control.requestsByPartition();
        call.run();
        Set<String> reached = new TreeSet<>();
        control.requestsByPartition().forEach((id, count) -> {
            if (count > before.getOrDefault(id, 0)) {
                reached.add(id);
            }
        });
        return reached;
    }

    /** Strings as they are and numbers without a fraction that is zero, so that rows can be compared. */
    public static String text(JsonNode row) {
        return row.isNumber() ? row.decimalValue().stripTrailingZeros().toPlainString() : row.asText();
    }

    public static List<String> texts(JsonNode rows) {
        return StreamSupport.stream(rows.spliterator(), false).map(Partitioning::text).toList();
    }
}

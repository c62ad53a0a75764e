package perihelion.table;

import com.azure.data.tables.models.TableEntity;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.UUID;

/** Values of the shared data as the Java client has them. */
final class Values {
    private Values() {}

    static Object toClient(String type, String text) {
        return switch (type) {
            case "Int32" -> Integer.valueOf(text);
            case "Int64" -> Long.valueOf(text);
            case "Double" -> Double.valueOf(text);
            case "Boolean" -> Boolean.valueOf(text);
            case "DateTime" -> OffsetDateTime.parse(text);
            case "Guid" -> UUID.fromString(text);
            case "Binary" -> Base64.getDecoder().decode(text);
            case "String" -> text;
            default -> throw new IllegalArgumentException(type);
        };
    }

    /** A row of the shared data. */
    static TableEntity entity(JsonNode row) {
        TableEntity entity = new TableEntity(row.get("PartitionKey").asText(), row.get("RowKey").asText());
        row.properties().forEach(property -> {
            JsonNode value = property.getValue();
            if (value.isArray()) {
                entity.addProperty(property.getKey(), toClient(value.get(0).asText(), value.get(1).asText()));
            }
        });
        return entity;
    }
}

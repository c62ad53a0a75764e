package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Entities one by one: insert, read, merge, replace, upsert, delete, conditions, keys, and values of every type. */
class EntitiesTest extends TableFixture {
    private static TableEntity entity() {
        return row("a", "b", "kept", 1, "changed", "old");
    }

    private static TableEntity change() {
        return row("a", "b", "changed", "new", "added", true);
    }

    @Test
    void anEntityIsInsertedReadAndDeleted() {
        var inserted = table.createEntityWithResponse(entity(), null, null);
        assertEquals(204, inserted.getStatusCode());
        TableEntity found = table.getEntity("a", "b");
        assertEquals(Map.of("kept", 1, "changed", "old"), plain(found));
        assertTrue(found.getETag().startsWith("W/\"datetime'"), found::getETag);
        assertTrue(Duration.between(found.getTimestamp(), OffsetDateTime.now()).abs().toMinutes() < 5);
        refused(409, "EntityAlreadyExists", () -> table.createEntity(change()));
        assertEquals(found.getETag(), table.getEntity("a", "b").getETag());
        table.deleteEntity("a", "b");
        refused(404, "ResourceNotFound", () -> table.getEntity("a", "b"));
        // The client takes an absent entity for a deleted one.
        assertEquals(404, table.deleteEntityWithResponse(entity(), false, null, null).getStatusCode());
    }

    @Test
    void someProperties() {
        table.createEntity(entity());
        assertEquals(Map.of("kept", 1), plain(table.getEntityWithResponse("a", "b", List.of("kept"), null, null).getValue()));
    }

    @Test
    void mergeKeepsAndReplaceDrops() {
        table.createEntity(entity());
        table.updateEntity(change());
        assertEquals(Map.of("kept", 1, "changed", "new", "added", true), read("a", "b"));
        table.updateEntity(row("a", "b", "only", 2), TableEntityUpdateMode.REPLACE);
        assertEquals(Map.of("only", 2), read("a", "b"));
    }

    @ParameterizedTest
    @EnumSource(TableEntityUpdateMode.class)
    void upsertInsertsThenChanges(TableEntityUpdateMode mode) {
        table.upsertEntityWithResponse(entity(), mode, null, null);
        String first = table.getEntity("a", "b").getETag();
        table.upsertEntityWithResponse(change(), mode, null, null);
        assertNotEquals(first, table.getEntity("a", "b").getETag());
        assertEquals(mode == TableEntityUpdateMode.MERGE, read("a", "b").containsKey("kept"));
        assertEquals("new", read("a", "b").get("changed"));
    }

    @ParameterizedTest
    @EnumSource(TableEntityUpdateMode.class)
    void conditions(TableEntityUpdateMode mode) {
        refused(404, "ResourceNotFound", () -> table.updateEntity(change(), mode));
        table.createEntity(entity());
        TableEntity old = table.getEntity("a", "b");
        old.addProperty("changed", "new");
        table.updateEntityWithResponse(old, mode, true, null, null);
        refused(412, "UpdateConditionNotSatisfied", () -> table.updateEntityWithResponse(old, mode, true, null, null));
        refused(412, "UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(old, true, null, null));
        assertEquals("new", read("a", "b").get("changed"));
        table.deleteEntityWithResponse(table.getEntity("a", "b"), true, null, null);
        assertEquals(List.of(), keys(table.listEntities()));
    }

    @Test
    void everyWriteHasItsOwnTag() {
        Set<String> tags = new HashSet<>();
        for (int index = 0; index < 20; index++) {
            table.upsertEntity(entity());
            tags.add(table.getEntity("a", "b").getETag());
        }
        assertEquals(20, tags.size());
    }

    static Stream<Arguments> keyPairs() {
        return StreamSupport.stream(TableService.DATA.get("keys").spliterator(), false)
                .map(pair -> Arguments.of(pair.get(0).asText(), pair.get(1).asText()));
    }

    @ParameterizedTest
    @MethodSource("keyPairs")
    void keysOfAnyText(String partition, String row) {
        table.createEntity(row(partition, row, "v", 1));
        assertEquals(Map.of("v", 1), read(partition, row));
        String filter = "PartitionKey eq '%s' and RowKey eq '%s'".formatted(partition.replace("'", "''"), row.replace("'", "''"));
        assertEquals(List.of(partition + "/" + row), keys(query(filter)));
        table.updateEntity(row(partition, row, "w", 2));
        table.upsertEntity(row(partition, row, "x", 3));
        var merge = new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, row(partition, row, "y", 4));
        table.submitTransaction(List.of(merge));
        assertEquals(Map.of("v", 1, "w", 2, "x", 3, "y", 4), read(partition, row));
        table.deleteEntity(partition, row);
        assertEquals(List.of(), keys(table.listEntities()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a/b", "a\\b", "a#b", "a?b", "a\tb"})
    void forbiddenKeysAreRefused(String key) {
        String code = TableService.answer("OutOfRangeInput", "InvalidInput");
        refused(400, code, () -> table.createEntity(row(key, "r")));
        refused(400, code, () -> table.createEntity(row("p", key)));
        assertEquals(List.of(), keys(table.listEntities()));
    }

    static Stream<Arguments> values() {
        JsonNode lost = TableService.DATA.get("values_that_azurite_loses");
        return StreamSupport.stream(TableService.DATA.get("values").spliterator(), false)
                .filter(value -> !TableService.IS_AZURITE || StreamSupport.stream(lost.spliterator(), false).noneMatch(value::equals))
                .map(value -> Arguments.of(value.get(0).asText(), value.get(1).asText()));
    }

    @ParameterizedTest
    @MethodSource("values")
    void valuesOfEveryType(String type, String text) {
        Object value = Values.toClient(type, text);
        table.createEntity(row("a", "b", "v", value));
        if (type.equals("Double") && (text.endsWith(".0") || !text.matches(".*\\d.*"))) {
            checkUntyped(text, table.getEntity("a", "b").getProperty("v"));
            return;
        }
        check(value, table.getEntity("a", "b").getProperty("v"));
        // What was read can be written as it is.
        table.updateEntity(table.getEntity("a", "b"), TableEntityUpdateMode.REPLACE);
        check(value, table.listEntities().iterator().next().getProperty("v"));
    }

    /** The client sends doubles without their type: a point must suffice, and those that are no numbers become text. */
    private static void checkUntyped(String text, Object found) {
        if (!text.matches(".*\\d.*")) {
            assertEquals(text, found);
        } else if (!TableService.IS_AZURITE) {
            assertEquals(Double.valueOf(text), found);
        }
    }

    private static void check(Object expected, Object found) {
        if (expected instanceof byte[] bytes) {
            assertArrayEquals(bytes, (byte[]) found);
        } else {
            assertEquals(expected, found);
        }
    }
}

package perihelion.table;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Group transactions: all or nothing, with the index of what failed. */
class TransactionsTest extends TableFixture {
    private static TableTransactionAction action(TableTransactionActionType type, String row, Object... properties) {
        return new TableTransactionAction(type, row("p", row, properties));
    }

    private void failed(String code, int index, TableTransactionAction... actions) {
        var error = assertThrows(TableTransactionFailedException.class, () -> table.submitTransaction(List.of(actions)));
        assertEquals(code, error.getValue().getErrorCode().toString(), error::getMessage);
        assertEquals(index, error.getFailedTransactionActionIndex(), error::getMessage);
    }

    @Test
    void everyOperation() {
        for (String name : List.of("merged", "replaced", "deleted", "upserted")) {
            table.createEntity(row("p", name, "old", 1));
        }
        var result = table.submitTransaction(List.of(
                action(CREATE, "created", "v", 2),
                action(UPDATE_MERGE, "merged", "v", 2),
                action(UPDATE_REPLACE, "replaced", "v", 2),
                action(UPSERT_MERGE, "upserted", "v", 2),
                action(UPSERT_REPLACE, "inserted", "v", 2),
                action(DELETE, "deleted")));
        assertEquals(6, result.getTransactionActionResponses().size());
        result.getTransactionActionResponses().forEach(one -> assertEquals(204, one.getStatusCode()));
        assertEquals(List.of("p/created", "p/inserted", "p/merged", "p/replaced", "p/upserted"), keys(table.listEntities()));
        assertEquals(Map.of("old", 1, "v", 2), read("p", "merged"));
        assertEquals(Map.of("v", 2), read("p", "replaced"));
        assertEquals(Map.of("old", 1, "v", 2), read("p", "upserted"));
    }

    @Test
    void allOrNothing() {
        table.createEntity(row("p", "taken", "v", 1));
        TableEntity old = table.getEntity("p", "taken");
        failed("EntityAlreadyExists", 1, action(CREATE, "a"), action(CREATE, "taken"), action(CREATE, "b"));
        failed("ResourceNotFound", 2, action(CREATE, "a"), action(UPSERT_MERGE, "b"), action(UPDATE_MERGE, "absent"));
        table.upsertEntity(row("p", "taken", "v", 2));
        var stale = new TableTransactionAction(UPDATE_REPLACE, old, true);
        failed("UpdateConditionNotSatisfied", 1, action(CREATE, "a"), stale);
        assertEquals(List.of("p/taken"), keys(table.listEntities()));
        assertEquals(Map.of("v", 2), read("p", "taken"));
        table.submitTransaction(List.of(new TableTransactionAction(UPDATE_REPLACE, table.getEntity("p", "taken"), true)));
    }

    @Test
    void oneRowTwiceIsRefused() {
        // The client refuses it itself.
        assertThrows(RuntimeException.class, () -> table.submitTransaction(List.of(action(UPSERT_MERGE, "a"), action(UPSERT_MERGE, "a"))));
        assertEquals(List.of(), keys(table.listEntities()));
    }

    @Test
    void twoPartitionKeysAreRefused() {
        azuriteLacks("a check of partition keys");
        var other = new TableTransactionAction(CREATE, row("q", "b"));
        assertThrows(RuntimeException.class, () -> table.submitTransaction(List.of(action(CREATE, "a"), other)));
        assertEquals(List.of(), keys(table.listEntities()));
    }

    @Test
    void aHundredOperationsAndNoMore() {
        var actions = IntStream.range(0, 101).mapToObj(index -> action(CREATE, "" + index, "text", "ü\r\n--x")).toList();
        assertThrows(RuntimeException.class, () -> table.submitTransaction(actions));
        assertEquals(List.of(), keys(table.listEntities()));
        table.submitTransaction(actions.subList(0, 100));
        assertEquals(100, keys(table.listEntities()).size());
        assertEquals("ü\r\n--x", read("p", "7").get("text"));
    }
}

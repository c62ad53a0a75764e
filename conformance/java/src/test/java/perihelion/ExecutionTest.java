package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.json;
import static perihelion.support.Check.refused;

import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureResponse;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;

/** Stored procedures, triggers and user-defined functions that are executed: patterns of applications. */
class ExecutionTest extends Fixture {
    private static final PartitionKey KEY = new PartitionKey("k");

    private static String text(String name) {
        try {
            return Files.readString(Path.of("..", "scripts", name + ".js"));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private void procedure(String name) {
        container.getScripts().createStoredProcedure(new CosmosStoredProcedureProperties(name, text(name)));
    }

    private void trigger(String name, TriggerType type, TriggerOperation operation) {
        container.getScripts().createTrigger(new CosmosTriggerProperties(name, text(name))
                .setTriggerType(type)
                .setTriggerOperation(operation));
    }

    private CosmosStoredProcedureResponse run(String name, Object... parameters) {
        var options = new CosmosStoredProcedureRequestOptions().setPartitionKey(KEY).setScriptLoggingEnabled(true);
        return container.getScripts().getStoredProcedure(name).execute(Arrays.asList(parameters), options);
    }

    private void create(Map<String, ?> item) {
        container.createItem(item, KEY, new CosmosItemRequestOptions());
    }

    private List<String> ids() {
        var found = container.queryItems("SELECT * FROM c", new CosmosQueryRequestOptions(), Map.class);
        return found.stream().map(item -> (String) item.get("id")).sorted().toList();
    }

    @Test
    void aBookAndTheCountOfItsAuthor() {
        procedure("insertBook");
        create(Map.of("id", "a", "pk", "k", "type", "author"));
        var inserted = run("insertBook", Map.of("id", "b1", "pk", "k", "type", "book", "authorId", "a"));
        assertEquals(200, inserted.getStatusCode());
        assertEquals("{\"book\":\"b1\",\"countOfBooks\":1}", inserted.getResponseAsString());
        assertTrue(inserted.getScriptLog().contains("author a"), inserted.getScriptLog());
        assertTrue(inserted.getRequestCharge() > 10);
        refused(400, 404, () -> run("insertBook", Map.of("id", "b2", "pk", "k", "authorId", "nobody")));
        refused(400, 409, () -> run("insertBook", Map.of("id", "b1", "pk", "k", "authorId", "a")));
        assertEquals(List.of("a", "b1"), ids());
    }

    @Test
    void triggersRunWithTheirWrite() {
        trigger("countBook", TriggerType.POST, TriggerOperation.CREATE);
        trigger("checkAuthor", TriggerType.PRE, TriggerOperation.ALL);
        create(Map.of("id", "a", "pk", "k", "type", "author"));
        var options = new CosmosItemRequestOptions()
                .setContentResponseOnWriteEnabled(true)
                .setPreTriggerInclude(List.of("checkAuthor"))
                .setPostTriggerInclude(List.of("countBook"));
        Map<?, ?> book = container.createItem(Map.of("id", "b1", "pk", "k", "authorId", "a"), KEY, options).getItem();
        assertEquals(true, book.get("checked"));
        assertEquals(1, container.readItem("a", KEY, Map.class).getItem().get("countOfBooks"));
        refused(400, 409, () -> container.createItem(Map.of("id", "b2", "pk", "k", "authorId", "x"), KEY, options));
        var absent = new CosmosItemRequestOptions().setPreTriggerInclude(List.of("absent"));
        refused(400, 0, () -> container.createItem(Map.of("id", "b3", "pk", "k"), KEY, absent));
        assertEquals(List.of("a", "b1"), ids());
    }

    private static List<Map<String, Object>> items(int from, int count, int base) {
        return IntStream.range(from, from + count)
                .mapToObj(n -> Map.<String, Object>of("id", "i" + n, "pk", "k", "n", base + n))
                .toList();
    }

    private List<Integer> numbers() {
        var found = container.queryItems("SELECT VALUE c.n FROM c", new CosmosQueryRequestOptions(), Integer.class);
        return found.stream().sorted().toList();
    }

    @Test
    void bulkImportUpsertAndDelete() {
        procedure("bulkImport");
        procedure("bulkDelete");
        assertEquals("30", run("bulkImport", items(0, 30, 0), false).getResponseAsString());
        refused(400, 409, () -> run("bulkImport", items(29, 1, 0), false));
        assertEquals("20", run("bulkImport", items(20, 20, 1000), true).getResponseAsString());
        assertEquals(IntStream.concat(IntStream.range(0, 20), IntStream.range(1020, 1040)).boxed().toList(), numbers());
        var deleted = run("bulkDelete", "SELECT * FROM c WHERE c.n >= 10").getResponseAsString();
        assertEquals("{\"deleted\":30,\"continuation\":false}", deleted);
        assertEquals(10, ids().size());
    }

    @Test
    void numbersAndNamesByTriggers() {
        trigger("autoIncrement", TriggerType.PRE, TriggerOperation.CREATE);
        trigger("unique", TriggerType.PRE, TriggerOperation.ALL);
        procedure("nextPage");
        for (int n = 1; n <= 5; n++) {
            var item = Map.of("id", "i" + n, "pk", "k", "name", "n" + n);
            assertEquals(n, container.createItem(item, KEY, before("autoIncrement")).getItem().get("number"));
        }
        var taken = Map.of("id", "other", "pk", "k", "name", "n3");
        refused(400, 409, () -> container.upsertItem(taken, KEY, before("unique")));
        var free = Map.of("id", "other", "pk", "k", "name", "free");
        assertEquals("free", container.upsertItem(free, KEY, before("unique")).getItem().get("name"));
        List<String> found = new ArrayList<>();
        String continuation = null;
        for (int size : new int[] {2, 2, 1}) {
            var query = "SELECT VALUE c.id FROM c WHERE c.number > 0 ORDER BY c.number";
            var page = json(run("nextPage", query, 2, continuation).getResponseAsString());
            assertEquals(size, page.get("items").size());
            page.get("items").forEach(id -> found.add(id.textValue()));
            continuation = page.get("continuation").textValue();
        }
        assertNull(continuation);
        assertEquals(List.of("i1", "i2", "i3", "i4", "i5"), found);
    }

    private static CosmosItemRequestOptions before(String trigger) {
        return new CosmosItemRequestOptions()
                .setContentResponseOnWriteEnabled(true)
                .setPreTriggerInclude(List.of(trigger));
    }

    @Test
    void softDelete() {
        procedure("softDelete");
        create(Map.of("id", "a", "pk", "k"));
        var marked = run("softDelete", "a", 3600).getResponseAsString();
        assertEquals("{\"id\":\"a\",\"isDeleted\":true,\"ttl\":3600}", marked);
        assertEquals(true, container.readItem("a", KEY, Map.class).getItem().get("isDeleted"));
        refused(400, 404, () -> run("softDelete", "absent", 1));
    }

    @Test
    void readingsCountersAndThrows() {
        procedure("setLatestStateAcrossReadings");
        procedure("increment");
        procedure("throwAfterTwo");
        for (int time : new int[] {5, 3, 9}) {
            run("setLatestStateAcrossReadings", Map.of(
                    "id", "r" + time, "pk", "k", "deviceId", "d", "type", "reading", "time", time, "value", "v" + time));
        }
        assertEquals("v9", container.readItem("latest", KEY, Map.class).getItem().get("value"));
        assertEquals("1", run("increment", "counter", "k").getResponseAsString());
        assertEquals("4", run("increment", "counter", "k", 3).getResponseAsString());
        int before = ids().size();
        refused(400, 0, () -> run("throwAfterTwo", "k"));
        assertEquals(before, ids().size());
    }

    @Test
    void functionsInQueries() {
        container.getScripts().createUserDefinedFunction(new CosmosUserDefinedFunctionProperties("tax", text("tax")));
        create(Map.of("id", "1", "pk", "k", "income", 500));
        create(Map.of("id", "2", "pk", "k", "income", 5000));
        var query = "SELECT VALUE udf.tax(c.income) FROM c WHERE udf.tax(c.income) >= 1000";
        var found = container.queryItems(query, new CosmosQueryRequestOptions(), Double.class).stream().toList();
        assertEquals(List.of(1000.0), found);
        refused(400, 0, () -> container
                .queryItems("SELECT VALUE udf.absent(c.id) FROM c", new CosmosQueryRequestOptions(), Object.class)
                .stream()
                .toList());
    }
}

package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
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
import java.util.List;
import java.util.Map;
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
        return container.getScripts().getStoredProcedure(name).execute(List.of(parameters), options);
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

    @Test
    void bulkProceduresGoOnWhereTheyStopped() {
        procedure("bulkImport");
        procedure("bulkDelete");
        List<Map<String, Object>> items = new ArrayList<>();
        for (int n = 0; n < 120; n++) {
            items.add(Map.of("id", "i" + n, "pk", "k", "n", n));
        }
        int done = 0;
        while (done < items.size()) {
            done += Integer.parseInt(run("bulkImport", items.subList(done, items.size()), false).getResponseAsString());
        }
        var deleted = run("bulkDelete", "SELECT * FROM c WHERE c.n >= 20").getResponseAsString();
        assertEquals("{\"deleted\":100,\"continuation\":false}", deleted);
        assertEquals(20, ids().size());
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

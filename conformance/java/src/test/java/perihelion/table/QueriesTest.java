package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Queries: filters of every operator and type, select, pages, order. */
class QueriesTest extends TableFixture {
    private void fill() {
        TableService.DATA.get("rows").forEach(row -> table.createEntity(Values.entity(row)));
    }

    private String found(String filter) {
        return query(filter).stream().map(TableEntity::getRowKey).collect(Collectors.joining());
    }

    @TestFactory
    List<DynamicTest> filters() {
        fill();
        List<DynamicTest> tests = new ArrayList<>();
        for (JsonNode one : TableService.DATA.get("filters")) {
            String documented = one.get("rows").asText();
            String expected = TableService.answer(documented, one.path("azurite").asText(documented));
            String filter = one.get("filter").asText();
            tests.add(DynamicTest.dynamicTest("filter " + filter, () -> assertEquals(expected, found(filter))));
        }
        return tests;
    }

    @Test
    void badFiltersAreRefused() {
        fill();
        List<JsonNode> bad = new ArrayList<>();
        TableService.DATA.get("bad_filters").forEach(bad::add);
        if (!TableService.IS_AZURITE) {
            TableService.DATA.get("bad_filters_that_azurite_takes").forEach(bad::add);
        }
        for (JsonNode filter : bad) {
            int status = statusOf(() -> found(filter.asText()));
            assertTrue(status == 400 || status == 501, filter + " was answered with " + status);
        }
    }

    @Test
    void someProperties() {
        fill();
        var options = new ListEntitiesOptions().setFilter("PartitionKey eq 'p'").setSelect(List.of("RowKey", "small"));
        var found = table.listEntities(options, null, null).stream().map(TableFixture::plain).toList();
        assertEquals(List.of(Map.of("small", 5), Map.of("small", 7), Map.of("small", -3)), found);
    }

    @Test
    void pagesAreInTheOrderOfKeysAndGoOnFromEveryToken() {
        for (String partition : List.of("p2", "p0", "p1")) {
            table.submitTransaction(IntStream.range(0, 9)
                    .mapToObj(index -> new TableTransactionAction(TableTransactionActionType.CREATE, row(partition, "" + index, "n", index)))
                    .toList());
        }
        List<String> everything = keys(table.listEntities());
        assertEquals(27, everything.size());
        assertEquals(everything.stream().sorted().toList(), everything);
        var options = new ListEntitiesOptions().setTop(4);
        List<String> begun = new ArrayList<>();
        for (PagedResponse<TableEntity> page : table.listEntities(options, null, null).iterableByPage()) {
            assertTrue(page.getValue().size() <= 4);
            begun.addAll(keys(page.getValue()));
            if (page.getContinuationToken() == null) {
                break;
            }
            List<String> joined = new ArrayList<>(begun);
            table.listEntities(options, null, null).iterableByPage(page.getContinuationToken())
                    .forEach(rest -> joined.addAll(keys(rest.getValue())));
            assertEquals(everything, joined);
        }
        assertEquals(everything, begun);
        assertEquals(9, keys(query("n ge 3 and n lt 6")).size());
        assertEquals(List.of(), keys(query("n gt 100")));
    }

    @Test
    void theAsynchronousClient() {
        var other = TableService.builder(scheme).buildAsyncClient().getTableClient(table.getTableName());
        other.createEntity(row("a", "b", "v", 1L)).block();
        assertEquals(1L, other.getEntity("a", "b").block().getProperty("v"));
        other.submitTransaction(List.of(new TableTransactionAction(TableTransactionActionType.CREATE, row("a", "c")))).block();
        assertEquals(List.of("a/b", "a/c"), keys(other.listEntities().collectList().block()));
        other.deleteEntity("a", "b").block();
        assertEquals(List.of("a/c"), keys(table.listEntities()));
    }
}

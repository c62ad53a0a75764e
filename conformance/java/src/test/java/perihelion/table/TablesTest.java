package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.HttpHeaderName;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableErrorCode;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tables: create, list, delete, and what is refused; the documented walk; the service's own properties. */
class TablesTest extends TableFixture {
    private static List<String> names(Iterable<TableItem> tables) {
        List<String> found = new ArrayList<>();
        tables.forEach(table -> found.add(table.getName()));
        return found;
    }

    private static ListTablesOptions filter(String text) {
        return new ListTablesOptions().setFilter(text);
    }

    @Test
    void aTableIsCreatedListedAndDeleted() {
        String name = unique("t");
        assertEquals(name, client.createTable(name).getTableName());
        refused(409, "TableAlreadyExists", () -> client.createTable(name));
        refused(409, "TableAlreadyExists", () -> client.getTableClient(name).createTable());
        assertEquals(List.of(name), names(client.listTables(filter("TableName eq '" + name + "'"), null, null)));
        assertTrue(names(client.listTables()).contains(name));
        client.deleteTable(name);
        assertEquals(List.of(), names(client.listTables(filter("TableName eq '" + name + "'"), null, null)));
        assertEquals(404, client.deleteTableWithResponse(name, null, null).getStatusCode());
        assertEquals(name, client.getTableClient(name).createTable().getName());
        client.getTableClient(name).deleteTable();
    }

    @Test
    void createIfNotExistsLeavesATableAlone() {
        table.createEntity(row("a", "b"));
        assertEquals(table.getTableName(), client.createTableIfNotExists(table.getTableName()).getTableName());
        assertEquals(409, client.createTableIfNotExistsWithResponse(table.getTableName(), null, null).getStatusCode());
        assertEquals(List.of("a/b"), keys(table.listEntities()));
        String name = unique("t");
        assertNotNull(client.createTableIfNotExists(name));
        client.deleteTable(name);
    }

    @Test
    void anAbsentTableIsRefused() {
        TableClient absent = client.getTableClient(unique("absent"));
        TableEntity entity = row("a", "b");
        refused(404, "TableNotFound", () -> absent.createEntity(entity));
        refused(404, "TableNotFound", () -> absent.updateEntity(entity));
        refused(404, "TableNotFound", () -> absent.upsertEntity(entity));
        refused(404, "TableNotFound", () -> absent.getEntity("a", "b"));
        refused(404, "TableNotFound", () -> keys(absent.listEntities()));
        assertEquals(404, statusOf(absent::getAccessPolicies));
        var action = new TableTransactionAction(TableTransactionActionType.CREATE, entity);
        var failed = assertThrows(TableTransactionFailedException.class, () -> absent.submitTransaction(List.of(action)));
        assertEquals(TableErrorCode.TABLE_NOT_FOUND, failed.getValue().getErrorCode());
    }

    @ParameterizedTest
    @ValueSource(strings = {"a", "1abc", "a-b", "a_b", "tables", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"})
    void badNamesAreRefused(String name) {
        if (name.equals("tables")) {
            azuriteLacks("reserved names");
        }
        assertEquals(400, statusOf(() -> client.createTable(name)));
    }

    @Test
    void tablesAreListedByPage() {
        String prefix = unique("list");
        List<String> made = IntStream.range(0, 7).mapToObj(index -> prefix + index).toList();
        made.forEach(client::createTable);
        ListTablesOptions within = filter("TableName ge '%s' and TableName lt '%sz'".formatted(prefix, prefix)).setTop(3);
        var pages = client.listTables(within, null, null).stream().map(TableItem::getName).toList();
        assertEquals(made, pages);
        client.listTables(within, null, null).iterableByPage().forEach(page -> assertTrue(page.getValue().size() <= 3));
        var first = client.listTables(within, null, null).iterableByPage().iterator().next();
        List<String> found = new ArrayList<>(names(first.getValue()));
        client.listTables(within, null, null).iterableByPage(first.getContinuationToken())
                .forEach(page -> found.addAll(names(page.getValue())));
        assertEquals(made, found);
        made.forEach(client::deleteTable);
    }

    @Test
    void theDocumentedWalk() {
        JsonNode walk = TableService.DATA.get("walk");
        String name = unique(walk.get("table").asText());
        // Throughput of a new table is a header that the client has no word for.
        TableServiceClient withThroughput = TableService.builder(scheme)
                .addPolicy((context, next) -> {
                    context.getHttpRequest().setHeader(HttpHeaderName.fromString("x-ms-offer-throughput"), walk.get("throughput").asText());
                    return next.process();
                })
                .buildClient();
        assertNotNull(withThroughput.createTableIfNotExists(name));
        assertEquals(409, withThroughput.createTableIfNotExistsWithResponse(name, null, null).getStatusCode());
        TableClient people = client.getTableClient(name);
        for (JsonNode person : walk.get("people")) {
            people.upsertEntity(row(person.get("PartitionKey").asText(), person.get("RowKey").asText(),
                    "email", person.get("email").asText(), "phone", person.get("phone").asText()));
        }
        TableEntity ben = people.getEntity("Smith", "Ben");
        assertEquals("ben@contoso.example", ben.getProperty("email"));
        ben.addProperty("email", "ben.smith@contoso.example");
        people.updateEntityWithResponse(ben, TableEntityUpdateMode.REPLACE, true, null, null);
        table = people;
        assertEquals(List.of("Smith/Ben", "Smith/Jeff"), keys(query("PartitionKey eq 'Smith'")));
        assertEquals("ben.smith@contoso.example", read("Smith", "Ben").get("email"));
        people.deleteEntity("Smith", "Ben");
        refused(404, "ResourceNotFound", () -> people.getEntity("Smith", "Ben"));
    }

    @Test
    void servicePropertiesAreKept() {
        azuriteLacks("some service properties");
        var kept = new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(5);
        client.setProperties(new TableServiceProperties()
                .setLogging(new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(true).setRetentionPolicy(kept))
                .setHourMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(kept))
                .setMinuteMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(false)
                        .setRetentionPolicy(new TableServiceRetentionPolicy().setEnabled(false)))
                .setCorsRules(List.of(new TableServiceCorsRule()
                        .setAllowedOrigins("https://www.contoso.example")
                        .setAllowedMethods("GET,PUT")
                        .setAllowedHeaders("Accept")
                        .setExposedHeaders("x-ms-meta-*")
                        .setMaxAgeInSeconds(30))));
        TableServiceProperties found = client.getProperties();
        assertTrue(found.getLogging().isReadLogged());
        assertFalse(found.getLogging().isWriteLogged());
        assertEquals(5, found.getLogging().getRetentionPolicy().getDaysToRetain());
        assertTrue(found.getHourMetrics().isEnabled());
        assertEquals("https://www.contoso.example", found.getCorsRules().get(0).getAllowedOrigins());
        assertEquals(30, found.getCorsRules().get(0).getMaxAgeInSeconds());
    }

    @Test
    void statisticsAreAnswered() {
        azuriteLacks("statistics of the primary address");
        assertNotNull(client.getStatistics().getGeoReplication().getStatus());
    }
}

package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.rest.PagedIterable;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import perihelion.support.Scheme;

/** The shared service over plain HTTP and TLS, one client per scheme, one empty table per test. */
@ParameterizedClass
@EnumSource(Scheme.class)
abstract class TableFixture {
    private static final Map<Scheme, TableServiceClient> CLIENTS = new EnumMap<>(Scheme.class);
    private static final Pattern CODE = Pattern.compile("\"code\":\\s*\"(\\w+)\"|<Code>(\\w+)</Code>");
    /** What the service adds to an entity. */
    private static final List<String> SERVICE =
            List.of("PartitionKey", "RowKey", "Timestamp", "odata.etag", "odata.metadata", "odata.type", "odata.id", "odata.editLink");

    @Parameter
    protected Scheme scheme;

    protected TableServiceClient client;
    protected TableClient table;

    @BeforeEach
    void connect() {
        assumeTrue(TableService.offers(scheme));
        client = CLIENTS.computeIfAbsent(scheme, scheme -> TableService.builder(scheme).buildClient());
        table = client.createTable(unique("t"));
    }

    @AfterEach
    void drop() {
        if (table != null) {
            table.deleteTable();
        }
    }

    /** Ends a test that cannot pass against Azurite; it never ends one against our server. */
    static void azuriteLacks(String what) {
        assumeFalse(TableService.IS_AZURITE, "Azurite lacks " + what);
    }

    static String unique(String prefix) {
        return prefix + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
    }

    /** A call that must be refused with this status and code. */
    static void refused(int status, String code, Executable call) {
        HttpResponseException error = assertThrows(HttpResponseException.class, call);
        assertEquals(status + " " + code, error.getResponse().getStatusCode() + " " + codeOf(error), error::getMessage);
    }

    static int statusOf(Executable call) {
        return assertThrows(HttpResponseException.class, call).getResponse().getStatusCode();
    }

    /** The client reads the code in some of its operations only. */
    private static String codeOf(HttpResponseException error) {
        if (error instanceof TableServiceException service && service.getValue() != null
                && service.getValue().getErrorCode() != null) {
            return service.getValue().getErrorCode().toString();
        }
        Matcher found = CODE.matcher(error.getMessage());
        return found.find() ? (found.group(1) == null ? found.group(2) : found.group(1)) : null;
    }

    static TableEntity row(String partition, String row, Object... properties) {
        TableEntity entity = new TableEntity(partition, row);
        for (int index = 0; index < properties.length; index += 2) {
            entity.addProperty((String) properties[index], properties[index + 1]);
        }
        return entity;
    }

    /** The properties without what the service adds. */
    static Map<String, Object> plain(TableEntity entity) {
        Map<String, Object> properties = new TreeMap<>(entity.getProperties());
        properties.keySet().removeIf(name -> SERVICE.contains(name) || name.endsWith("@odata.type"));
        return properties;
    }

    protected Map<String, Object> read(String partition, String row) {
        return plain(table.getEntity(partition, row));
    }

    protected PagedIterable<TableEntity> query(String filter) {
        return table.listEntities(new ListEntitiesOptions().setFilter(filter), null, null);
    }

    /** Keys in order, as `partition/row`. */
    static List<String> keys(Iterable<TableEntity> entities) {
        List<String> found = new java.util.ArrayList<>();
        entities.forEach(entity -> found.add(entity.getPartitionKey() + "/" + entity.getRowKey()));
        return found;
    }
}

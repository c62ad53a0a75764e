package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.credential.AzureSasCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import perihelion.support.Server;

/** Who may do what: keys, connection strings, shared access signatures, stored policies. */
class AccessTest extends TableFixture {
    private static OffsetDateTime inHours(int hours) {
        return OffsetDateTime.now(ZoneOffset.UTC).plusHours(hours).truncatedTo(ChronoUnit.SECONDS);
    }

    private static boolean isAllowed(Executable call) {
        try {
            call.execute();
            return true;
        } catch (HttpResponseException error) {
            assertEquals(403, error.getResponse().getStatusCode(), error::getMessage);
            return false;
        } catch (Throwable error) {
            throw new AssertionError(error);
        }
    }

    private static TableAccountSasSignatureValues account(OffsetDateTime expiry, String permissions, String types) {
        return new TableAccountSasSignatureValues(
                expiry,
                TableAccountSasPermission.parse(permissions),
                TableAccountSasService.parse("t"),
                TableAccountSasResourceType.parse(types))
                .setProtocol(TableSasProtocol.HTTPS_HTTP);
    }

    private TableServiceClient signed(String sas) {
        return TableService.bare(scheme, TableService.ACCOUNT).credential(new AzureSasCredential(sas)).buildClient();
    }

    private TableClient held(TableAccountSasSignatureValues values) {
        return signed(client.generateAccountSas(values)).getTableClient(table.getTableName());
    }

    private TableClient held(TableSasSignatureValues values) {
        return signed(table.generateSas(values)).getTableClient(table.getTableName());
    }

    private static TableSasSignatureValues policy(OffsetDateTime expiry, String permissions) {
        return new TableSasSignatureValues(expiry, TableSasPermission.parse(permissions));
    }

    @Test
    void aWrongKeyOrAccountIsRefused() {
        var wrong = TableService.builder(scheme, TableService.ACCOUNT, Server.KEY).buildClient().getTableClient(table.getTableName());
        refused(403, TableService.answer("AuthenticationFailed", "AuthorizationFailure"), () -> wrong.createEntity(row("a", "b")));
        var nobody = TableService.builder(scheme, "nobody", TableService.ACCOUNT_KEY).buildClient();
        assertThrows(HttpResponseException.class, () -> nobody.createTable(unique("t")));
        assertEquals(List.of(), keys(table.listEntities()));
    }

    @Test
    void theAccountOfTheOtherEmulator() {
        azuriteLacks("a second account");
        var other = TableService.builder(scheme, "localhost", Server.KEY).buildClient();
        String name = unique("t");
        other.createTable(name).createEntity(row("a", "b"));
        other.deleteTable(name);
    }

    @Test
    void aConnectionString() {
        String text = "DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;TableEndpoint=%s;".formatted(
                scheme.text(), TableService.ACCOUNT, TableService.ACCOUNT_KEY, TableService.endpoint(scheme, TableService.ACCOUNT));
        var other = new TableServiceClientBuilder().connectionString(text).buildClient();
        other.getTableClient(table.getTableName()).createEntity(row("a", "b"));
        assertEquals(List.of("a/b"), keys(table.listEntities()));
    }

    @Test
    void accountSignatures() {
        table.createEntity(row("a", "b"));
        var all = held(account(inHours(1), "rwdlacu", "sco"));
        all.createEntity(row("a", "c"));
        assertEquals(List.of("a/b", "a/c"), keys(all.listEntities()));
        assertTrue(isAllowed(() -> signed(client.generateAccountSas(account(inHours(1), "l", "c"))).listTables().forEach(item -> {})));
        var reader = held(account(inHours(1), "r", "o"));
        reader.getEntity("a", "b");
        assertFalse(isAllowed(() -> reader.createEntity(row("a", "d"))));
        assertFalse(isAllowed(() -> reader.upsertEntity(row("a", "b"))));
        var adder = held(account(inHours(1), "a", "o"));
        adder.createEntity(row("a", "d"));
        assertFalse(isAllowed(() -> adder.getEntity("a", "b")));
        assertFalse(isAllowed(() -> held(account(inHours(-1), "r", "o")).getEntity("a", "b")));
        assertFalse(isAllowed(() -> held(account(inHours(2), "r", "o").setStartTime(inHours(1))).getEntity("a", "b")));
        assertFalse(isAllowed(() -> held(account(inHours(1), "r", "s")).getEntity("a", "b")));
        var forged = TableService.builder(scheme, TableService.ACCOUNT, Server.KEY).buildClient();
        String sas = forged.generateAccountSas(account(inHours(1), "r", "o"));
        assertFalse(isAllowed(() -> signed(sas).getTableClient(table.getTableName()).getEntity("a", "b")));
        var secure = account(inHours(1), "r", "o").setProtocol(TableSasProtocol.HTTPS_ONLY);
        assertEquals(scheme.text().equals("https"), isAllowed(() -> held(secure).getEntity("a", "b")));
    }

    @Test
    void tableSignatures() {
        table.createEntity(row("a", "b"));
        var own = held(policy(inHours(1), "ra"));
        own.getEntity("a", "b");
        own.createEntity(row("a", "c"));
        assertFalse(isAllowed(() -> own.updateEntity(row("a", "b"))));
        assertFalse(isAllowed(() -> own.deleteEntity("a", "b")));
        assertFalse(isAllowed(() -> held(policy(inHours(-1), "r")).getEntity("a", "b")));
        assertFalse(isAllowed(() -> held(policy(inHours(2), "r").setStartTime(inHours(1))).getEntity("a", "b")));
        azuriteLacks("signatures of one table or range");
        String other = client.createTable(unique("t")).generateSas(policy(inHours(1), "r"));
        assertFalse(isAllowed(() -> signed(other).getTableClient(table.getTableName()).getEntity("a", "b")));
        var range = held(policy(inHours(1), "r")
                .setStartPartitionKey("b").setStartRowKey("a").setEndPartitionKey("c").setEndRowKey("z"));
        assertFalse(isAllowed(() -> range.getEntity("a", "b")));
        assertEquals(List.of(), keys(range.listEntities()));
    }

    @Test
    void storedPolicies() {
        table.createEntity(row("a", "b"));
        OffsetDateTime begin = inHours(-1);
        OffsetDateTime end = inHours(1);
        table.setAccessPolicies(List.of(
                new TableSignedIdentifier("readers")
                        .setAccessPolicy(new TableAccessPolicy().setStartsOn(begin).setExpiresOn(end).setPermissions("r")),
                new TableSignedIdentifier("writers")
                        .setAccessPolicy(new TableAccessPolicy().setStartsOn(begin).setExpiresOn(end).setPermissions("raud"))));
        var found = table.getAccessPolicies().getIdentifiers();
        assertEquals(List.of("readers", "writers"), found.stream().map(TableSignedIdentifier::getId).toList());
        assertEquals("raud", found.get(1).getAccessPolicy().getPermissions());
        assertEquals(begin, found.get(0).getAccessPolicy().getStartsOn());
        assertEquals(end, found.get(0).getAccessPolicy().getExpiresOn());
        var reader = held(new TableSasSignatureValues("readers"));
        reader.getEntity("a", "b");
        assertFalse(isAllowed(() -> reader.createEntity(row("a", "c"))));
        held(new TableSasSignatureValues("writers")).createEntity(row("a", "c"));
        assertFalse(isAllowed(() -> held(new TableSasSignatureValues("absent")).getEntity("a", "b")));
        table.setAccessPolicies(List.of());
        assertFalse(isAllowed(() -> reader.getEntity("a", "b")));
    }
}

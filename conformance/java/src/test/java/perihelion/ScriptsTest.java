package perihelion;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static perihelion.support.Check.refused;
import static perihelion.support.Check.unique;

import com.azure.cosmos.models.CosmosConflictProperties;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.CosmosStoredProcedureProperties;
import com.azure.cosmos.models.CosmosStoredProcedureRequestOptions;
import com.azure.cosmos.models.CosmosTriggerProperties;
import com.azure.cosmos.models.CosmosUserDefinedFunctionProperties;
import com.azure.cosmos.models.TriggerOperation;
import com.azure.cosmos.models.TriggerType;
import java.util.List;
import org.junit.jupiter.api.Test;
import perihelion.support.Fixture;
import perihelion.support.Server;

/** Definitions of stored procedures, triggers and user-defined functions, and the conflicts of a container. */
class ScriptsTest extends Fixture {
    private static final String ONE = "function () { return 1; }";
    private static final String TWO = "function () { return 2; }";

    @Test
    void proceduresAreKept() {
        var scripts = container.getScripts();
        String name = unique("procedure");
        var created = scripts.createStoredProcedure(new CosmosStoredProcedureProperties(name, ONE));
        assertEquals(201, created.getStatusCode());
        assertTrue(created.getRequestCharge() > 0);
        var one = scripts.getStoredProcedure(name);
        assertEquals(ONE, one.read().getProperties().getBody());
        refused(409, 0, () -> scripts.createStoredProcedure(new CosmosStoredProcedureProperties(name, ONE)));
        var replaced = one.replace(one.read().getProperties().setBody(TWO)).getProperties();
        assertEquals(TWO, replaced.getBody());
        var stale = new CosmosStoredProcedureRequestOptions().setIfMatchETag(created.getProperties().getETag());
        refused(412, 0, () -> one.replace(replaced, stale));
        scripts.createStoredProcedure(new CosmosStoredProcedureProperties("another", ONE));
        var listed = scripts.readAllStoredProcedures().stream().map(CosmosStoredProcedureProperties::getId);
        assertEquals(List.of(name, "another"), listed.toList());
        assertEquals(204, one.delete().getStatusCode());
        refused(404, 0, one::read);
    }

    @Test
    void triggersAreKept() {
        var scripts = container.getScripts();
        String name = unique("trigger");
        CosmosTriggerProperties body = new CosmosTriggerProperties(name, ONE)
                .setTriggerType(TriggerType.PRE)
                .setTriggerOperation(TriggerOperation.CREATE);
        assertEquals(201, scripts.createTrigger(body).getStatusCode());
        var one = scripts.getTrigger(name);
        var read = one.read().getProperties();
        assertEquals(TriggerType.PRE, read.getTriggerType());
        assertEquals(TriggerOperation.CREATE, read.getTriggerOperation());
        var replaced = one.replace(read.setBody(TWO).setTriggerType(TriggerType.POST)).getProperties();
        assertEquals(TWO, replaced.getBody());
        assertEquals(TriggerType.POST, replaced.getTriggerType());
        assertEquals(List.of(name), scripts.readAllTriggers().stream().map(CosmosTriggerProperties::getId).toList());
        assertEquals(204, one.delete().getStatusCode());
        refused(404, 0, one::read);
    }

    @Test
    void functionsAreKept() {
        var scripts = container.getScripts();
        String name = unique("function");
        var body = new CosmosUserDefinedFunctionProperties(name, ONE);
        assertEquals(201, scripts.createUserDefinedFunction(body).getStatusCode());
        var one = scripts.getUserDefinedFunction(name);
        assertEquals(TWO, one.replace(one.read().getProperties().setBody(TWO)).getProperties().getBody());
        refused(409, 0, () -> scripts.createUserDefinedFunction(body));
        var listed = scripts.readAllUserDefinedFunctions().stream().map(CosmosUserDefinedFunctionProperties::getId);
        assertEquals(List.of(name), listed.toList());
        assertEquals(204, one.delete().getStatusCode());
        refused(404, 0, one::delete);
    }

    @Test
    void thereAreNoConflicts() {
        try (var asynchronous = Server.shared().builder(scheme).buildAsyncClient()) {
            var mirror = asynchronous.getDatabase(database.getId()).getContainer(container.getId());
            List<CosmosConflictProperties> found =
                    mirror.readAllConflicts(new CosmosQueryRequestOptions()).collectList().block();
            assertEquals(List.of(), found);
        }
    }
}

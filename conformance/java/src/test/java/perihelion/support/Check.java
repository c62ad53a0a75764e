package perihelion.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.CosmosItemResponse;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.function.Executable;

/** Small words for assertions. */
public final class Check {
    private static final List<String> SYSTEM = List.of("_rid", "_self", "_etag", "_ts", "_attachments");
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Check() {}

    public static String unique(String prefix) {
        return prefix + "-" + UUID.randomUUID().toString().substring(0, 12);
    }

    /** An item from JSON with single quotes for double ones. */
    public static ObjectNode json(String text) {
        try {
            return (ObjectNode) MAPPER.readTree(text.replace('\'', '"'));
        } catch (com.fasterxml.jackson.core.JsonProcessingException error) {
            throw new IllegalArgumentException(text, error);
        }
    }

    /** The item without system properties. */
    public static ObjectNode plain(JsonNode item) {
        return ((ObjectNode) item.deepCopy()).remove(SYSTEM);
    }

    /** A call that must be refused with this pair, and with the headers that every answer carries. */
    public static CosmosException refused(int status, int substatus, Executable call) {
        CosmosException error = assertThrows(CosmosException.class, call);
        assertEquals(status + "/" + substatus, error.getStatusCode() + "/" + error.getSubStatusCode(), error::getMessage);
        UUID.fromString(error.getActivityId());
        boolean isAboutAccess = status == 401 || status == 403;
        assertEquals(!isAboutAccess, error.getRequestCharge() > 0, "a refusal costs something, unless it is about access");
        return error;
    }

    /** A good answer has this status, a charge, an activity id, an ETag (unless it deleted) and a session token. */
    public static <T> CosmosItemResponse<T> good(int status, CosmosItemResponse<T> response) {
        assertEquals(status, response.getStatusCode());
        assertTrue(response.getRequestCharge() > 0);
        UUID.fromString(response.getActivityId());
        assertTrue(response.getSessionToken().matches("\\d+:-?\\d+#\\d+.*"), response::getSessionToken);
        if (status != 204) {
            assertNotNull(response.getETag());
        }
        return response;
    }

    /** Waits until the condition holds; the bound is only for a server that never gets there. */
    public static void eventually(BooleanSupplier condition) {
        eventually(20, condition);
    }

    /** The same with another bound. */
    public static void eventually(int seconds, BooleanSupplier condition) {
        Instant deadline = Instant.now().plus(Duration.ofSeconds(seconds));
        while (Instant.now().isBefore(deadline)) {
            if (condition.getAsBoolean()) {
                return;
            }
            try {
                Thread.sleep(50);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
        fail("not within " + seconds + " s");
    }
}

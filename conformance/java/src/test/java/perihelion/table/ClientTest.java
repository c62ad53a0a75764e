package perihelion.table;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.util.CoreUtils;
import com.azure.data.tables.TableServiceVersion;
import org.junit.jupiter.api.Test;

/** The client under test names itself: the table of clients is made from this line. */
class ClientTest {
    @Test
    void namesItsVersionAndTheVersionOfItsProtocol() {
        String version = CoreUtils.getProperties("azure-data-tables.properties").get("version");
        String protocol = TableServiceVersion.getLatest().getVersion();
        System.out.printf(
                "client {\"client\": \"azure-data-tables\", \"version\": \"%s\", \"language\": \"Java\", \"protocol\": \"%s\"}%n",
                version, protocol);
        assertTrue(version.matches("\\d+\\.\\d+\\.\\d+.*"), version);
        assertTrue(protocol.matches("\\d{4}-\\d{2}-\\d{2}"), protocol);
    }
}

package perihelion;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.cosmos.implementation.HttpConstants;
import org.junit.jupiter.api.Test;

/** The client under test names itself: the table of clients is made from this line. */
class ClientTest {
    @Test
    void namesItsVersionAndTheVersionOfItsProtocol() {
        String version = HttpConstants.Versions.getSdkVersion();
        String protocol = HttpConstants.Versions.CURRENT_VERSION;
        System.out.printf(
                "client {\"client\": \"azure-cosmos\", \"version\": \"%s\", \"language\": \"Java\", \"protocol\": \"%s\"}%n",
                version, protocol);
        assertTrue(version.matches("\\d+\\.\\d+\\.\\d+.*"), version);
        assertTrue(protocol.matches("\\d{4}-\\d{2}-\\d{2}"), protocol);
    }
}

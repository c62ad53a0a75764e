package perihelion.table;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.data.tables.TableServiceClientBuilder;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import perihelion.support.Scheme;
import perihelion.support.Server;

/**
 * The Table service under test: our server, or Azurite at the address that {@code PERIHELION_TABLE_PEER} names. Azurite
 * stands for the real service: where its answer differs from the documented one, a test names both.
 */
final class TableService {
    static final String ACCOUNT = "devstoreaccount1";
    static final String ACCOUNT_KEY =
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    static final JsonNode DATA = data();
    private static final String PEER = System.getenv().getOrDefault("PERIHELION_TABLE_PEER", "").replaceFirst("/$", "");
    static final boolean IS_AZURITE = !PEER.isEmpty();

    private TableService() {}

    private static final class Shared {
        static final Server SERVER = Server.own("dev", "--table", "127.0.0.1:0");

        static {
            Runtime.getRuntime().addShutdownHook(new Thread(SERVER::close));
        }
    }

    /** The expected answer. */
    static <T> T answer(T documented, T azurite) {
        return IS_AZURITE ? azurite : documented;
    }

    /** Azurite is reached in its own scheme only. */
    static boolean offers(Scheme scheme) {
        return !IS_AZURITE || PEER.startsWith(scheme.text() + ":");
    }

    /** The address of an account in path style. */
    static String endpoint(Scheme scheme, String account) {
        String base = IS_AZURITE ? PEER : scheme.text() + "://127.0.0.1:" + Shared.SERVER.tablePort();
        return base + "/" + account;
    }

    /** A client of the account that tries no call twice. */
    static TableServiceClientBuilder builder(Scheme scheme, String account, String key) {
        return bare(scheme, account).credential(new AzureNamedKeyCredential(account, key));
    }

    static TableServiceClientBuilder builder(Scheme scheme) {
        return builder(scheme, ACCOUNT, ACCOUNT_KEY);
    }

    /** A builder without a credential. */
    static TableServiceClientBuilder bare(Scheme scheme, String account) {
        return new TableServiceClientBuilder()
                .endpoint(endpoint(scheme, account))
                .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1))));
    }

    private static JsonNode data() {
        try {
            return new ObjectMapper().readTree(Path.of("../table.json").toFile());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}

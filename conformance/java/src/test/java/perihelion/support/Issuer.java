package perihelion.support;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.interfaces.RSAPublicKey;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.Base64;
import reactor.core.publisher.Mono;

/** An identity provider for tests: one key, its key set, and tokens signed with it. */
public final class Issuer {
    public static final String NAME = "https://issuer.example";
    public static final String AUDIENCE = "https://cosmos.example";
    private static final long TOKEN_SECONDS = 3600;

    private final KeyPair pair;

    public Issuer() {
        try {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            pair = generator.generateKeyPair();
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The public key as the server reads it from a file. */
    public String keySet() {
        RSAPublicKey key = (RSAPublicKey) pair.getPublic();
        String modulus = url(magnitude(key.getModulus()));
        String exponent = url(magnitude(key.getPublicExponent()));
        return """
                {"keys": [{"kty": "RSA", "use": "sig", "kid": "1", "n": "%s", "e": "%s"}]}
                """.formatted(modulus, exponent);
    }

    /** What a client of this principal asks for tokens. */
    public TokenCredential credential(String principal) {
        return request -> Mono.fromSupplier(() -> {
            Instant expiry = Instant.now().plusSeconds(TOKEN_SECONDS);
            return new AccessToken(token(principal, expiry), expiry.atOffset(ZoneOffset.UTC));
        });
    }

    private String token(String principal, Instant expiry) {
        String header = "{\"typ\":\"JWT\",\"alg\":\"RS256\",\"kid\":\"1\"}";
        String claims = "{\"iss\":\"%s\",\"aud\":\"%s\",\"oid\":\"%s\",\"nbf\":%d,\"exp\":%d}"
                .formatted(NAME, AUDIENCE, principal, Instant.now().getEpochSecond() - 5, expiry.getEpochSecond());
        String text = url(header.getBytes(StandardCharsets.UTF_8)) + "." + url(claims.getBytes(StandardCharsets.UTF_8));
        try {
            Signature signature = Signature.getInstance("SHA256withRSA");
            signature.initSign(pair.getPrivate());
            signature.update(text.getBytes(StandardCharsets.UTF_8));
            return text + "." + url(signature.sign());
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The bytes of a positive number without the zero that tells its sign. */
    private static byte[] magnitude(BigInteger number) {
        byte[] bytes = number.toByteArray();
        return bytes[0] == 0 ? java.util.Arrays.copyOfRange(bytes, 1, bytes.length) : bytes;
    }

    private static String url(byte[] bytes) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
    }
}

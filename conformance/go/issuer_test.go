package conformance

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

const (
	issuerName = "https://issuer.example"
	audience   = "https://cosmos.example"
)

// issuer is an identity provider with one key.
type issuer struct {
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	return &issuer{key}
}

// settings writes what the server reads of this issuer and of the roles of its users, and answers the file's path.
func (i *issuer) settings(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	keySet, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "kid": "1",
		"n": encoded(i.key.N.Bytes()), "e": encoded(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "keys.json"), keySet, 0o600))
	text := `
		issuer = "` + issuerName + `"
		audiences = ["` + audience + `"]
		jwks-file = "keys.json"
		algorithms = ["RS256"]
		assignments = [
			{ principal = "reader", role = "reader", scope = "/dbs/db" },
			{ principal = "writer", role = "contributor", scope = "/dbs/db/colls/c" },
		]`
	file := filepath.Join(folder, "identity.toml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// holder is what a client of a principal asks for tokens.
type holder struct {
	issuer    *issuer
	principal string
}

func (h holder) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	expiry := time.Now().Add(time.Hour)
	claims, err := json.Marshal(map[string]any{
		"iss": issuerName, "aud": audience, "oid": h.principal, "nbf": time.Now().Unix() - 5, "exp": expiry.Unix(),
	})
	if err != nil {
		return azcore.AccessToken{}, err
	}
	text := encoded([]byte(`{"typ":"JWT","alg":"RS256","kid":"1"}`)) + "." + encoded(claims)
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, h.issuer.key, crypto.SHA256, digest[:])
	return azcore.AccessToken{Token: text + "." + encoded(signature), ExpiresOn: expiry}, err
}

func encoded(bytes []byte) string {
	return base64.RawURLEncoding.EncodeToString(bytes)
}

package conformance

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Item is an item as JSON has it.
type Item = map[string]any

var guid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func unique(prefix string) string {
	bytes := make([]byte, 6)
	_, _ = rand.Read(bytes)
	return prefix + "-" + hex.EncodeToString(bytes)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, expected, actual T) {
	t.Helper()
	if !reflect.DeepEqual(expected, actual) {
		t.Fatalf("expected %v, found %v", expected, actual)
	}
}

func isTrue(t *testing.T, condition bool, format string, values ...any) {
	t.Helper()
	if !condition {
		t.Fatalf(format, values...)
	}
}

// body is an item as bytes, from JSON with single quotes for double ones.
func body(text string) []byte {
	return []byte(strings.ReplaceAll(text, "'", `"`))
}

func parsed(t *testing.T, bytes []byte) Item {
	t.Helper()
	var item Item
	must(t, json.Unmarshal(bytes, &item))
	return item
}

// plain is the item without system properties.
func plain(t *testing.T, bytes []byte) Item {
	t.Helper()
	item := parsed(t, bytes)
	for _, name := range []string{"_rid", "_self", "_etag", "_ts", "_attachments"} {
		delete(item, name)
	}
	return item
}

// good checks the status and the headers that every answer about an item carries.
func good(t *testing.T, status int, answer azcosmos.ItemResponse, err error) azcosmos.ItemResponse {
	t.Helper()
	must(t, err)
	equal(t, status, answer.RawResponse.StatusCode)
	common(t, answer.Response)
	isTrue(t, answer.SessionToken != nil && strings.Contains(*answer.SessionToken, "#"), "no session token")
	if status != http.StatusNoContent {
		isTrue(t, strings.HasPrefix(string(answer.ETag), `"`), "no ETag: %s", answer.ETag)
	}
	return answer
}

func common(t *testing.T, answer azcosmos.Response) {
	t.Helper()
	isTrue(t, answer.RequestCharge > 0, "no charge")
	isTrue(t, guid.MatchString(answer.ActivityID), "no activity id: %s", answer.ActivityID)
}

// refused checks status and substatus of a refusal and the headers that it carries.
func refused(t *testing.T, status int, substatus string, err error) {
	t.Helper()
	var refusal *azcore.ResponseError
	isTrue(t, errors.As(err, &refusal), "not refused by the server: %v", err)
	header := refusal.RawResponse.Header
	found := header.Get("x-ms-substatus")
	if found == "" {
		found = "0"
	}
	isTrue(t, refusal.StatusCode == status && found == substatus,
		"expected %d/%s, found %d/%s: %v", status, substatus, refusal.StatusCode, found, err)
	isTrue(t, guid.MatchString(header.Get("x-ms-activity-id")), "no activity id")
	if status != http.StatusUnauthorized {
		isTrue(t, header.Get("x-ms-request-charge") != "", "no charge")
	}
	isTrue(t, refusal.ErrorCode != "", "the body has no code")
}

// eventually waits until the condition holds; the bound is only for a server that never gets there.
func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatal("not within 20 s")
}

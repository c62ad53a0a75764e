package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The SDK has neither users nor permissions nor resource tokens. Its pipeline takes policies that run after its own,
// so that an application can put a token in the place of the signature.

type tokenPolicy string

func (token tokenPolicy) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header.Set("authorization", url.QueryEscape(string(token)))
	return request.Next()
}

// holding is the fixture's container as a client with a token and no key sees it.
func (f *fixture) holding(t *testing.T, token string) *azcosmos.ContainerClient {
	t.Helper()
	options := shared.options()
	options.PerRetryPolicies = []policy.Policy{tokenPolicy(token)}
	nothing, err := azcosmos.NewKeyCredential(base64.StdEncoding.EncodeToString(make([]byte, 64)))
	must(t, err)
	client, err := azcosmos.NewClientWithKey(shared.endpoint(f.scheme), nothing, options)
	must(t, err)
	container, err := client.NewContainer(f.database.ID(), f.container.ID())
	must(t, err)
	return container
}

// createByHand makes a resource under a parent by hand.
func createByHand(t *testing.T, scheme, parent, kind string, resource Item) Item {
	t.Helper()
	text, err := json.Marshal(resource)
	must(t, err)
	request, err := http.NewRequest("POST", shared.endpoint(scheme)+parent+"/"+kind, bytes.NewReader(text))
	must(t, err)
	date := time.Now().UTC().Format(http.TimeFormat)
	key, err := base64.StdEncoding.DecodeString(emulatorKey)
	must(t, err)
	code := hmac.New(sha256.New, key)
	code.Write([]byte("post\n" + kind + "\n" + parent + "\n" + strings.ToLower(date) + "\n\n"))
	signature := base64.StdEncoding.EncodeToString(code.Sum(nil))
	request.Header.Set("authorization", url.QueryEscape("type=master&ver=1.0&sig="+signature))
	request.Header.Set("x-ms-date", date)
	request.Header.Set("x-ms-version", "2020-07-15")
	answer, err := shared.transport().Do(request)
	must(t, err)
	defer answer.Body.Close()
	made, err := io.ReadAll(answer.Body)
	must(t, err)
	isTrue(t, answer.StatusCode == 201, "%d: %s", answer.StatusCode, made)
	return parsed(t, made)
}

// granted makes a permission of a new user and answers its token; below is the place in the container.
func (f *fixture) granted(t *testing.T, mode, below string, key []any) string {
	t.Helper()
	database, user := "dbs/"+f.database.ID(), unique("user")
	createByHand(t, f.scheme, database, "users", Item{"id": user})
	permission := Item{"id": "p", "permissionMode": mode, "resource": database + "/colls/" + f.container.ID() + below}
	if key != nil {
		permission["resourcePartitionKey"] = key
	}
	made := createByHand(t, f.scheme, database+"/users/"+user, "permissions", permission)
	return made["_token"].(string)
}

func TestAReadersTokenReadsAndDoesNotWrite(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, oneItem)
		seen := f.holding(t, f.granted(t, "Read", "", nil))
		read, err := seen.ReadItem(background, keyA, "1", nil)
		good(t, 200, read, err)
		equal(t, []string{"1"}, everything(t, seen))
		_, err = seen.Read(background, nil)
		must(t, err)
		_, err = seen.UpsertItem(background, keyA, body(oneItem), nil)
		refused(t, 403, "0", err)
		_, err = seen.Delete(background, nil)
		refused(t, 403, "0", err)
	})
}

func TestATokenStaysInsideItsKeyOrItem(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		keyB := azcosmos.NewPartitionKeyString("b")
		f.create(t, keyA, oneItem)
		f.create(t, keyB, `{'id':'1','pk':'b'}`)
		inKey := f.holding(t, f.granted(t, "All", "", []any{"a"}))
		written, err := inKey.CreateItem(background, keyA, body(`{'id':'2','pk':'a'}`), nil)
		good(t, 201, written, err)
		_, err = inKey.ReadItem(background, keyB, "1", nil)
		refused(t, 403, "0", err)
		_, err = inKey.CreateItem(background, keyB, body(`{'id':'2','pk':'b'}`), nil)
		refused(t, 403, "0", err)
		item := f.holding(t, f.granted(t, "All", "/docs/1", []any{"a"}))
		written, err = item.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':1}`), nil)
		good(t, 200, written, err)
		_, err = item.ReadItem(background, keyA, "2", nil)
		refused(t, 403, "0", err)
	})
}

package conformance

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var pinnedVersion = regexp.MustCompile(`sdk/data/azcosmos v(\S+)`)

// protocolRecorder keeps the version of the protocol that the client sends.
type protocolRecorder struct{ version string }

func (r *protocolRecorder) Do(request *policy.Request) (*http.Response, error) {
	r.version = request.Raw().Header.Get("x-ms-version")
	return request.Next()
}

// TestClientNamesItself prints the line from which the table of clients is made.
func TestClientNamesItself(t *testing.T) {
	module, err := os.ReadFile("go.mod")
	must(t, err)
	version := pinnedVersion.FindSubmatch(module)
	if version == nil {
		t.Fatal("go.mod does not name the SDK")
	}
	recorder := &protocolRecorder{}
	credential, err := azcosmos.NewKeyCredential(emulatorKey)
	must(t, err)
	options := shared.options()
	options.PerRetryPolicies = []policy.Policy{recorder}
	client, err := azcosmos.NewClientWithKey(shared.endpoint("http"), credential, options)
	must(t, err)
	name := unique("db")
	_, err = client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, nil)
	must(t, err)
	database, err := client.NewDatabase(name)
	must(t, err)
	_, err = database.Delete(background, nil)
	must(t, err)
	if recorder.version == "" {
		t.Fatal("the client sends no version of the protocol")
	}
	fmt.Printf("\nclient {\"client\": \"azcosmos\", \"version\": %q, \"language\": \"Go\", \"protocol\": %q}\n", version[1], recorder.version)
}

// Package table runs the official Table client for Go against our server, or against Azurite at the address that
// PERIHELION_TABLE_PEER names. Azurite stands for the real service: where its answer differs from the documented one,
// a test names both.
package table

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"perihelion/conformance/launch"
)

const (
	account    = "devstoreaccount1"
	accountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

var (
	background = context.Background()
	peer       = strings.TrimRight(os.Getenv("PERIHELION_TABLE_PEER"), "/")
	isAzurite  = peer != ""
	server     *launch.Server
	data       sharedData
)

// sharedData is what the suites of all languages have in common.
type sharedData struct {
	Values     [][2]string      `json:"values"`
	Lost       [][2]string      `json:"values_that_azurite_loses"`
	Keys       [][2]string      `json:"keys"`
	Rows       []map[string]any `json:"rows"`
	Filters    []filterCase     `json:"filters"`
	BadFilters []string         `json:"bad_filters"`
	Lenient    []string         `json:"bad_filters_that_azurite_takes"`
	Walk       struct {
		Table      string           `json:"table"`
		Throughput int              `json:"throughput"`
		People     []map[string]any `json:"people"`
	} `json:"walk"`
}

type filterCase struct {
	Filter  string  `json:"filter"`
	Rows    string  `json:"rows"`
	Azurite *string `json:"azurite"`
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	text, err := os.ReadFile("../../table.json")
	if err != nil {
		return 1, err
	}
	if err := json.Unmarshal(text, &data); err != nil {
		return 1, err
	}
	if isAzurite {
		return m.Run(), nil
	}
	server, err = launch.New("dev", "--table", "127.0.0.1:0")
	if err != nil {
		return 1, err
	}
	defer server.Remove()
	code := m.Run()
	if err := server.Stop(); err != nil {
		return 1, fmt.Errorf("the server did not end well: %w\n%s", err, server.Errors())
	}
	return code, nil
}

// answer is the expected answer.
func answer[T any](documented, azurite T) T {
	if isAzurite {
		return azurite
	}
	return documented
}

// azuriteLacks ends a test that cannot pass against Azurite; it never ends one against our server.
func azuriteLacks(t *testing.T, what string) {
	t.Helper()
	if isAzurite {
		t.Skip("Azurite lacks " + what)
	}
}

// endpoint is the address of an account in path style.
func endpoint(scheme, account string) string {
	if isAzurite {
		return peer + "/" + account
	}
	return scheme + "://127.0.0.1:" + server.TablePort + "/" + account
}

// options trust the server and try no call twice.
func options() *aztables.ClientOptions {
	found := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}
	if !isAzurite {
		found.Transport = server.Transport()
	}
	return found
}

func clientOf(t *testing.T, address, name, key string) *aztables.ServiceClient {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(name, key)
	must(t, err)
	client, err := aztables.NewServiceClientWithSharedKey(address, credential, options())
	must(t, err)
	return client
}

// fixture is what most tests start with: a client and an empty table.
type fixture struct {
	scheme  string
	service *aztables.ServiceClient
	table   *aztables.Client
	name    string
}

// overBoth runs a test over plain HTTP and over TLS.
func overBoth(t *testing.T, test func(t *testing.T, f *fixture)) {
	schemes := []string{"http", "https"}
	if isAzurite {
		schemes = schemes[:1]
	}
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			f := &fixture{scheme: scheme, service: clientOf(t, endpoint(scheme, account), account, accountKey)}
			f.table, f.name = f.make(t)
			test(t, f)
		})
	}
}

// make creates a table that is gone after the test.
func (f *fixture) make(t *testing.T) (*aztables.Client, string) {
	t.Helper()
	name := unique("t")
	_, err := f.service.CreateTable(background, name, nil)
	must(t, err)
	t.Cleanup(func() { _, _ = f.service.DeleteTable(background, name, nil) })
	return f.service.NewClient(name), name
}

// protocolRecorder keeps the version of the protocol that the client sends.
type protocolRecorder struct{ version string }

func (r *protocolRecorder) Do(request *policy.Request) (*http.Response, error) {
	// The client writes the name of this header in small letters.
	r.version = strings.Join(request.Raw().Header["x-ms-version"], "")
	return request.Next()
}

// withHeader adds a header to requests.
type withHeader struct{ name, value string }

func (h withHeader) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header.Set(h.name, h.value)
	return request.Next()
}

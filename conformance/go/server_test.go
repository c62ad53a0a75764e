package conformance

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"perihelion/conformance/launch"
)

const emulatorKey = launch.EmulatorKey

// Server is the server under test, and clients of it.
type Server struct {
	*launch.Server
}

// newServer starts a server with an empty data folder in a mode of the program.
func newServer(mode string, flags ...string) (*Server, error) {
	server, err := launch.New(mode, flags...)
	return &Server{server}, err
}

// ownServer is a server that ends with the test.
func ownServer(t *testing.T, mode string, flags ...string) *Server {
	t.Helper()
	server, err := newServer(mode, flags...)
	must(t, err)
	t.Cleanup(server.Dispose)
	return server
}

func (s *Server) start() error {
	return s.Start()
}

func (s *Server) stop() error {
	return s.Stop()
}

func (s *Server) kill() {
	s.Kill()
}

func (s *Server) endpoint(scheme string) string {
	return s.Endpoint(scheme)
}

func (s *Server) transport() *http.Client {
	return s.Transport()
}

// keys does something with the account's keys, as an operator would, and answers what the program printed.
func (s *Server) keys(t *testing.T, verb, name string) string {
	t.Helper()
	printed, err := s.Keys(verb, name)
	must(t, err)
	return printed
}

// client is an SDK client that asks for the written item.
func (s *Server) client(t *testing.T, scheme string) *azcosmos.Client {
	t.Helper()
	return s.clientWithKey(t, scheme, emulatorKey)
}

func (s *Server) clientWithKey(t *testing.T, scheme, key string) *azcosmos.Client {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(key)
	must(t, err)
	client, err := azcosmos.NewClientWithKey(s.endpoint(scheme), credential, s.options())
	must(t, err)
	return client
}

// options trust the server and ask for the written item.
func (s *Server) options() *azcosmos.ClientOptions {
	return &azcosmos.ClientOptions{
		ClientOptions:                azcore.ClientOptions{Transport: s.transport()},
		EnableContentResponseOnWrite: true,
	}
}

// shared is the server of all tests that neither stop it nor count what is in it.
var shared *Server

func TestMain(m *testing.M) {
	server, err := newServer("dev")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = server
	code := m.Run()
	if err := server.stop(); err != nil && code == 0 {
		fmt.Fprintf(os.Stderr, "the server did not end well: %v\n%s\n", err, server.Errors())
		code = 1
	}
	server.Remove()
	os.Exit(code)
}

var background = context.Background()

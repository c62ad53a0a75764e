package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	emulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="
	readyMax    = 30 * time.Second
)

var readyLine = regexp.MustCompile(`^ready nosql=\S+?:(\d+)\b`)

// Server is the server under test as a child process: started, stopped in order, killed, started again on the same
// folder. The port is chosen at the first start and kept at later ones.
type Server struct {
	folder    string
	mode      string
	flags     []string
	port      string
	command   *exec.Cmd
	authority *x509.CertPool
}

// newServer starts a server with an empty data folder in a mode of the program.
func newServer(mode string, flags ...string) (*Server, error) {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	server := &Server{folder: folder, mode: mode, flags: flags, port: "0"}
	return server, server.start()
}

// program is the program to test: the release build, or what the environment names.
func program() string {
	if named := os.Getenv("PERIHELION_BIN"); named != "" {
		return named
	}
	return filepath.Join("..", "..", "target", "release", "perihelion")
}

func (s *Server) start() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := append([]string{s.mode, "--data", s.data(), "--nosql", "127.0.0.1:" + s.port}, s.flags...)
	s.command = exec.Command(program(), arguments...)
	s.command.Stderr = log
	output, err := s.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	ready := make(chan string, 1)
	go readPort(output, ready)
	select {
	case port := <-ready:
		if port == "" {
			return fmt.Errorf("the server ended before it was ready\n%s", s.errors())
		}
		s.port = port
	case <-time.After(readyMax):
		return fmt.Errorf("the server is not ready\n%s", s.errors())
	}
	return s.trust()
}

func (s *Server) data() string {
	return filepath.Join(s.folder, "data")
}

// ownServer is a server that ends with the test.
func ownServer(t *testing.T, mode string, flags ...string) *Server {
	t.Helper()
	server, err := newServer(mode, flags...)
	must(t, err)
	t.Cleanup(server.dispose)
	return server
}

// keys does something with the account's keys, as an operator would, and answers what the program printed.
func (s *Server) keys(t *testing.T, verb, name string) string {
	t.Helper()
	printed, err := exec.Command(program(), "keys", verb, name, "--data", s.data()).Output()
	must(t, err)
	return strings.TrimSpace(string(printed))
}

// readPort tells the port of the ready line, or nothing at the end, and goes on reading so that the pipe never fills.
func readPort(output io.Reader, ready chan<- string) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
			ready <- found[1]
		}
	}
	close(ready)
}

// trust fetches the certificate of the server's own authority.
func (s *Server) trust() error {
	answer, err := http.Get(s.endpoint("http") + "_explorer/emulator.pem")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	certificate, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	s.authority = x509.NewCertPool()
	if !s.authority.AppendCertsFromPEM(certificate) {
		return errors.New("the server's authority is no certificate")
	}
	return nil
}

// stop asks it to end, as an operator would, and answers how it ended.
func (s *Server) stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.command.Wait()
}

// kill ends it as a crash would: no last words, no flush.
func (s *Server) kill() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

func (s *Server) dispose() {
	s.kill()
	_ = os.RemoveAll(s.folder)
}

func (s *Server) errors() string {
	text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(text[max(0, len(text)-4000):])
}

func (s *Server) endpoint(scheme string) string {
	return scheme + "://127.0.0.1:" + s.port + "/"
}

// transport trusts the server's own authority and nothing less.
func (s *Server) transport() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: s.authority, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}
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
		fmt.Fprintf(os.Stderr, "the server did not end well: %v\n%s\n", err, server.errors())
		code = 1
	}
	_ = os.RemoveAll(server.folder)
	os.Exit(code)
}

var background = context.Background()

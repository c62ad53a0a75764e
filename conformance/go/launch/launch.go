// Package launch runs the server under test as a child process, for the suites of all clients.
package launch

import (
	"bufio"
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
	"time"
)

// EmulatorKey is the published key of the emulator's account.
const EmulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

const readyMax = 30 * time.Second

var (
	readyLine = regexp.MustCompile(`^ready nosql=\S+?:(\d+)\b`)
	tablePart = regexp.MustCompile(` table=\S+?:(\d+)\b`)
)

// Server is the server under test: started, stopped in order, killed, started again on the same folder. The port is
// chosen at the first start and kept at later ones.
type Server struct {
	// Port is the one of the NoSQL API.
	Port string
	// TablePort is the one of the Table API, if a flag turned it on.
	TablePort string
	folder    string
	mode      string
	flags     []string
	command   *exec.Cmd
	authority *x509.CertPool
}

// New starts a server with an empty data folder in a mode of the program.
func New(mode string, flags ...string) (*Server, error) {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	server := &Server{folder: folder, mode: mode, flags: flags, Port: "0"}
	return server, server.Start()
}

// program is the program to test: the release build, or what the environment names.
func program() string {
	if named := os.Getenv("PERIHELION_BIN"); named != "" {
		return named
	}
	// Packages are tested in their own folders, at any depth below the repository.
	for _, up := range []string{"../..", "../../.."} {
		path := filepath.Join(up, "target", "release", "perihelion")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "target/release/perihelion"
}

// Start starts it, again on the same port and folder, and waits until it serves requests.
func (s *Server) Start() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := append([]string{s.mode, "--data", s.data(), "--nosql", "127.0.0.1:" + s.Port}, s.flags...)
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
	go readLines(output, ready)
	select {
	case line := <-ready:
		if line == "" {
			return fmt.Errorf("the server ended before it was ready\n%s", s.Errors())
		}
		s.Port = readyLine.FindStringSubmatch(line)[1]
		if found := tablePart.FindStringSubmatch(line); found != nil {
			s.TablePort = found[1]
		}
	case <-time.After(readyMax):
		return fmt.Errorf("the server is not ready\n%s", s.Errors())
	}
	return s.trust()
}

func (s *Server) data() string {
	return filepath.Join(s.folder, "data")
}

// Keys does something with the account's keys, as an operator would, and answers what the program printed.
func (s *Server) Keys(verb, name string) (string, error) {
	printed, err := exec.Command(program(), "keys", verb, name, "--data", s.data()).Output()
	return strings.TrimSpace(string(printed)), err
}

// readLines tells the ready line, or nothing at the end, and goes on reading so that the pipe never fills.
func readLines(output io.Reader, ready chan<- string) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if readyLine.MatchString(lines.Text()) {
			ready <- lines.Text()
		}
	}
	close(ready)
}

// trust fetches the certificate of the server's own authority.
func (s *Server) trust() error {
	answer, err := http.Get(s.Endpoint("http") + "_explorer/emulator.pem")
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

// Stop asks it to end, as an operator would, and answers how it ended.
func (s *Server) Stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.command.Wait()
}

// Kill ends it as a crash would: no last words, no flush.
func (s *Server) Kill() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

// Dispose ends it and removes its folder.
func (s *Server) Dispose() {
	s.Kill()
	s.Remove()
}

// Remove removes the folder of a server that has ended.
func (s *Server) Remove() {
	_ = os.RemoveAll(s.folder)
}

// Errors is the last part of what it wrote to standard error.
func (s *Server) Errors() string {
	text, _ := os.ReadFile(filepath.Join(s.folder, "log"))
	return string(text[max(0, len(text)-4000):])
}

// Endpoint is the address of the NoSQL API.
func (s *Server) Endpoint(scheme string) string {
	return scheme + "://127.0.0.1:" + s.Port + "/"
}

// Transport trusts the server's own authority and nothing less.
func (s *Server) Transport() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: s.authority, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}
}

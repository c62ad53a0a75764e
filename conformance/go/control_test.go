package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// partition is a physical partition as the control API shows it.
type partition struct {
	ID                string
	State             string
	Documents         int
	Parents           []string
	ThrottledRequests int
}

// control is a request to the control API.
func (s *Server) control(t *testing.T, method, path string) *http.Request {
	t.Helper()
	request, err := http.NewRequest(method, s.endpoint("http")+"_control/"+path, nil)
	must(t, err)
	request.Header.Set("authorization", "Bearer "+emulatorKey)
	return request
}

// send sends a request to the control API and reads its answer into `into`.
func send(request *http.Request, into any) error {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %d %s", request.URL, answer.StatusCode, text)
	}
	return json.Unmarshal(text, into)
}

func partitionsPath(database, container string) string {
	return fmt.Sprintf("dbs/%s/colls/%s/partitions", database, container)
}

// partitions lists the physical partitions of a container.
func (s *Server) partitions(t *testing.T, database, container string) []partition {
	t.Helper()
	var list struct{ Partitions []partition }
	must(t, send(s.control(t, "GET", partitionsPath(database, container)), &list))
	return list.Partitions
}

var requestsSample = regexp.MustCompile(
	`(?m)^perihelion_partition_requests_total\{database="([^"]*)",container="([^"]*)",partition="([^"]*)"\} (\d+)`)

// requestsByPartition reads from the metrics how many requests each partition of a container has had.
func (s *Server) requestsByPartition(t *testing.T, database, container string) map[string]int {
	t.Helper()
	answer, err := http.Get(s.endpoint("http") + "metrics")
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	found := map[string]int{}
	for _, sample := range requestsSample.FindAllStringSubmatch(string(text), -1) {
		if sample[1] == database && sample[2] == container {
			found[sample[3]], err = strconv.Atoi(sample[4])
			must(t, err)
		}
	}
	return found
}

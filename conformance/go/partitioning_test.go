package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The walk-throughs of the articles about partitioning: what is stored where, which partitions a query reaches. The data
// and the answers are shared with the suites of the other languages. Partitions are counted by the metrics of the
// server. This SDK does not merge and has no degree of parallelism: the server merges for it.

type reading struct {
	ID          string  `json:"id"`
	DeviceID    string  `json:"deviceId"`
	MetricType  string  `json:"metricType"`
	MetricValue float64 `json:"metricValue"`
	Unit        string  `json:"unit"`
	ReadingTime string  `json:"readingTime"`
}

type walk struct {
	Telemetry struct {
		PartitionKey string
		Throughput   int32
		Partitions   int
		Reading      reading
		Readings     []reading
		Queries      []struct {
			Text      string
			Reaches   int
			IsOrdered bool
			Expected  []any
		}
	}
	Raise struct {
		From, To                            int32
		Partitions, Generations, Containers int
	}
	Synthetic struct {
		PartitionKey   string
		Throughput     int32
		Dates, Devices []string
	}
	Tenants struct {
		PartitionKey string
		Throughput   int32
		Names        []string
	}
	Hierarchical struct {
		PartitionKeys            []string
		Throughput               int32
		Tenants, Users, Sessions []string
	}
	Shared struct{ Throughput int32 }
	Hot    struct {
		Flags                            []string
		Throughput                       int32
		Partitions, Values, SharedValues int
	}
}

func theWalk(t *testing.T) walk {
	t.Helper()
	text, err := os.ReadFile("../partitioning.json")
	must(t, err)
	var walk walk
	must(t, json.Unmarshal(text, &walk))
	return walk
}

// makeIn creates a container with the second hash; a throughput of 0 is none.
func makeIn(t *testing.T, database *azcosmos.DatabaseClient, throughput int32, paths ...string) *azcosmos.ContainerClient {
	t.Helper()
	f := fixture{database: database}
	definition := azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2}
	if len(paths) > 1 {
		definition.Kind = azcosmos.PartitionKeyKindMultiHash
	}
	options := &azcosmos.CreateContainerOptions{}
	if throughput > 0 {
		wanted := azcosmos.NewManualThroughputProperties(throughput)
		options.ThroughputProperties = &wanted
	}
	return f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, options)
}

// reached answers which partitions of a container a call reached.
func reached(t *testing.T, server *Server, database *azcosmos.DatabaseClient, container *azcosmos.ContainerClient, call func()) []string {
	t.Helper()
	before := server.requestsByPartition(t, database.ID(), container.ID())
	call()
	found := []string{}
	for id, count := range server.requestsByPartition(t, database.ID(), container.ID()) {
		if count > before[id] {
			found = append(found, id)
		}
	}
	return found
}

// put creates an item.
func put(t *testing.T, container *azcosmos.ContainerClient, key azcosmos.PartitionKey, item any) {
	t.Helper()
	_, err := container.CreateItem(background, key, jsonOf(t, item), nil)
	must(t, err)
}

func jsonOf(t *testing.T, item any) []byte {
	t.Helper()
	text, err := json.Marshal(item)
	must(t, err)
	return text
}

func fillReadings(t *testing.T, container *azcosmos.ContainerClient, readings []reading) {
	t.Helper()
	for _, reading := range readings {
		put(t, container, azcosmos.NewPartitionKeyString(reading.DeviceID), reading)
	}
}

// overTelemetry runs a test on a container with the readings.
func overTelemetry(t *testing.T, test func(t *testing.T, f *fixture, walk walk)) {
	walk := theWalk(t)
	overBoth(t, func(t *testing.T, f *fixture) {
		f.container = makeIn(t, f.database, walk.Telemetry.Throughput, walk.Telemetry.PartitionKey)
		fillReadings(t, f.container, walk.Telemetry.Readings)
		test(t, f, walk)
	})
}

func (f *fixture) partitions(t *testing.T, container *azcosmos.ContainerClient) []partition {
	t.Helper()
	return shared.partitions(t, f.database.ID(), container.ID())
}

func (f *fixture) reaches(t *testing.T, count int, container *azcosmos.ContainerClient, call func()) {
	t.Helper()
	found := reached(t, shared, f.database, container, call)
	isTrue(t, len(found) == count, "reached %v instead of %d partitions", found, count)
}

func TestThroughputDecidesTheNumberOfPartitions(t *testing.T) {
	overTelemetry(t, func(t *testing.T, f *fixture, walk walk) {
		equal(t, walk.Telemetry.Partitions, len(ranges(t, f.container)))
		found, documents := f.partitions(t, f.container), 0
		equal(t, walk.Telemetry.Partitions, len(found))
		for _, partition := range found {
			isTrue(t, partition.Documents > 0, "%s is empty", partition.ID)
			documents += partition.Documents
		}
		equal(t, len(walk.Telemetry.Readings), documents)
	})
}

func TestAReadingIsFoundByItsDevice(t *testing.T) {
	overTelemetry(t, func(t *testing.T, f *fixture, walk walk) {
		reading := walk.Telemetry.Reading
		key := azcosmos.NewPartitionKeyString(reading.DeviceID)
		isRead := func(value float64) {
			answer, err := f.container.ReadItem(background, key, reading.ID, nil)
			good(t, 200, answer, err)
			equal(t, value, parsed(t, answer.Value)["metricValue"].(float64))
		}
		f.reaches(t, 1, f.container, func() {
			put(t, f.container, key, reading)
			isRead(reading.MetricValue)
			reading.MetricValue = 104
			answer, err := f.container.ReplaceItem(background, key, reading.ID, jsonOf(t, reading), nil)
			good(t, 200, answer, err)
			isRead(104)
			answer, err = f.container.DeleteItem(background, key, reading.ID, nil)
			good(t, 204, answer, err)
		})
		_, err := f.container.ReadItem(background, key, reading.ID, nil)
		refused(t, 404, "0", err)
	})
}

func TestAFilterOnTheKeyReachesOnePartition(t *testing.T) {
	overTelemetry(t, func(t *testing.T, f *fixture, walk walk) {
		for _, query := range walk.Telemetry.Queries {
			expected := []string{}
			for _, row := range query.Expected {
				expected = append(expected, string(jsonOf(t, row)))
			}
			for _, size := range []int32{3, 100} {
				f.reaches(t, query.Reaches, f.container, func() {
					found := asked(t, f.container, query.Text, all, &azcosmos.QueryOptions{PageSizeHint: size})
					if !query.IsOrdered {
						slices.Sort(found)
					}
					equal(t, expected, found)
				})
			}
		}
	})
}

func TestRaisedThroughputSplitsEachPartitionTwice(t *testing.T) {
	overTelemetry(t, func(t *testing.T, f *fixture, walk walk) {
		pendingCount := 0
		for range walk.Raise.Containers {
			container := makeIn(t, f.database, walk.Raise.From, walk.Telemetry.PartitionKey)
			fillReadings(t, container, walk.Telemetry.Readings)
			equal(t, 1, len(f.partitions(t, container)))
			answer, err := container.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(walk.Raise.To), nil)
			equal(t, walk.Raise.To, manual(t, answer, err))
			// The bound is only for a server that never gets there.
			deadline := time.Now().Add(20 * time.Second)
			for answer.IsReplacePending {
				pendingCount++
				isTrue(t, time.Now().Before(deadline), "the change does not end")
				answer, err = container.ReadThroughput(background, nil)
				equal(t, walk.Raise.To, manual(t, answer, err))
			}
			found := f.partitions(t, container)
			equal(t, walk.Raise.Partitions, len(found))
			for _, partition := range found {
				equal(t, walk.Raise.Generations, len(partition.Parents))
			}
			equal(t, len(walk.Telemetry.Readings), len(slices.Compact(slices.Sorted(slices.Values(everything(t, container))))))
		}
		// One of several, since a fast server may be ready before it answers.
		isTrue(t, pendingCount > 0, "no change was pending")
	})
}

func TestASyntheticKeySpreadsADeviceOverDays(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		walk := theWalk(t).Synthetic
		container := makeIn(t, f.database, walk.Throughput, walk.PartitionKey)
		for _, device := range walk.Devices {
			for _, date := range walk.Dates {
				key := device + "-" + date
				put(t, container, azcosmos.NewPartitionKeyString(key), Item{"id": "1", "deviceId": device, "date": date, "partitionKey": key})
			}
		}
		device, date := walk.Devices[0], walk.Dates[0]
		key := device + "-" + date
		f.reaches(t, 1, container, func() {
			answer, err := container.ReadItem(background, azcosmos.NewPartitionKeyString(key), "1", nil)
			good(t, 200, answer, err)
			query := fmt.Sprintf("SELECT VALUE c.date FROM c WHERE c.partitionKey = '%s'", key)
			equal(t, []string{`"` + date + `"`}, asked(t, container, query, all, nil))
		})
		f.reaches(t, 4, container, func() {
			query := fmt.Sprintf("SELECT VALUE c.date FROM c WHERE c.deviceId = '%s' ORDER BY c.date", device)
			equal(t, `"`+strings.Join(walk.Dates, `" "`)+`"`, strings.Join(asked(t, container, query, all, nil), " "))
		})
	})
}

func TestTenantsShareAContainer(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		walk := theWalk(t).Tenants
		container := makeIn(t, f.database, walk.Throughput, walk.PartitionKey)
		for _, tenant := range walk.Names {
			batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString(tenant))
			for _, id := range []string{"profile", "settings"} {
				batch.CreateItem(jsonOf(t, Item{"id": id, "tenantId": tenant, "owner": tenant}), nil)
			}
			answer, err := container.ExecuteTransactionalBatch(background, batch, nil)
			must(t, err)
			isTrue(t, answer.Success, "the batch failed")
		}
		first, second := azcosmos.NewPartitionKeyString(walk.Names[0]), azcosmos.NewPartitionKeyString(walk.Names[1])
		f.reaches(t, 1, container, func() {
			query := fmt.Sprintf("SELECT VALUE COUNT(1) FROM c WHERE c.tenantId = '%s'", walk.Names[0])
			equal(t, []string{"2"}, asked(t, container, query, all, nil))
			equal(t, 2, len(ids(items(t, container, first, nil))))
		})
		batch := container.NewTransactionalBatch(first)
		batch.DeleteItem("profile", nil)
		batch.CreateItem(jsonOf(t, Item{"id": "settings", "tenantId": walk.Names[0]}), nil)
		answer, err := container.ExecuteTransactionalBatch(background, batch, nil)
		must(t, err)
		isTrue(t, !answer.Success, "the batch succeeded")
		deleted, err := container.DeleteItem(background, first, "profile", nil)
		good(t, 204, deleted, err)
		other, err := container.ReadItem(background, second, "profile", nil)
		good(t, 200, other, err)
		f.reaches(t, 4, container, func() {
			count := fmt.Sprint(2*len(walk.Names) - 1)
			equal(t, []string{count}, asked(t, container, "SELECT VALUE COUNT(1) FROM c", all, nil))
		})
	})
}

func TestALargeTenantHasAContainerOfItsOwn(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		small, large := makeIn(t, f.database, 400, "/id"), makeIn(t, f.database, 20000, "/id")
		equal(t, 1, len(f.partitions(t, small)))
		equal(t, 4, len(f.partitions(t, large)))
		key := azcosmos.NewPartitionKeyString("1")
		put(t, small, key, Item{"id": "1"})
		f.reaches(t, 0, large, func() {
			equal(t, []string{"1"}, everything(t, small))
			replaced, err := small.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(500), nil)
			equal(t, 500, manual(t, replaced, err))
		})
		equal(t, []string{}, everything(t, large))
		read, err := large.ReadThroughput(background, nil)
		equal(t, 20000, manual(t, read, err))
	})
}

func TestPrefixesOfHierarchicalKeysReachOnePartition(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		walk := theWalk(t).Hierarchical
		container := makeIn(t, f.database, walk.Throughput, walk.PartitionKeys...)
		for _, tenant := range walk.Tenants {
			for _, user := range walk.Users {
				for _, session := range walk.Sessions {
					key := azcosmos.NewPartitionKeyString(tenant).AppendString(user).AppendString(session)
					put(t, container, key, Item{"id": user + session, "tenantId": tenant, "userId": user, "sessionId": session})
				}
			}
		}
		tenant := azcosmos.NewPartitionKeyString(walk.Tenants[0])
		user := tenant.AppendString("u1")
		session := user.AppendString("s1")
		below := func(key azcosmos.PartitionKey) []string {
			return slices.Sorted(slices.Values(ids(items(t, container, key, nil))))
		}
		f.reaches(t, 1, container, func() {
			answer, err := container.ReadItem(background, session, "u1s1", nil)
			good(t, 200, answer, err)
			equal(t, []string{"u1s1", "u1s2", "u2s1", "u2s2"}, below(tenant))
			equal(t, []string{"u1s1", "u1s2"}, below(user))
			equal(t, []string{"u1s1"}, below(session))
		})
		f.reaches(t, 4, container, func() {
			found := asked(t, container, "SELECT VALUE c.id FROM c WHERE c.userId = 'u1'", all, nil)
			equal(t, 2*len(walk.Tenants), len(found))
		})
	})
}

// makeSharing creates a database whose containers share its throughput.
func makeSharing(t *testing.T, client *azcosmos.Client, throughput int32) *azcosmos.DatabaseClient {
	t.Helper()
	name, wanted := unique("db"), azcosmos.NewManualThroughputProperties(throughput)
	options := &azcosmos.CreateDatabaseOptions{ThroughputProperties: &wanted}
	_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, options)
	must(t, err)
	database, err := client.NewDatabase(name)
	must(t, err)
	return database
}

func TestContainersOfASharingDatabaseHaveOnePartition(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		throughput := theWalk(t).Shared.Throughput
		database := makeSharing(t, f.client, throughput)
		sharing, own := makeIn(t, database, 0, "/pk"), makeIn(t, database, throughput, "/pk")
		equal(t, 1, len(shared.partitions(t, database.ID(), sharing.ID())))
		equal(t, 4, len(shared.partitions(t, database.ID(), own.ID())))
		read, err := database.ReadThroughput(background, nil)
		equal(t, throughput, manual(t, read, err))
		_, err = sharing.ReadThroughput(background, nil)
		isTrue(t, err != nil, "the container has a throughput of its own")
		_, err = database.Delete(background, nil)
		must(t, err)
	})
}

// impatient is a client that does not retry.
func (s *Server) impatient(t *testing.T) *azcosmos.Client {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(emulatorKey)
	must(t, err)
	options := s.options()
	options.Retry = policy.RetryOptions{MaxRetries: -1}
	client, err := azcosmos.NewClientWithKey(s.endpoint("http"), credential, options)
	must(t, err)
	return client
}

func numbers(count int) []int {
	found := make([]int, count)
	for number := range found {
		found[number] = number
	}
	return found
}

// throttledItem tries to create an item that must be refused because the throughput is used up.
func throttledItem(t *testing.T, container *azcosmos.ContainerClient, device, id string) {
	t.Helper()
	_, err := container.CreateItem(background, azcosmos.NewPartitionKeyString(device), jsonOf(t, Item{"id": id, "deviceId": device}), nil)
	refused(t, 429, "3200", err)
	var refusal *azcore.ResponseError
	isTrue(t, errors.As(err, &refusal) && refusal.RawResponse.Header.Get("x-ms-retry-after-ms") > "0", "no delay")
}

// patient is a client that retries as it does by default. The result creates items in the background.
func patient(t *testing.T, server *Server, database, container, device string) func(count int) <-chan error {
	t.Helper()
	own, err := server.client(t, "http").NewContainer(database, container)
	must(t, err)
	key, ended := azcosmos.NewPartitionKeyString(device), make(chan error, 1)
	// It connects now.
	_, err = own.ReadItem(background, key, "none", nil)
	refused(t, 404, "0", err)
	create := func(count int) error {
		for number := range count {
			text := fmt.Sprintf(`{"id":"patient%d","deviceId":"%s"}`, number, device)
			if _, err := own.CreateItem(background, key, []byte(text), nil); err != nil {
				return err
			}
		}
		return nil
	}
	return func(count int) <-chan error {
		go func() { ended <- create(count) }()
		return ended
	}
}

func throttledByPartition(t *testing.T, server *Server, database, container string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, partition := range server.partitions(t, database, container) {
		if partition.ThrottledRequests > 0 {
			found[partition.ID] = partition.ThrottledRequests
		}
	}
	return found
}

func TestAHotPartitionThrottlesItselfOnly(t *testing.T) {
	walk := theWalk(t)
	server := ownServer(t, "dev", walk.Hot.Flags...)
	client := server.impatient(t)
	_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "hot"}, nil)
	must(t, err)
	database, err := client.NewDatabase("hot")
	must(t, err)
	container := makeIn(t, database, walk.Hot.Throughput, "/deviceId")
	home, partitions := map[string]string{}, map[string]bool{}
	for _, reading := range walk.Telemetry.Readings {
		device := reading.DeviceID
		if home[device] != "" {
			continue
		}
		found := reached(t, server, database, container, func() {
			put(t, container, azcosmos.NewPartitionKeyString(device), Item{"id": "1", "deviceId": device})
		})
		equal(t, 1, len(found))
		home[device], partitions[found[0]] = found[0], true
	}
	equal(t, walk.Hot.Partitions, len(partitions))
	hot := walk.Telemetry.Readings[0].DeviceID
	create := patient(t, server, "hot", container.ID(), hot)
	put(t, container, azcosmos.NewPartitionKeyString(hot), Item{"id": "large", "deviceId": hot, "values": numbers(walk.Hot.Values)})
	throttledItem(t, container, hot, "2")
	before := throttledByPartition(t, server, "hot", container.ID())
	ended := create(3)
	for device, partition := range home {
		if partition != home[hot] {
			put(t, container, azcosmos.NewPartitionKeyString(device), Item{"id": "2", "deviceId": device})
		}
	}
	must(t, <-ended)
	after := throttledByPartition(t, server, "hot", container.ID())
	equal(t, 1, len(after))
	isTrue(t, after[home[hot]] > before[home[hot]], "the patient client was not refused: %v, then %v", before, after)
}

func TestContainersShareAnEnforcedThroughput(t *testing.T) {
	walk := theWalk(t).Hot
	server := ownServer(t, "dev", walk.Flags...)
	database := makeSharing(t, server.impatient(t), walk.Throughput)
	one, two, own := makeIn(t, database, 0, "/deviceId"), makeIn(t, database, 0, "/deviceId"), makeIn(t, database, 400, "/deviceId")
	create := patient(t, server, database.ID(), two.ID(), "b")
	put(t, one, azcosmos.NewPartitionKeyString("a"), Item{"id": "large", "deviceId": "a", "values": numbers(walk.SharedValues)})
	throttledItem(t, two, "b", "1")
	ended := create(1)
	put(t, own, azcosmos.NewPartitionKeyString("b"), Item{"id": "1", "deviceId": "b"})
	must(t, <-ended)
}

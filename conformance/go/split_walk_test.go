package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A container that splits while clients write, query and follow the change feed, and the server is killed twice. No
// error but that of a broken connection may reach the application, and nothing may be lost or come twice.

const (
	walkKeys       = 24
	walkPartitions = 8
	walkWriters    = 3
	// walkItems bounds the items of a writer; later writes replace them.
	walkItems = 300
	// walkSplitFrom is the number of documents from which on a partition is worth a split.
	walkSplitFrom = 40
	walkMax       = 120 * time.Second
)

// walkItem is an item of a writer. The number never changes, the value grows with each write.
type walkItem struct {
	ID      string `json:"id"`
	Key     string `json:"pk"`
	Number  int    `json:"number"`
	Value   int    `json:"value"`
	Padding string `json:"padding,omitempty"`
}

// journal is what the writers know of an item.
type journal struct {
	key          string
	acknowledged int
	// uncertain are the values whose writes met an outage: they may be absent, or written twice by a retry of the SDK.
	uncertain []int
}

// walkers are clients that work until they are stopped, and what they have seen.
type walkers struct {
	server *Server
	// outages counts the beginnings and ends of outages: it is odd while the server is down.
	outages atomic.Int64
	// round is what a client reports to have reached with each call that succeeds.
	round   atomic.Int64
	reached []*atomic.Int64
	stop    atomic.Bool
	group   sync.WaitGroup

	mutex    sync.Mutex
	failures []error
	items    map[string]*journal
	seen     map[string][]int
	drained  int
}

// container is the container as a client of its own sees it.
func (w *walkers) container(t *testing.T) *azcosmos.ContainerClient {
	t.Helper()
	container, err := w.server.client(t, "http").NewContainer("d", "c")
	must(t, err)
	return container
}

// caller makes the calls of one client.
type caller struct {
	walkers *walkers
	reached *atomic.Int64
}

// start runs a client until it is stopped.
func (w *walkers) start(work func(caller) error) {
	reached := &atomic.Int64{}
	w.reached = append(w.reached, reached)
	w.group.Add(1)
	go func() {
		defer w.group.Done()
		for !w.stop.Load() {
			if err := work(caller{w, reached}); err != nil {
				w.mutex.Lock()
				w.failures = append(w.failures, err)
				w.mutex.Unlock()
				return
			}
		}
	}()
}

// call makes a call. It returns whether it succeeded and whether it met an outage; an error without an outage is a
// failure.
func (c caller) call(call func() error) (succeeded, metOutage bool, failure error) {
	round, before := c.walkers.round.Load(), c.walkers.outages.Load()
	err := call()
	metOutage = before%2 == 1 || c.walkers.outages.Load() != before
	var refusal *azcore.ResponseError
	switch {
	case err == nil:
		c.reached.Store(round)
		return true, metOutage, nil
	case metOutage && !errors.As(err, &refusal):
		return false, true, nil
	default:
		return false, metOutage, err
	}
}

// everyoneGoesOn waits until each client has succeeded with a call that it began after now.
func (w *walkers) everyoneGoesOn(t *testing.T, deadline time.Time) {
	t.Helper()
	round := w.round.Add(1)
	for ; time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		w.noFailure(t)
		if !slices.ContainsFunc(w.reached, func(reached *atomic.Int64) bool { return reached.Load() < round }) {
			return
		}
	}
	t.Fatal("a client hangs")
}

func (w *walkers) noFailure(t *testing.T) {
	t.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	isTrue(t, len(w.failures) == 0, "%v", w.failures)
}

// writer creates items and replaces some of them.
func (w *walkers) writer(t *testing.T, index int) func(caller) error {
	container, count := w.container(t), 0
	return func(c caller) error {
		count++
		number := count
		if count%3 == 0 {
			number = count / 3
		}
		number %= walkItems
		item := walkItem{
			ID: fmt.Sprintf("%d-%d", index, number), Key: fmt.Sprintf("k%d", number%walkKeys), Number: number, Value: count,
			Padding: strings.Repeat("x", 200),
		}
		text, err := json.Marshal(item)
		if err != nil {
			return err
		}
		succeeded, metOutage, failure := c.call(func() error {
			_, err := container.UpsertItem(background, azcosmos.NewPartitionKeyString(item.Key), text, nil)
			return err
		})
		w.mutex.Lock()
		defer w.mutex.Unlock()
		entry := w.items[item.ID]
		if entry == nil {
			entry = &journal{key: item.Key}
			w.items[item.ID] = entry
		}
		if metOutage {
			entry.uncertain = append(entry.uncertain, count)
		}
		if succeeded {
			entry.acknowledged = count
		}
		return failure
	}
}

// acknowledged are the ids of items that have been written.
func (w *walkers) acknowledged() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var found []string
	for id, entry := range w.items {
		if entry.acknowledged > 0 {
			found = append(found, id)
		}
	}
	return found
}

// querier drains an ordered query page by page, over splits and outages: what was acknowledged before is there, once.
func (w *walkers) querier(t *testing.T) func(caller) error {
	container := w.container(t)
	return func(c caller) error {
		before := w.acknowledged()
		met, last := map[string]bool{}, -1
		options := azcosmos.QueryOptions{PageSizeHint: 50}
		for range pagesMax {
			var page azcosmos.QueryItemsResponse
			query := "SELECT c.id, c.number, c['value'] FROM c ORDER BY c.number"
			succeeded, _, failure := c.call(func() (err error) {
				page, err = container.NewQueryItemsPager(query, all, &options).NextPage(relaxed)
				return err
			})
			if failure != nil {
				return failure
			}
			if !succeeded {
				continue // from the same continuation
			}
			for _, text := range page.Items {
				var item walkItem
				if err := json.Unmarshal(text, &item); err != nil {
					return err
				}
				if met[item.ID] || item.Number < last {
					return fmt.Errorf("a query has %s twice or out of order, after %d", item.ID, last)
				}
				met[item.ID], last = true, item.Number
			}
			if options.ContinuationToken = page.ContinuationToken; page.ContinuationToken == nil {
				for _, id := range before {
					if !met[id] {
						return fmt.Errorf("a query lacks %s", id)
					}
				}
				w.mutex.Lock()
				defer w.mutex.Unlock()
				w.drained++
				return nil
			}
		}
		return errors.New("a query does not end")
	}
}

// follower reads a page of the change feed, from the ranges that the container had at first.
func (w *walkers) follower(t *testing.T) func(caller) error {
	container := w.container(t)
	options := azcosmos.ChangeFeedOptions{FeedRange: whole(t, container), MaxItemCount: 100}
	return func(c caller) error {
		var page azcosmos.ChangeFeedResponse
		succeeded, _, failure := c.call(func() (err error) {
			page, err = container.ReadChangeFeed(background, &options)
			return err
		})
		if failure != nil || !succeeded {
			return failure
		}
		options.Continuation = &page.ContinuationToken
		w.mutex.Lock()
		defer w.mutex.Unlock()
		for _, text := range page.Items {
			var item walkItem
			if err := json.Unmarshal(text, &item); err != nil {
				return err
			}
			w.seen[item.ID] = append(w.seen[item.ID], item.Value)
		}
		return nil
	}
}

// crash kills the server and starts it again; the outage ends when each client has been served.
func (w *walkers) crash(t *testing.T, deadline time.Time) {
	t.Helper()
	w.outages.Add(1)
	w.server.kill()
	must(t, w.server.start())
	w.everyoneGoesOn(t, deadline)
	w.outages.Add(1)
}

// isUnfinished tells whether a split is at work.
func (w *walkers) isUnfinished(t *testing.T) bool {
	t.Helper()
	return slices.ContainsFunc(w.server.partitions(t, "d", "c"), func(one partition) bool {
		return one.State == "splitting" || one.State == "separating"
	})
}

// crashIn asks for a split and kills the server as soon as it is seen to be at work; answers how often it was killed.
func (w *walkers) crashIn(t *testing.T, request *http.Request, deadline time.Time) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		var split struct{ Children []string }
		ended <- send(request, &split)
	}()
	isDone, isUnfinished := false, false
	for !isUnfinished && !isDone {
		select {
		case <-ended:
			isDone = true
		default:
		}
		// The split itself may be too short to be seen; its children go on sharing rows for a while.
		isUnfinished = w.isUnfinished(t)
	}
	if !isUnfinished {
		return 0
	}
	w.crash(t, deadline)
	if !isDone {
		<-ended
	}
	return 1
}

// splitUntil splits the largest partition again and again, and kills the server twice, once while a split is unfinished.
func (w *walkers) splitUntil(t *testing.T, count int, deadline time.Time) {
	t.Helper()
	kills := 0
	for {
		w.everyoneGoesOn(t, deadline)
		partitions := w.server.partitions(t, "d", "c")
		if len(partitions) >= count {
			break
		}
		largest := slices.MaxFunc(partitions, func(a, b partition) int { return a.Documents - b.Documents })
		if largest.Documents < walkSplitFrom {
			continue
		}
		request := w.server.control(t, "POST", fmt.Sprintf("%s/%s/split", partitionsPath("d", "c"), largest.ID))
		if kills == 1 && len(partitions) >= 4 {
			kills += w.crashIn(t, request, deadline)
			continue
		}
		var split struct{ Children []string }
		must(t, send(request, &split))
		equal(t, 2, len(split.Children))
		if kills == 0 && len(partitions) >= 3 {
			w.crash(t, deadline)
			kills++
		}
	}
	equal(t, 2, kills)
}

func TestNobodyNoticesThatAContainerSplits(t *testing.T) {
	server := ownServer(t, "dev")
	client := server.client(t, "http")
	_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "d"}, nil)
	must(t, err)
	database, err := client.NewDatabase("d")
	must(t, err)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	_, err = database.CreateContainer(background, azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: key}, nil)
	must(t, err)

	w := &walkers{server: server, items: map[string]*journal{}, seen: map[string][]int{}}
	t.Cleanup(func() { w.stop.Store(true) })
	for index := range walkWriters {
		w.start(w.writer(t, index))
	}
	w.start(w.querier(t))
	follow := w.follower(t)
	w.start(follow)
	w.splitUntil(t, walkPartitions, time.Now().Add(walkMax))
	w.stop.Store(true)
	w.group.Wait()
	w.noFailure(t)
	isTrue(t, w.drained > 0, "no query was drained")
	w.check(t, follow)
	for _, partition := range server.partitions(t, "d", "c") {
		isTrue(t, len(partition.Parents) > 0, "%s has no parents", partition.ID)
	}
}

// check compares the journal, the items, their number and the change feed.
func (w *walkers) check(t *testing.T, follow func(caller) error) {
	t.Helper()
	container := w.container(t)
	found := map[string]int{}
	for _, page := range items(t, container, all, nil) {
		for _, item := range page {
			found[item["id"].(string)] = int(item["value"].(float64))
		}
	}
	equal(t, []string{fmt.Sprint(len(found))}, asked(t, container, "SELECT VALUE COUNT(1) FROM c", all, nil))
	for id, value := range found {
		entry := w.items[id]
		isTrue(t, entry != nil, "%s was never written", id)
		isTrue(t, value == entry.acknowledged || slices.Contains(entry.uncertain, value), "%s is %d, not %v", id, value, *entry)
		answer, err := container.ReadItem(background, azcosmos.NewPartitionKeyString(entry.key), id, nil)
		must(t, err)
		equal(t, float64(value), parsed(t, answer.Value)["value"].(float64))
	}
	for id, entry := range w.items {
		isTrue(t, found[id] >= entry.acknowledged, "%s is %d, not %v", id, found[id], *entry)
	}
	isFollowed := func() bool {
		must(t, follow(caller{w, &atomic.Int64{}}))
		for id, value := range found {
			if values := w.seen[id]; len(values) == 0 || values[len(values)-1] != value {
				return false
			}
		}
		return true
	}
	eventually(t, isFollowed)
	for id, values := range w.seen {
		for index, value := range values[1:] {
			isRepeated := value == values[index] && slices.Contains(w.items[id].uncertain, value)
			isTrue(t, values[index] < value || isRepeated, "the feed of %s is out of order or repeats: %v", id, values)
		}
	}
}

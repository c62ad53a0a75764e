package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// pagesMax is a number of pages that no feed of these tests has.
const pagesMax = 1000

// changes reads until there is nothing new; it returns the ids and where to go on.
func changes(t *testing.T, container *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([]string, string) {
	t.Helper()
	found := []string{}
	for range pagesMax {
		answer, err := container.ReadChangeFeed(background, &options)
		must(t, err)
		isTrue(t, answer.ContinuationToken != "", "no continuation")
		options.Continuation = &answer.ContinuationToken
		if len(answer.Items) == 0 {
			return found, answer.ContinuationToken
		}
		if options.MaxItemCount > 0 {
			isTrue(t, len(answer.Items) <= int(options.MaxItemCount), "a page of %d", len(answer.Items))
		}
		for _, bytes := range answer.Items {
			item := parsed(t, bytes)
			isTrue(t, item["_lsn"].(float64) > 0, "no _lsn")
			found = append(found, item["id"].(string))
		}
	}
	t.Fatal("the feed does not end")
	return nil, ""
}

func ranges(t *testing.T, container *azcosmos.ContainerClient) []azcosmos.FeedRange {
	t.Helper()
	found, err := container.ReadFeedRanges(background, nil)
	must(t, err)
	return found
}

// whole is the range of a container that has only one.
func whole(t *testing.T, container *azcosmos.ContainerClient) *azcosmos.FeedRange {
	t.Helper()
	found := ranges(t, container)
	equal(t, 1, len(found))
	return &found[0]
}

func TestTheLastVersionsComeInTheOrderOfWrites(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, id := range []string{"1", "2", "3"} {
			f.create(t, keyA, fmt.Sprintf(`{'id':'%s','pk':'a'}`, id))
		}
		_, err := f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','n':2}`), nil)
		must(t, err)
		_, err = f.container.DeleteItem(background, keyA, "2", nil)
		must(t, err)
		for _, size := range []int32{0, 1, 2} {
			options := azcosmos.ChangeFeedOptions{FeedRange: whole(t, f.container), MaxItemCount: size}
			found, token := changes(t, f.container, options)
			equal(t, []string{"3", "1"}, found)
			found, _ = changes(t, f.container, azcosmos.ChangeFeedOptions{Continuation: &token})
			equal(t, []string{}, found)
		}
		_, token := changes(t, f.container, azcosmos.ChangeFeedOptions{FeedRange: whole(t, f.container)})
		f.create(t, keyA, `{'id':'4','pk':'a'}`)
		found, _ := changes(t, f.container, azcosmos.ChangeFeedOptions{Continuation: &token})
		equal(t, []string{"4"}, found)
	})
}

func TestChangesSinceATime(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		first, err := f.container.ReadItem(background, keyA, "1", nil)
		must(t, err)
		second := time.Unix(int64(parsed(t, first.Value)["_ts"].(float64)), 0)
		for time.Now().Before(second.Add(1100 * time.Millisecond)) {
			time.Sleep(50 * time.Millisecond)
		}
		f.create(t, keyA, `{'id':'2','pk':'a'}`)
		since := func(start time.Time) []string {
			found, _ := changes(t, f.container, azcosmos.ChangeFeedOptions{FeedRange: whole(t, f.container), StartFrom: &start})
			return found
		}
		equal(t, []string{"1", "2"}, since(second))
		equal(t, []string{"2"}, since(second.Add(time.Second)))
	})
}

func TestTheRangesOfAContainerHaveAllChangesOnce(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		throughput := azcosmos.NewManualThroughputProperties(24000)
		f.container = f.make(t, azcosmos.ContainerProperties{}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
		for number := range 30 {
			key := fmt.Sprintf("key-%d", number)
			f.create(t, azcosmos.NewPartitionKeyString(key), fmt.Sprintf(`{'id':'%d','pk':'%s'}`, number, key))
		}
		parts := ranges(t, f.container)
		equal(t, 4, len(parts))
		seen := []string{}
		for _, part := range parts {
			found, _ := changes(t, f.container, azcosmos.ChangeFeedOptions{FeedRange: &part, MaxItemCount: 3})
			seen = append(seen, found...)
		}
		slices.Sort(seen)
		equal(t, 30, len(slices.Compact(seen)))
		key := azcosmos.NewPartitionKeyString("key-7")
		for _, part := range parts {
			found, _ := changes(t, f.container, azcosmos.ChangeFeedOptions{FeedRange: &part, PartitionKey: &key})
			isTrue(t, len(found) == 0 || slices.Equal(found, []string{"7"}), "%v", found)
		}
	})
}

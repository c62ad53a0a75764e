package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// relaxed is for queries that need a merge: this SDK leaves it to the server.
var relaxed = policy.WithHTTPHeader(context.Background(), http.Header{"x-perihelion-compatibility": {"relaxed"}})

// overQueried runs a test on a container of three ranges with 40 items under seven keys.
func overQueried(t *testing.T, test func(t *testing.T, f *fixture)) {
	overBoth(t, func(t *testing.T, f *fixture) {
		throughput := azcosmos.NewManualThroughputProperties(18000)
		options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
		f.container = f.make(t, azcosmos.ContainerProperties{}, options)
		teams := []string{"red", "green", "blue"}
		for number := range 40 {
			key := fmt.Sprintf("key-%d", number%7)
			f.create(t, azcosmos.NewPartitionKeyString(key), fmt.Sprintf(
				`{'id':'%02d','pk':'%s','n':%d,'team':'%s','tags':['t%d']}`, number, key, number, teams[number%3], number%5))
		}
		test(t, f)
	})
}

// asked is the rows of a query as JSON, page by page.
func asked(t *testing.T, container *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) []string {
	t.Helper()
	found := []string{}
	for pager := container.NewQueryItemsPager(query, key, options); pager.More(); {
		page, err := pager.NextPage(relaxed)
		must(t, err)
		common(t, page.Response)
		for _, bytes := range page.Items {
			var row any
			must(t, json.Unmarshal(bytes, &row))
			text, err := json.Marshal(row)
			must(t, err)
			found = append(found, string(text))
		}
	}
	return found
}

func TestQueriesAreAnsweredWholeOverAllRanges(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		for _, each := range []struct {
			query    string
			expected []string
		}{
			{"SELECT VALUE c.n FROM c WHERE c.team = 'red' AND c.n > 30 ORDER BY c.n DESC", []string{"39", "36", "33"}},
			{"SELECT TOP 2 c.id FROM c ORDER BY c.n", []string{`{"id":"00"}`, `{"id":"01"}`}},
			{"SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 2", []string{"10", "11"}},
			{"SELECT VALUE COUNT(1) FROM c", []string{"40"}},
			{"SELECT VALUE AVG(c.n) FROM c", []string{"19.5"}},
			{"SELECT MIN(c.n) AS least, MAX(c.n) AS most FROM c", []string{`{"least":0,"most":39}`}},
			{"SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team", []string{`"blue"`, `"green"`, `"red"`}},
			{"SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE t = 't4'", []string{"8"}},
			{"SELECT VALUE c.nothing FROM c", []string{}},
		} {
			for _, size := range []int32{1, 7, 100} {
				found := asked(t, f.container, each.query, all, &azcosmos.QueryOptions{PageSizeHint: size})
				equal(t, each.expected, found)
			}
		}
		groups := asked(t, f.container, "SELECT c.team, COUNT(1) AS n FROM c GROUP BY c.team", all, nil)
		slices.Sort(groups)
		equal(t, []string{`{"n":13,"team":"blue"}`, `{"n":13,"team":"green"}`, `{"n":14,"team":"red"}`}, groups)
	})
}

func TestAMergeIsLeftToTheClient(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		for _, query := range []string{"SELECT * FROM c ORDER BY c.n", "SELECT VALUE COUNT(1) FROM c", "SELECT TOP 1 * FROM c"} {
			_, err := f.container.NewQueryItemsPager(query, all, nil).NextPage(background)
			refused(t, 400, "1004", err)
		}
		found := 0
		for pager := f.container.NewQueryItemsPager("SELECT * FROM c", all, nil); pager.More(); {
			page, err := pager.NextPage(background)
			must(t, err)
			found += len(page.Items)
		}
		equal(t, 40, found)
	})
}

func TestParametersAndOneKey(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		parameters := []azcosmos.QueryParameter{{Name: "@n", Value: 10}, {Name: "@teams", Value: []string{"red", "blue"}}}
		query := "SELECT VALUE c.n FROM c WHERE c.n > @n AND ARRAY_CONTAINS(@teams, c.team) ORDER BY c.n"
		found := asked(t, f.container, query, azcosmos.NewPartitionKeyString("key-3"), &azcosmos.QueryOptions{QueryParameters: parameters})
		equal(t, []string{"17", "24", "38"}, found)
	})
}

func TestAContinuationOfAnOrderedQueryGoesOn(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		query := "SELECT VALUE c.n FROM c ORDER BY c.n DESC"
		first, err := f.container.NewQueryItemsPager(query, all, &azcosmos.QueryOptions{PageSizeHint: 6}).NextPage(relaxed)
		must(t, err)
		equal(t, 6, len(first.Items))
		rest := asked(t, f.container, query, all, &azcosmos.QueryOptions{ContinuationToken: first.ContinuationToken})
		equal(t, asked(t, f.container, query, all, nil)[6:], rest)
	})
}

func TestHierarchicalKeysAndTheirBeginningsAreQueried(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		definition := azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/a", "/b"}, Version: 2}
		container := f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, nil)
		for number := range 12 {
			key := azcosmos.NewPartitionKeyNumber(float64(number % 2)).AppendNumber(float64(number % 3))
			item := fmt.Sprintf(`{'id':'%d','a':%d,'b':%d,'n':%d}`, number, number%2, number%3, number)
			answer, err := container.CreateItem(background, key, body(item), nil)
			good(t, 201, answer, err)
		}
		query := "SELECT VALUE c.n FROM c ORDER BY c.n"
		one := azcosmos.NewPartitionKeyNumber(1)
		equal(t, []string{"1", "3", "5", "7", "9", "11"}, asked(t, container, query, one, nil))
		equal(t, []string{"5", "11"}, asked(t, container, query, one.AppendNumber(2), nil))
	})
}

func TestReadMany(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		identities := []azcosmos.ItemIdentity{{ID: "none", PartitionKey: keyA}}
		for number := range 20 {
			key := azcosmos.NewPartitionKeyString(fmt.Sprintf("key-%d", number%7))
			identities = append(identities, azcosmos.ItemIdentity{ID: fmt.Sprintf("%02d", number), PartitionKey: key})
		}
		answer, err := f.container.ReadManyItems(background, identities, nil)
		must(t, err)
		equal(t, 20, len(answer.Items))
	})
}

func TestAQueryThatIsNoneIsRefused(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		for _, query := range []string{"SELECT", "SELECT NOSUCH(c.n) FROM c", "SELECT * FROM c ORDER BY c.n + 1"} {
			_, err := f.container.NewQueryItemsPager(query, all, nil).NextPage(background)
			refused(t, 400, "0", err)
		}
	})
}

func TestIndexesThatAQueryUsesAreTold(t *testing.T) {
	overQueried(t, func(t *testing.T, f *fixture) {
		options := &azcosmos.QueryOptions{PopulateIndexMetrics: true}
		key := azcosmos.NewPartitionKeyString("key-1")
		page, err := f.container.NewQueryItemsPager("SELECT * FROM c WHERE c.n > 3", key, options).NextPage(background)
		must(t, err)
		text, err := base64.StdEncoding.DecodeString(*page.IndexMetrics)
		must(t, err)
		var told struct{ UtilizedSingleIndexes []struct{ IndexSpec string } }
		must(t, json.Unmarshal(text, &told))
		equal(t, 2, len(told.UtilizedSingleIndexes))
		equal(t, "/n/?", told.UtilizedSingleIndexes[0].IndexSpec)
		equal(t, "/pk/?", told.UtilizedSingleIndexes[1].IndexSpec)
	})
}

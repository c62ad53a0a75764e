package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var all = azcosmos.NewPartitionKey()

func overFilled(t *testing.T, test func(t *testing.T, f *fixture)) {
	overBoth(t, func(t *testing.T, f *fixture) {
		throughput := azcosmos.NewManualThroughputProperties(12000)
		options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
		f.container = f.make(t, azcosmos.ContainerProperties{}, options)
		for number := range 25 {
			key := fmt.Sprintf("key-%d", number%4)
			f.create(t, azcosmos.NewPartitionKeyString(key), fmt.Sprintf(`{'id':'%d','pk':'%s'}`, number, key))
		}
		test(t, f)
	})
}

func TestPagesOfAnySizeGiveTheSameOrder(t *testing.T) {
	overFilled(t, func(t *testing.T, f *fixture) {
		whole := everything(t, f.container)
		equal(t, 25, len(whole))
		for _, size := range []int32{1, 7, 24, 25, 26} {
			pages := items(t, f.container, all, &azcosmos.QueryOptions{PageSizeHint: size})
			equal(t, whole, ids(pages))
			for _, page := range pages {
				isTrue(t, len(page) <= int(size), "a page of %d", len(page))
			}
		}
	})
}

func TestAContinuationGoesOnWhereItWas(t *testing.T) {
	overFilled(t, func(t *testing.T, f *fixture) {
		pager := f.container.NewQueryItemsPager("SELECT * FROM c", all, &azcosmos.QueryOptions{PageSizeHint: 6})
		first, err := pager.NextPage(background)
		must(t, err)
		common(t, first.Response)
		isTrue(t, first.ContinuationToken != nil, "no continuation")
		rest := items(t, f.container, all, &azcosmos.QueryOptions{ContinuationToken: first.ContinuationToken, PageSizeHint: 5})
		equal(t, everything(t, f.container)[6:], ids(rest))
	})
}

func TestTheItemsOfOneKey(t *testing.T) {
	overFilled(t, func(t *testing.T, f *fixture) {
		found := ids(items(t, f.container, azcosmos.NewPartitionKeyString("key-1"), &azcosmos.QueryOptions{PageSizeHint: 4}))
		slices.Sort(found)
		equal(t, []string{"1", "13", "17", "21", "5", "9"}, found)
	})
}

func TestAMadeUpContinuationIsRefused(t *testing.T) {
	overFilled(t, func(t *testing.T, f *fixture) {
		token := "nonsense"
		pager := f.container.NewQueryItemsPager("SELECT * FROM c", all, &azcosmos.QueryOptions{ContinuationToken: &token})
		_, err := pager.NextPage(background)
		refused(t, 400, "0", err)
	})
}

package table

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// fill adds the rows of the shared data.
func (f *fixture) fill(t *testing.T) {
	t.Helper()
	for _, row := range data.Rows {
		f.add(t, stored(row))
	}
}

func found(pages [][]aztables.EDMEntity) string {
	text := ""
	for _, page := range pages {
		for _, entity := range page {
			text += entity.RowKey
		}
	}
	return text
}

func TestFilters(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.fill(t)
		for _, one := range data.Filters {
			t.Run(one.Filter, func(t *testing.T) {
				expected := one.Rows
				if one.Azurite != nil {
					expected = answer(one.Rows, *one.Azurite)
				}
				equal(t, expected, found(pages(t, f.table, &aztables.ListEntitiesOptions{Filter: &one.Filter})))
			})
		}
	})
}

func TestBadFiltersAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.fill(t)
		for _, filter := range append(data.BadFilters, answer(data.Lenient, nil)...) {
			_, err := tryPages(t, f.table, &aztables.ListEntitiesOptions{Filter: &filter})
			var refusal *azcore.ResponseError
			isTrue(t, errors.As(err, &refusal) && (refusal.StatusCode == 400 || refusal.StatusCode == 501), "%s: %v", filter, err)
		}
	})
}

func TestSelect(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.fill(t)
		listing := &aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq 'p'"), Select: to.Ptr("RowKey,small")}
		for index, entity := range pages(t, f.table, listing)[0] {
			equal(t, strconv.Itoa(index+1), entity.RowKey)
			equal(t, "", entity.PartitionKey)
			equal(t, Entity{"small": []any{int32(5), int32(7), int32(-3)}[index]}, entity.Properties)
		}
	})
}

func TestPages(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, partition := range []string{"p2", "p0", "p1"} {
			var actions []aztables.TransactionAction
			for index := range 9 {
				entity := row(partition, strconv.Itoa(index), Entity{"n": index})
				actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: bytesOf(t, entity)})
			}
			_, err := f.table.SubmitTransaction(background, actions, nil)
			must(t, err)
		}
		all := everything(t, f.table)
		equal(t, 27, len(all))
		equal(t, sorted(all), all)
		listing := aztables.ListEntitiesOptions{Top: to.Ptr(int32(4))}
		equal(t, all, keys(pages(t, f.table, &listing)))
		// Every page can be the last of one client and the first of the next.
		begun := []string{}
		for pager := f.table.NewListEntitiesPager(&listing); pager.More(); {
			page, err := pager.NextPage(background)
			must(t, err)
			isTrue(t, len(page.Entities) <= 4, "a page of %d", len(page.Entities))
			for _, text := range page.Entities {
				entity := parsed(t, text)
				begun = append(begun, entity.PartitionKey+"/"+entity.RowKey)
			}
			if page.NextPartitionKey == nil {
				break
			}
			rest := aztables.ListEntitiesOptions{Top: listing.Top, NextPartitionKey: page.NextPartitionKey, NextRowKey: page.NextRowKey}
			equal(t, all, append(append([]string{}, begun...), keys(pages(t, f.table, &rest))...))
		}
		equal(t, all, begun)
		equal(t, 9, len(keys(pages(t, f.table, &aztables.ListEntitiesOptions{Filter: to.Ptr("n ge 3 and n lt 6"), Top: to.Ptr(int32(2))}))))
		equal(t, []string{}, keys(pages(t, f.table, &aztables.ListEntitiesOptions{Filter: to.Ptr("n gt 100")})))
	})
}

// kinds of operation in a transaction.
func action(t *testing.T, kind aztables.TransactionType, entity Entity) aztables.TransactionAction {
	t.Helper()
	return aztables.TransactionAction{ActionType: kind, Entity: bytesOf(t, entity)}
}

func TestATransactionOfEveryOperation(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		old := Entity{"old": 1}
		for _, name := range []string{"merged", "replaced", "deleted", "upserted"} {
			f.add(t, row("p", name, old))
		}
		fresh := Entity{"v": 2}
		_, err := f.table.SubmitTransaction(background, []aztables.TransactionAction{
			action(t, aztables.TransactionTypeAdd, row("p", "created", fresh)),
			action(t, aztables.TransactionTypeUpdateMerge, row("p", "merged", fresh)),
			action(t, aztables.TransactionTypeUpdateReplace, row("p", "replaced", fresh)),
			action(t, aztables.TransactionTypeInsertMerge, row("p", "upserted", fresh)),
			action(t, aztables.TransactionTypeInsertReplace, row("p", "inserted", fresh)),
			action(t, aztables.TransactionTypeDelete, row("p", "deleted", nil)),
		}, nil)
		must(t, err)
		equal(t, []string{"p/created", "p/inserted", "p/merged", "p/replaced", "p/upserted"}, everything(t, f.table))
		both := Entity{"old": int32(1), "v": int32(2)}
		equal(t, both, f.properties(t, "p", "merged"))
		equal(t, both, f.properties(t, "p", "upserted"))
		equal(t, Entity{"v": int32(2)}, f.properties(t, "p", "replaced"))
	})
}

func TestATransactionWritesAllOrNothing(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		tag := f.add(t, row("p", "taken", Entity{"v": 1}))
		stale := action(t, aztables.TransactionTypeUpdateMerge, row("p", "taken", Entity{"v": 2}))
		stale.IfMatch = &absent
		// Without a condition the client's update is an upsert.
		missing := action(t, aztables.TransactionTypeUpdateMerge, row("p", "absent", nil))
		missing.IfMatch = to.Ptr(azcore.ETagAny)
		for _, one := range []struct {
			status int
			code   string
			bad    aztables.TransactionAction
		}{
			{409, "EntityAlreadyExists", action(t, aztables.TransactionTypeAdd, row("p", "taken", nil))},
			{404, "ResourceNotFound", missing},
			{404, "ResourceNotFound", action(t, aztables.TransactionTypeDelete, row("p", "absent", nil))},
			{412, "UpdateConditionNotSatisfied", stale},
		} {
			_, err := f.table.SubmitTransaction(background, []aztables.TransactionAction{
				action(t, aztables.TransactionTypeAdd, row("p", "a", nil)), action(t, aztables.TransactionTypeInsertMerge, row("p", "b", nil)), one.bad,
			}, nil)
			refusedInside(t, one.status, one.code, 2, err)
		}
		equal(t, []string{"p/taken"}, everything(t, f.table))
		answer, err := f.table.GetEntity(background, "p", "taken", nil)
		must(t, err)
		equal(t, tag, answer.ETag)
	})
}

func TestTransactionsThatAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		submit := func(actions ...aztables.TransactionAction) error {
			_, err := f.table.SubmitTransaction(background, actions, nil)
			return err
		}
		twice := action(t, aztables.TransactionTypeInsertMerge, row("p", "a", nil))
		refusedInside(t, 400, "InvalidDuplicateRow", -1, submit(twice, twice))
		if !isAzurite {
			other := action(t, aztables.TransactionTypeInsertMerge, row("q", "a", nil))
			refusedInside(t, 400, "CommandsInBatchActOnDifferentPartitions", 1, submit(twice, other))
		}
		var actions []aztables.TransactionAction
		for index := range 101 {
			actions = append(actions, action(t, aztables.TransactionTypeAdd, row("p", strconv.Itoa(index), Entity{"text": "ü\r\n--x"})))
		}
		isTrue(t, submit(actions...) != nil, "101 operations were taken")
		equal(t, []string{}, everything(t, f.table))
		must(t, submit(actions[:100]...))
		equal(t, 100, len(everything(t, f.table)))
		equal[any](t, "ü\r\n--x", f.properties(t, "p", "7")["text"])
	})
}

func TestALongFilter(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.fill(t)
		filter := strings.Repeat("RowKey eq 'absent' or ", 14) + "RowKey eq '6'"
		equal(t, "6", found(pages(t, f.table, &aztables.ListEntitiesOptions{Filter: &filter})))
	})
}

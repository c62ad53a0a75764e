package table

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	modes  = []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace}
	absent = azcore.ETag("W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"")
)

func entity() Entity { return row("a", "b", Entity{"kept": 1, "changed": "old"}) }

func change() Entity { return row("a", "b", Entity{"changed": "new", "added": true}) }

func TestAnEntityIsInsertedReadAndDeleted(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		tag := f.add(t, entity())
		isTrue(t, strings.HasPrefix(string(tag), "W/\"datetime'"), "no tag: %s", tag)
		found, err := f.table.GetEntity(background, "a", "b", nil)
		must(t, err)
		equal(t, tag, found.ETag)
		read := parsed(t, found.Value)
		equal(t, Entity{"kept": int32(1), "changed": "old"}, read.Properties)
		equal(t, string(tag), read.ETag)
		isTrue(t, time.Since(time.Time(read.Timestamp)).Abs() < 5*time.Minute, "timestamp %v", read.Timestamp)
		_, err = f.table.AddEntity(background, bytesOf(t, change()), nil)
		refused(t, 409, "EntityAlreadyExists", err)
		equal(t, read.Properties, f.properties(t, "a", "b"))
		_, err = f.table.DeleteEntity(background, "a", "b", nil)
		must(t, err)
		_, err = f.table.DeleteEntity(background, "a", "b", nil)
		refused(t, 404, "ResourceNotFound", err)
		_, err = f.table.GetEntity(background, "a", "b", nil)
		refused(t, 404, "ResourceNotFound", err)
	})
}

func TestLevelsOfMetadata(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.add(t, entity())
		full, err := f.table.GetEntity(background, "a", "b", &aztables.GetEntityOptions{Format: to.Ptr(aztables.MetadataFormatFull)})
		must(t, err)
		read := parsed(t, full.Value)
		equal(t, account+"."+f.name, read.Type)
		equal(t, f.name+"(PartitionKey='a',RowKey='b')", read.EditLink)
		none, err := f.table.GetEntity(background, "a", "b", &aztables.GetEntityOptions{Format: to.Ptr(aztables.MetadataFormatNone)})
		must(t, err)
		isTrue(t, !strings.Contains(string(none.Value), "odata"), "metadata in %s", none.Value)
	})
}

func TestMergeKeepsAndReplaceDrops(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.add(t, entity())
		_, err := f.table.UpdateEntity(background, bytesOf(t, change()), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge})
		must(t, err)
		equal(t, Entity{"kept": int32(1), "changed": "new", "added": true}, f.properties(t, "a", "b"))
		_, err = f.table.UpdateEntity(background, bytesOf(t, row("a", "b", Entity{"only": 2})), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		must(t, err)
		equal(t, Entity{"only": int32(2)}, f.properties(t, "a", "b"))
	})
}

func TestAnUpdateOfWhatIsAbsentIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, mode := range modes {
			_, err := f.table.UpdateEntity(background, bytesOf(t, change()), &aztables.UpdateEntityOptions{UpdateMode: mode})
			refused(t, 404, "ResourceNotFound", err)
			_, err = f.table.UpdateEntity(background, bytesOf(t, change()), &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: &absent})
			refused(t, 404, "ResourceNotFound", err)
		}
		equal(t, []string{}, everything(t, f.table))
	})
}

func TestUpsertInsertsThenChanges(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		expected := map[aztables.UpdateMode]Entity{
			aztables.UpdateModeMerge:   {"kept": int32(1), "changed": "new", "added": true},
			aztables.UpdateModeReplace: {"changed": "new", "added": true},
		}
		for _, mode := range modes {
			options := &aztables.UpsertEntityOptions{UpdateMode: mode}
			first, err := f.table.UpsertEntity(background, bytesOf(t, entity()), options)
			must(t, err)
			second, err := f.table.UpsertEntity(background, bytesOf(t, change()), options)
			must(t, err)
			isTrue(t, first.ETag != "" && first.ETag != second.ETag, "tags %s and %s", first.ETag, second.ETag)
			equal(t, expected[mode], f.properties(t, "a", "b"))
			_, err = f.table.DeleteEntity(background, "a", "b", nil)
			must(t, err)
		}
	})
}

func TestConditions(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, mode := range modes {
			old := f.add(t, entity())
			answer, err := f.table.UpdateEntity(background, bytesOf(t, change()), &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: &old})
			must(t, err)
			isTrue(t, answer.ETag != old, "the tag is the old one")
			_, err = f.table.UpdateEntity(background, bytesOf(t, entity()), &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: &old})
			refused(t, 412, "UpdateConditionNotSatisfied", err)
			_, err = f.table.DeleteEntity(background, "a", "b", &aztables.DeleteEntityOptions{IfMatch: &old})
			refused(t, 412, "UpdateConditionNotSatisfied", err)
			equal[any](t, "new", f.properties(t, "a", "b")["changed"])
			_, err = f.table.DeleteEntity(background, "a", "b", &aztables.DeleteEntityOptions{IfMatch: &answer.ETag})
			must(t, err)
		}
	})
}

func TestKeysOfAnyText(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, pair := range data.Keys {
			partition, name := pair[0], pair[1]
			if partition == "" || name == "" {
				// The client refuses empty keys itself.
				continue
			}
			f.add(t, row(partition, name, Entity{"v": 1}))
			equal(t, Entity{"v": int32(1)}, f.properties(t, partition, name))
			filter := "PartitionKey eq '" + quoted(partition) + "' and RowKey eq '" + quoted(name) + "'"
			equal(t, []string{partition + "/" + name}, keys(pages(t, f.table, &aztables.ListEntitiesOptions{Filter: &filter})))
			_, err := f.table.UpdateEntity(background, bytesOf(t, row(partition, name, Entity{"w": 2})), nil)
			must(t, err)
			_, err = f.table.UpsertEntity(background, bytesOf(t, row(partition, name, Entity{"x": 3})), nil)
			must(t, err)
			expected := Entity{"v": int32(1), "w": int32(2), "x": int32(3)}
			// In addresses inside of transactions the client does not double quotes.
			if !strings.Contains(partition+name, "'") {
				merge := action(t, aztables.TransactionTypeUpdateMerge, row(partition, name, Entity{"y": 4}))
				_, err = f.table.SubmitTransaction(background, []aztables.TransactionAction{merge}, nil)
				must(t, err)
				expected["y"] = int32(4)
			}
			equal(t, expected, f.properties(t, partition, name))
			_, err = f.table.DeleteEntity(background, partition, name, nil)
			must(t, err)
		}
		equal(t, []string{}, everything(t, f.table))
	})
}

func quoted(text string) string { return strings.ReplaceAll(text, "'", "''") }

func TestForbiddenKeysAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, key := range []string{"a/b", "a\\b", "a#b", "a?b", "a\tb"} {
			for _, entity := range []Entity{row(key, "r", nil), row("p", key, nil)} {
				_, err := f.table.AddEntity(background, bytesOf(t, entity), nil)
				refused(t, 400, answer("OutOfRangeInput", "InvalidInput"), err)
			}
		}
		equal(t, []string{}, everything(t, f.table))
	})
}

func TestValuesOfEveryType(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, value := range data.Values {
			if isAzurite && value == data.Lost[0] {
				continue
			}
			entity := row("a", "b", nil)
			put(entity, "v", value[0], value[1])
			_, err := f.table.UpsertEntity(background, bytesOf(t, entity), &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
			must(t, err)
			checkValue(t, value[0], value[1], f.properties(t, "a", "b")["v"])
		}
	})
}

package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// patch builds operations from calls on them.
func patch(steps ...func(*azcosmos.PatchOperations)) azcosmos.PatchOperations {
	operations := azcosmos.PatchOperations{}
	for _, step := range steps {
		step(&operations)
	}
	return operations
}

func set(path string, value any) func(*azcosmos.PatchOperations) {
	return func(operations *azcosmos.PatchOperations) { operations.AppendSet(path, value) }
}

func add(path string, value any) func(*azcosmos.PatchOperations) {
	return func(operations *azcosmos.PatchOperations) { operations.AppendAdd(path, value) }
}

func replace(path string, value any) func(*azcosmos.PatchOperations) {
	return func(operations *azcosmos.PatchOperations) { operations.AppendReplace(path, value) }
}

func remove(path string) func(*azcosmos.PatchOperations) {
	return func(operations *azcosmos.PatchOperations) { operations.AppendRemove(path) }
}

func increment(path string, value int64) func(*azcosmos.PatchOperations) {
	return func(operations *azcosmos.PatchOperations) { operations.AppendIncrement(path, value) }
}

func overPatched(t *testing.T, test func(t *testing.T, f *fixture)) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a','n':1,'s':'text','l':[1,2,3],'o':{'x':1}}`)
		test(t, f)
	})
}

// The SDK has no move, no fractions and no null.
func TestAllPatchOperationsInOrder(t *testing.T) {
	overPatched(t, func(t *testing.T, f *fixture) {
		operations := patch(add("/l/0", 0), add("/l/-", 4), set("/new", map[string]any{"deep": []int{1}}),
			replace("/n", 5), increment("/n", 2), increment("/n", -1), remove("/s"), set("/o/x", false))
		answer, err := f.container.PatchItem(background, keyA, "1", operations, nil)
		expected := parsed(t, body(`{'id':'1','pk':'a','n':6,'l':[0,1,2,3,4],'o':{'x':false},'new':{'deep':[1]}}`))
		equal(t, expected, plain(t, good(t, 200, answer, err).Value))
		answer, err = f.container.ReadItem(background, keyA, "1", nil)
		equal(t, expected, plain(t, good(t, 200, answer, err).Value))
	})
}

func TestARefusedPatchChangesNothing(t *testing.T) {
	overPatched(t, func(t *testing.T, f *fixture) {
		before, err := f.container.ReadItem(background, keyA, "1", nil)
		must(t, err)
		for _, bad := range []func(*azcosmos.PatchOperations){
			remove("/none"), replace("/none", 1), add("/l/9", 1), add("/none/deep", 1), increment("/s", 1),
			set("/id", "2"), set("/pk", "b"), set("/_ts", 1), set("no-slash", 1),
		} {
			_, err := f.container.PatchItem(background, keyA, "1", patch(set("/first", 1), bad), nil)
			refused(t, 400, "0", err)
		}
		after, err := f.container.ReadItem(background, keyA, "1", nil)
		must(t, err)
		equal(t, parsed(t, before.Value), parsed(t, after.Value))
	})
}

func TestTenPatchOperationsAreAllowedAndElevenNot(t *testing.T) {
	overPatched(t, func(t *testing.T, f *fixture) {
		operations := azcosmos.PatchOperations{}
		for range 10 {
			operations.AppendIncrement("/n", 1)
		}
		answer, err := f.container.PatchItem(background, keyA, "1", operations, nil)
		equal(t, 11.0, parsed(t, good(t, 200, answer, err).Value)["n"].(float64))
		operations.AppendIncrement("/n", 1)
		_, err = f.container.PatchItem(background, keyA, "1", operations, nil)
		refused(t, 400, "0", err)
	})
}

func TestWhatIsAbsentCannotBePatched(t *testing.T) {
	overPatched(t, func(t *testing.T, f *fixture) {
		_, err := f.container.PatchItem(background, keyA, "2", patch(set("/n", 1)), nil)
		refused(t, 404, "0", err)
	})
}

func TestAPatchIsDoneIfItsConditionHolds(t *testing.T) {
	overPatched(t, func(t *testing.T, f *fixture) {
		for _, each := range []struct {
			condition string
			status    int
		}{{"from c where c.n = 2", 412}, {"from c where c.n = 1", 200}, {"from c where c.n = 1", 412}, {"where c.n = 2", 400}} {
			operations := patch(set("/n", 2))
			operations.SetCondition(each.condition)
			answer, err := f.container.PatchItem(background, keyA, "1", operations, nil)
			if each.status == 200 {
				good(t, 200, answer, err)
			} else {
				refused(t, each.status, "0", err)
			}
		}
	})
}

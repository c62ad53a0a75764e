package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func overStrict(t *testing.T, test func(t *testing.T, f *fixture)) {
	overBoth(t, func(t *testing.T, f *fixture) {
		policy := &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}}}
		f.container = f.make(t, azcosmos.ContainerProperties{UniqueKeyPolicy: policy}, nil)
		f.create(t, keyA, `{'id':'1','pk':'a','mail':'x'}`)
		f.create(t, keyA, `{'id':'2','pk':'a','mail':'y'}`)
		test(t, f)
	})
}

func TestEqualValuesCollideInOnePartition(t *testing.T) {
	overStrict(t, func(t *testing.T, f *fixture) {
		_, err := f.container.CreateItem(background, keyA, body(`{'id':'3','pk':'a','mail':'x'}`), nil)
		refused(t, 409, "0", err)
		f.create(t, azcosmos.NewPartitionKeyString("b"), `{'id':'3','pk':'b','mail':'x'}`)
	})
}

func TestEveryOperationIsHeldToAUniqueKey(t *testing.T) {
	overStrict(t, func(t *testing.T, f *fixture) {
		_, err := f.container.ReplaceItem(background, keyA, "2", body(`{'id':'2','pk':'a','mail':'x'}`), nil)
		refused(t, 409, "0", err)
		_, err = f.container.UpsertItem(background, keyA, body(`{'id':'2','pk':'a','mail':'x'}`), nil)
		refused(t, 409, "0", err)
		_, err = f.container.PatchItem(background, keyA, "2", patch(set("/mail", "x")), nil)
		refused(t, 409, "0", err)
	})
}

func TestAValueIsFreeAgainWhenItsItemGoes(t *testing.T) {
	overStrict(t, func(t *testing.T, f *fixture) {
		answer, err := f.container.DeleteItem(background, keyA, "1", nil)
		good(t, 204, answer, err)
		f.create(t, keyA, `{'id':'3','pk':'a','mail':'x'}`)
	})
}

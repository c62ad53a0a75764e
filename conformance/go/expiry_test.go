package conformance

import (
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestTheDefaultOfTheContainerCountsUnlessTheItemSaysOtherwise(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.container = f.make(t, azcosmos.ContainerProperties{DefaultTimeToLive: to.Ptr[int32](1)}, nil)
		f.create(t, keyA, `{'id':'short','pk':'a'}`)
		f.create(t, keyA, `{'id':'ever','pk':'a','ttl':-1}`)
		f.create(t, keyA, `{'id':'long','pk':'a','ttl':1000}`)
		eventually(t, func() bool {
			_, err := f.container.ReadItem(background, keyA, "short", nil)
			return err != nil
		})
		_, err := f.container.ReadItem(background, keyA, "short", nil)
		refused(t, 404, "0", err)
		left := everything(t, f.container)
		slices.Sort(left)
		equal(t, []string{"ever", "long"}, left)
		f.create(t, keyA, `{'id':'short','pk':'a'}`)
	})
}

func TestAnItemExpiresWhereTheContainerHasNoDefault(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.container = f.make(t, azcosmos.ContainerProperties{DefaultTimeToLive: to.Ptr[int32](-1)}, nil)
		f.create(t, keyA, `{'id':'short','pk':'a','ttl':1}`)
		f.create(t, keyA, `{'id':'ever','pk':'a'}`)
		eventually(t, func() bool { return len(everything(t, f.container)) == 1 })
		equal(t, []string{"ever"}, everything(t, f.container))
	})
}

func TestATimeToLiveOutOfBoundsIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.container.CreateItem(background, keyA, body(`{'id':'1','pk':'a','ttl':0}`), nil)
		refused(t, 400, "0", err)
		properties := azcosmos.ContainerProperties{
			ID: unique("c"), DefaultTimeToLive: to.Ptr[int32](0),
			PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
		_, err = f.database.CreateContainer(background, properties, nil)
		refused(t, 400, "0", err)
	})
}

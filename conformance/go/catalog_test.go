package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func databaseNames(t *testing.T, client *azcosmos.Client) []string {
	t.Helper()
	var names []string
	for pager := client.NewQueryDatabasesPager("SELECT * FROM c", nil); pager.More(); {
		page, err := pager.NextPage(background)
		must(t, err)
		for _, found := range page.Databases {
			names = append(names, found.ID)
		}
	}
	return names
}

func containerNames(t *testing.T, database *azcosmos.DatabaseClient) []string {
	t.Helper()
	var names []string
	for pager := database.NewQueryContainersPager("SELECT * FROM c", nil); pager.More(); {
		page, err := pager.NextPage(background)
		must(t, err)
		for _, found := range page.Containers {
			names = append(names, found.ID)
		}
	}
	return names
}

func TestADatabaseIsCreatedReadListedAndDeleted(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		name := unique("db")
		created, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, nil)
		must(t, err)
		equal(t, 201, created.RawResponse.StatusCode)
		common(t, created.Response)
		database, err := f.client.NewDatabase(name)
		must(t, err)
		read, err := database.Read(background, nil)
		must(t, err)
		equal(t, name, read.DatabaseProperties.ID)
		equal(t, created.DatabaseProperties.ResourceID, read.DatabaseProperties.ResourceID)
		equal(t, "dbs/"+read.DatabaseProperties.ResourceID+"/", read.DatabaseProperties.SelfLink)
		equal(t, *read.DatabaseProperties.ETag, read.ETag)
		isTrue(t, slices.Contains(databaseNames(t, f.client), name), "not listed")
		deleted, err := database.Delete(background, nil)
		must(t, err)
		equal(t, 204, deleted.RawResponse.StatusCode)
		_, err = database.Read(background, nil)
		refused(t, 404, "0", err)
		_, err = database.Delete(background, nil)
		refused(t, 404, "0", err)
		isTrue(t, !slices.Contains(databaseNames(t, f.client), name), "still listed")
	})
}

func TestASecondDatabaseOfANameIsAConflict(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: f.database.ID()}, nil)
		refused(t, 409, "0", err)
	})
}

func TestADatabaseIsReadAndDeletedUnderConditions(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		name := unique("db")
		created, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, nil)
		must(t, err)
		database, err := f.client.NewDatabase(name)
		must(t, err)
		stale := azcore.ETag(`"00000000-0000-0000-0000-000000000000"`)
		_, err = database.Delete(background, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &stale})
		refused(t, 412, "0", err)
		_, err = database.Delete(background, &azcosmos.DeleteDatabaseOptions{IfMatchEtag: &created.ETag})
		must(t, err)
	})
}

func TestNamesMayHaveUnusualCharacters(t *testing.T) {
	// The SDK writes names into JSON without escapes and into paths with them.
	for _, name := range []string{"ünïcödé 数据库", "with space", "a+b", "100%", "a&b=c", "dots.and~tildes", "q'uoted"} {
		t.Run(name, func(t *testing.T) {
			overBoth(t, func(t *testing.T, f *fixture) {
				unusual := name + unique("")
				_, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: unusual}, nil)
				must(t, err)
				database, err := f.client.NewDatabase(unusual)
				must(t, err)
				properties := azcosmos.ContainerProperties{
					ID: unusual, PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
				_, err = database.CreateContainer(background, properties, nil)
				must(t, err)
				container, err := database.NewContainer(unusual)
				must(t, err)
				answer, err := container.CreateItem(background, keyA, body(`{'id':'1','pk':'a'}`), nil)
				good(t, 201, answer, err)
				equal(t, []string{unusual}, containerNames(t, database))
				_, err = database.Delete(background, nil)
				must(t, err)
			})
		})
	}
}

func TestForbiddenNamesAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, name := range []string{"a/b", "a?b", "a#b", strings.Repeat("n", 256), "space at the end "} {
			_, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, nil)
			refused(t, 400, "0", err)
		}
	})
}

func TestAContainerHasTheDefaultsOfTheService(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		read, err := f.container.Read(background, nil)
		must(t, err)
		common(t, read.Response)
		properties := read.ContainerProperties
		equal(t, []string{"/pk"}, properties.PartitionKeyDefinition.Paths)
		equal(t, 2, properties.PartitionKeyDefinition.Version)
		// The SDK's constant is written with a capital, the service's answer without.
		mode := string(properties.IndexingPolicy.IndexingMode)
		isTrue(t, strings.EqualFold(string(azcosmos.IndexingModeConsistent), mode), "indexing mode %s", mode)
		isTrue(t, properties.IndexingPolicy.Automatic, "not automatic")
		equal(t, []azcosmos.IncludedPath{{Path: "/*"}}, properties.IndexingPolicy.IncludedPaths)
		equal(t, []azcosmos.ExcludedPath{{Path: `/"_etag"/?`}}, properties.IndexingPolicy.ExcludedPaths)
		equal(t, "/_ts", properties.ConflictResolutionPolicy.ResolutionPath)
		isTrue(t, properties.DefaultTimeToLive == nil, "a time to live")
		deleted, err := f.container.Delete(background, nil)
		must(t, err)
		equal(t, 204, deleted.RawResponse.StatusCode)
		_, err = f.container.Read(background, nil)
		refused(t, 404, "0", err)
		_, err = f.container.Delete(background, nil)
		refused(t, 404, "0", err)
	})
}

func TestASecondContainerOfANameIsAConflict(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		properties := azcosmos.ContainerProperties{
			ID: f.container.ID(), PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/other"}}}
		_, err := f.database.CreateContainer(background, properties, nil)
		refused(t, 409, "0", err)
	})
}

func TestPoliciesComeBackAsTheyWereGiven(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		composite := [][]azcosmos.CompositeIndex{{
			{Path: "/a", Order: azcosmos.CompositeIndexAscending}, {Path: "/b", Order: azcosmos.CompositeIndexDescending}}}
		uniqueKeys := []azcosmos.UniqueKey{{Paths: []string{"/a", "/b/c"}}, {Paths: []string{"/d"}}}
		given := azcosmos.ContainerProperties{
			DefaultTimeToLive: to.Ptr[int32](3600),
			UniqueKeyPolicy:   &azcosmos.UniqueKeyPolicy{UniqueKeys: uniqueKeys},
			IndexingPolicy: &azcosmos.IndexingPolicy{
				Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent, CompositeIndexes: composite,
				IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}}, ExcludedPaths: []azcosmos.ExcludedPath{{Path: "/big/*"}}},
			ConflictResolutionPolicy: &azcosmos.ConflictResolutionPolicy{
				Mode: azcosmos.ConflictResolutionModeLastWriteWins, ResolutionPath: "/mine"},
		}
		read, err := f.make(t, given, nil).Read(background, nil)
		must(t, err)
		equal(t, int32(3600), *read.ContainerProperties.DefaultTimeToLive)
		equal(t, uniqueKeys, read.ContainerProperties.UniqueKeyPolicy.UniqueKeys)
		equal(t, composite, read.ContainerProperties.IndexingPolicy.CompositeIndexes)
		equal(t, "/mine", read.ContainerProperties.ConflictResolutionPolicy.ResolutionPath)
	})
}

func TestReplaceChangesPoliciesAndKeepsTheItems(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		before, err := f.container.Read(background, nil)
		must(t, err)
		properties := *before.ContainerProperties
		properties.DefaultTimeToLive = to.Ptr[int32](-1)
		replaced, err := f.container.Replace(background, properties, nil)
		must(t, err)
		equal(t, 200, replaced.RawResponse.StatusCode)
		equal(t, int32(-1), *replaced.ContainerProperties.DefaultTimeToLive)
		equal(t, before.ContainerProperties.ResourceID, replaced.ContainerProperties.ResourceID)
		isTrue(t, before.ETag != replaced.ETag, "the ETag did not change")
		equal(t, []string{"1"}, everything(t, f.container))
		properties.PartitionKeyDefinition.Paths = []string{"/other"}
		_, err = f.container.Replace(background, properties, nil)
		refused(t, 400, "0", err)
	})
}

func TestContainersAreListed(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		expected := []string{f.container.ID()}
		for range 4 {
			expected = append(expected, f.make(t, azcosmos.ContainerProperties{}, nil).ID())
		}
		found := containerNames(t, f.database)
		slices.Sort(expected)
		slices.Sort(found)
		equal(t, expected, found)
	})
}

func TestWhatIsInAMissingDatabaseIs404(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		missing, err := f.client.NewDatabase(unique("none"))
		must(t, err)
		_, err = missing.Read(background, nil)
		refused(t, 404, "0", err)
		properties := azcosmos.ContainerProperties{
			ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
		_, err = missing.CreateContainer(background, properties, nil)
		refused(t, 404, "1003", err)
		_, err = missing.NewQueryContainersPager("SELECT * FROM c", nil).NextPage(background)
		refused(t, 404, "1003", err)
		container, err := missing.NewContainer("c")
		must(t, err)
		_, err = container.ReadItem(background, keyA, "1", nil)
		refused(t, 404, "1003", err)
	})
}

func TestMoreThroughputMakesMoreRanges(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		throughput := azcosmos.NewManualThroughputProperties(18000)
		wide := f.make(t, azcosmos.ContainerProperties{}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
		ranges, err := wide.ReadFeedRanges(background, nil)
		must(t, err)
		equal(t, 3, len(ranges))
		ranges, err = f.container.ReadFeedRanges(background, nil)
		must(t, err)
		equal(t, 1, len(ranges))
	})
}

func TestThroughputIsChecked(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		autoscale := azcosmos.NewAutoscaleThroughputProperties(4000)
		f.make(t, azcosmos.ContainerProperties{}, &azcosmos.CreateContainerOptions{ThroughputProperties: &autoscale})
		for _, wrong := range []int32{399, 450} {
			throughput := azcosmos.NewManualThroughputProperties(wrong)
			properties := azcosmos.ContainerProperties{
				ID: unique("c"), PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}}
			options := &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}
			_, err := f.database.CreateContainer(background, properties, options)
			refused(t, 400, "0", err)
		}
	})
}

func TestAContainerCreatedAgainIsEmpty(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		read, err := f.container.Read(background, nil)
		must(t, err)
		_, err = f.container.Delete(background, nil)
		must(t, err)
		created, err := f.database.CreateContainer(background, *read.ContainerProperties, nil)
		must(t, err)
		isTrue(t, created.ContainerProperties.ResourceID != read.ContainerProperties.ResourceID, "the same RID")
		_, err = f.container.ReadItem(background, keyA, "1", nil)
		refused(t, 404, "0", err)
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
	})
}

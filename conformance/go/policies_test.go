package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func modernPolicies() azcosmos.ContainerProperties {
	return azcosmos.ContainerProperties{
		IndexingPolicy: &azcosmos.IndexingPolicy{
			Automatic:     true,
			IndexingMode:  azcosmos.IndexingModeConsistent,
			IncludedPaths: []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths: []azcosmos.ExcludedPath{{Path: `/"_etag"/?`}, {Path: "/v/*"}},
			SpatialIndexes: []azcosmos.SpatialIndex{{
				Path: "/loc/*", SpatialTypes: []azcosmos.SpatialType{azcosmos.SpatialTypePoint, azcosmos.SpatialTypePolygon}}},
			VectorIndexes:   []azcosmos.VectorIndex{{Path: "/v", Type: azcosmos.VectorIndexTypeQuantizedFlat}},
			FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
		},
		VectorEmbeddingPolicy: &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
			Path: "/v", DataType: azcosmos.VectorDataTypeFloat32,
			DistanceFunction: azcosmos.VectorDistanceFunctionCosine, Dimensions: 16}}},
		FullTextPolicy: &azcosmos.FullTextPolicy{
			DefaultLanguage: "en-US", FullTextPaths: []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}}},
	}
}

func TestVectorsTextsAndPlacesComeBackAndCanBeSentAgain(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		given := modernPolicies()
		container := f.make(t, given, nil)
		for range 2 {
			read, err := container.Read(background, nil)
			must(t, err)
			kept := *read.ContainerProperties
			equal(t, given.VectorEmbeddingPolicy, kept.VectorEmbeddingPolicy)
			equal(t, given.FullTextPolicy, kept.FullTextPolicy)
			equal(t, given.IndexingPolicy.VectorIndexes, kept.IndexingPolicy.VectorIndexes)
			equal(t, given.IndexingPolicy.FullTextIndexes, kept.IndexingPolicy.FullTextIndexes)
			equal(t, given.IndexingPolicy.SpatialIndexes, kept.IndexingPolicy.SpatialIndexes)
			equal(t, given.IndexingPolicy.ExcludedPaths, kept.IndexingPolicy.ExcludedPaths)
			kept.DefaultTimeToLive = to.Ptr[int32](60)
			_, err = container.Replace(background, kept, nil)
			must(t, err)
		}
	})
}

func TestPoliciesThatContradictEachOtherAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		changes := []func(*azcosmos.ContainerProperties){
			func(p *azcosmos.ContainerProperties) { p.VectorEmbeddingPolicy = nil },
			func(p *azcosmos.ContainerProperties) { p.FullTextPolicy = nil },
			func(p *azcosmos.ContainerProperties) { p.VectorEmbeddingPolicy.VectorEmbeddings[0].Dimensions = 0 },
			func(p *azcosmos.ContainerProperties) { p.IndexingPolicy.IncludedPaths[0].Path = "/a" },
		}
		for _, change := range changes {
			properties := modernPolicies()
			properties.ID = unique("c")
			properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
			change(&properties)
			_, err := f.database.CreateContainer(background, properties, nil)
			refused(t, 400, "0", err)
		}
	})
}

func TestConflictsMayBeLeftToAProcedure(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		procedure := "dbs/" + f.database.ID() + "/colls/c/sprocs/resolver"
		given := azcosmos.ContainerProperties{ConflictResolutionPolicy: &azcosmos.ConflictResolutionPolicy{
			Mode: azcosmos.ConflictResolutionModeCustom, ResolutionProcedure: procedure}}
		read, err := f.make(t, given, nil).Read(background, nil)
		must(t, err)
		equal(t, procedure, read.ContainerProperties.ConflictResolutionPolicy.ResolutionProcedure)
	})
}

package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func manual(t *testing.T, answer azcosmos.ThroughputResponse, err error) int32 {
	t.Helper()
	must(t, err)
	rate, hasRate := answer.ThroughputProperties.ManualThroughput()
	isTrue(t, hasRate, "no manual throughput")
	return rate
}

func TestThroughputOfAContainerIsReadAndReplaced(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		wanted := azcosmos.NewManualThroughputProperties(1000)
		container := f.make(t, azcosmos.ContainerProperties{}, &azcosmos.CreateContainerOptions{ThroughputProperties: &wanted})
		read, err := container.ReadThroughput(background, nil)
		equal(t, 1000, manual(t, read, err))
		isTrue(t, !read.IsReplacePending, "a change is pending")
		replaced, err := container.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(1200), nil)
		equal(t, 1200, manual(t, replaced, err))
		read, err = container.ReadThroughput(background, nil)
		equal(t, 1200, manual(t, read, err))
		_, err = container.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(350), nil)
		refused(t, 400, "0", err)
		read, err = f.container.ReadThroughput(background, nil)
		equal(t, 400, manual(t, read, err))
	})
}

func TestAutoscaleThroughputIsReadAndReplaced(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		wanted := azcosmos.NewAutoscaleThroughputProperties(4000)
		container := f.make(t, azcosmos.ContainerProperties{}, &azcosmos.CreateContainerOptions{ThroughputProperties: &wanted})
		_, err := container.ReplaceThroughput(background, azcosmos.NewAutoscaleThroughputProperties(6000), nil)
		must(t, err)
		read, err := container.ReadThroughput(background, nil)
		must(t, err)
		most, isAutoscale := read.ThroughputProperties.AutoscaleMaxThroughput()
		isTrue(t, isAutoscale && most == 6000, "autoscale up to %d", most)
	})
}

func TestThroughputOfADatabaseIsShared(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		wanted := azcosmos.NewManualThroughputProperties(800)
		name := unique("db")
		_, err := f.client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name},
			&azcosmos.CreateDatabaseOptions{ThroughputProperties: &wanted})
		must(t, err)
		database, err := f.client.NewDatabase(name)
		must(t, err)
		read, err := database.ReadThroughput(background, nil)
		equal(t, 800, manual(t, read, err))
		replaced, err := database.ReplaceThroughput(background, azcosmos.NewManualThroughputProperties(900), nil)
		equal(t, 900, manual(t, replaced, err))
		container := (&fixture{database: database}).make(t, azcosmos.ContainerProperties{}, nil)
		_, err = container.ReadThroughput(background, nil)
		isTrue(t, err != nil, "a container without an offer has throughput")
		_, err = database.Delete(background, nil)
		must(t, err)
	})
}

package conformance

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func ifMatch(etag azcore.ETag) *azcosmos.ItemOptions {
	return &azcosmos.ItemOptions{IfMatchEtag: &etag}
}

func TestAnOldTagStopsEveryWrite(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		old := f.create(t, keyA, `{'id':'1','pk':'a','v':1}`).ETag
		answer, err := f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':2}`), ifMatch(old))
		current := good(t, 200, answer, err).ETag
		_, err = f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':3}`), ifMatch(old))
		refused(t, 412, "0", err)
		_, err = f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':3}`), ifMatch(old))
		refused(t, 412, "0", err)
		patch := azcosmos.PatchOperations{}
		patch.AppendSet("/v", 3)
		_, err = f.container.PatchItem(background, keyA, "1", patch, ifMatch(old))
		refused(t, 412, "0", err)
		_, err = f.container.DeleteItem(background, keyA, "1", ifMatch(old))
		refused(t, 412, "0", err)
		answer, err = f.container.DeleteItem(background, keyA, "1", ifMatch(current))
		good(t, 204, answer, err)
	})
}

func TestAStarMeansThatTheItemMustExist(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a'}`), ifMatch("*"))
		refused(t, 404, "0", err)
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		answer, err := f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':1}`), ifMatch("*"))
		good(t, 200, answer, err)
	})
}

func TestOneOfTwoClientsWinsEachRace(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		racers := []*azcosmos.ContainerClient{f.container, f.mirror(t)}
		etag := f.create(t, keyA, `{'id':'1','pk':'a','v':0}`).ETag
		for round := range 20 {
			text := fmt.Appendf(nil, `{"id":"1","pk":"a","v":%d}`, round)
			errors := make([]error, len(racers))
			var wait sync.WaitGroup
			for number, racer := range racers {
				wait.Go(func() {
					_, errors[number] = racer.ReplaceItem(background, keyA, "1", text, ifMatch(etag))
				})
			}
			wait.Wait()
			winner := 0
			if errors[0] != nil {
				winner = 1
			}
			must(t, errors[winner])
			refused(t, 412, "0", errors[1-winner])
			answer, err := f.container.ReadItem(background, keyA, "1", nil)
			etag = good(t, 200, answer, err).ETag
			equal(t, float64(round), parsed(t, answer.Value)["v"].(float64))
		}
	})
}

func TestOfManyCreatesOfAnIdOneSucceeds(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		var created atomic.Int32
		var wait sync.WaitGroup
		refusals := make(chan error, 20)
		for number := range 20 {
			wait.Go(func() {
				text := fmt.Appendf(nil, `{"id":"1","pk":"a","v":%d}`, number)
				if _, err := f.container.CreateItem(background, keyA, text, nil); err != nil {
					refusals <- err
				} else {
					created.Add(1)
				}
			})
		}
		wait.Wait()
		close(refusals)
		equal(t, int32(1), created.Load())
		for err := range refusals {
			refused(t, 409, "0", err)
		}
	})
}

func TestIncrementsOfManyAreNotLost(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a','n':0}`)
		patch := azcosmos.PatchOperations{}
		patch.AppendIncrement("/n", 1)
		var wait sync.WaitGroup
		failures := make(chan error, 30)
		for range 30 {
			wait.Go(func() {
				if _, err := f.container.PatchItem(background, keyA, "1", patch, nil); err != nil {
					failures <- err
				}
			})
		}
		wait.Wait()
		close(failures)
		for err := range failures {
			must(t, err)
		}
		answer, err := f.container.ReadItem(background, keyA, "1", nil)
		equal(t, 30.0, parsed(t, good(t, 200, answer, err).Value)["n"].(float64))
	})
}

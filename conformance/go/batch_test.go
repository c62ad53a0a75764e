package conformance

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func run(t *testing.T, f *fixture, batch azcosmos.TransactionalBatch) (azcosmos.TransactionalBatchResponse, []int32) {
	t.Helper()
	options := &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}
	answer, err := f.container.ExecuteTransactionalBatch(background, batch, options)
	must(t, err)
	common(t, answer.Response)
	statuses := []int32{}
	for _, result := range answer.OperationResults {
		statuses = append(statuses, result.StatusCode)
	}
	return answer, statuses
}

func TestAllStepsOfABatchAreDone(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'old','pk':'a','v':1}`)
		batch := f.container.NewTransactionalBatch(keyA)
		batch.CreateItem(body(`{'id':'new','pk':'a'}`), nil)
		batch.UpsertItem(body(`{'id':'new','pk':'a','v':2}`), nil)
		batch.ReplaceItem("old", body(`{'id':'old','pk':'a','v':2}`), nil)
		batch.PatchItem("old", patch(increment("/v", 1)), nil)
		batch.ReadItem("old", nil)
		batch.DeleteItem("new", nil)
		answer, statuses := run(t, f, batch)
		isTrue(t, answer.Success && answer.SessionToken != "", "no success")
		equal(t, []int32{201, 200, 200, 200, 200, 204}, statuses)
		equal(t, 3.0, parsed(t, answer.OperationResults[4].ResourceBody)["v"].(float64))
		isTrue(t, answer.OperationResults[0].ETag != "" && answer.OperationResults[0].RequestCharge > 0, "no ETag or charge")
		equal(t, []string{"old"}, everything(t, f.container))
	})
}

func TestNothingOfABatchIsDoneWhenOneStepFails(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'there','pk':'a'}`)
		batch := f.container.NewTransactionalBatch(keyA)
		batch.CreateItem(body(`{'id':'new','pk':'a'}`), nil)
		batch.CreateItem(body(`{'id':'there','pk':'a'}`), nil)
		batch.DeleteItem("there", nil)
		answer, statuses := run(t, f, batch)
		isTrue(t, !answer.Success, "success")
		equal(t, []int32{424, 409, 424}, statuses)
		equal(t, []string{"there"}, everything(t, f.container))
	})
}

func TestStepsOfABatchAreHeldToTheirConditions(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		old := f.create(t, keyA, `{'id':'1','pk':'a','v':1}`).ETag
		answer, err := f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':2}`), nil)
		current := good(t, 200, answer, err).ETag
		step := func(etag azcore.ETag) []int32 {
			batch := f.container.NewTransactionalBatch(keyA)
			batch.ReplaceItem("1", body(`{'id':'1','pk':'a','v':3}`), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
			_, statuses := run(t, f, batch)
			return statuses
		}
		equal(t, []int32{412}, step(old))
		equal(t, []int32{200}, step(current))
	})
}

func TestAMissingItemFailsABatch(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		batch := f.container.NewTransactionalBatch(keyA)
		batch.CreateItem(body(`{'id':'1','pk':'a'}`), nil)
		batch.ReadItem("none", nil)
		_, statuses := run(t, f, batch)
		equal(t, []int32{424, 404}, statuses)
	})
}

func TestAHundredStepsAreAllowedAndMoreNot(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		batch := f.container.NewTransactionalBatch(keyA)
		for number := range 100 {
			batch.CreateItem(fmt.Appendf(nil, `{"id":"%d","pk":"a"}`, number), nil)
		}
		answer, _ := run(t, f, batch)
		isTrue(t, answer.Success, "no success")
		equal(t, 100, len(everything(t, f.container)))
		batch.ReadItem("1", nil)
		_, err := f.container.ExecuteTransactionalBatch(background, batch, nil)
		refused(t, 400, "0", err)
	})
}

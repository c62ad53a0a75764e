package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func lsn(t *testing.T, token *string) int64 {
	t.Helper()
	number, err := strconv.ParseInt(strings.Split(*token, "#")[1], 10, 64)
	must(t, err)
	return number
}

func TestTokensGrowWithWrites(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		first := f.create(t, keyA, `{'id':'1','pk':'a'}`)
		answer, err := f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':2}`), nil)
		second := good(t, 200, answer, err)
		isTrue(t, lsn(t, second.SessionToken) > lsn(t, first.SessionToken), "not greater")
	})
}

func TestATokenOfOneClientServesAnother(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		token := f.create(t, keyA, `{'id':'1','pk':'a'}`).SessionToken
		answer, err := f.mirror(t).ReadItem(background, keyA, "1", &azcosmos.ItemOptions{SessionToken: token})
		good(t, 200, answer, err)
	})
}

func TestATokenOfTheFutureIsNotServed(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		token := f.create(t, keyA, `{'id':'1','pk':'a'}`).SessionToken
		later := fmt.Sprintf("%s#%d", strings.Split(*token, "#")[0], lsn(t, token)+1_000_000)
		_, err := f.container.ReadItem(background, keyA, "1", &azcosmos.ItemOptions{SessionToken: &later})
		refused(t, 404, "1002", err)
	})
}

func TestWeakerLevelsAreAcceptedAndStrongerOnesNot(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		for _, level := range []azcosmos.ConsistencyLevel{
			azcosmos.ConsistencyLevelSession, azcosmos.ConsistencyLevelConsistentPrefix, azcosmos.ConsistencyLevelEventual,
		} {
			answer, err := f.container.ReadItem(background, keyA, "1", &azcosmos.ItemOptions{ConsistencyLevel: level.ToPtr()})
			good(t, 200, answer, err)
		}
		strong := azcosmos.ConsistencyLevelStrong
		_, err := f.container.ReadItem(background, keyA, "1", &azcosmos.ItemOptions{ConsistencyLevel: &strong})
		refused(t, 400, "0", err)
	})
}

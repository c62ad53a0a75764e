package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var keys = []struct {
	json string
	key  azcosmos.PartitionKey
}{
	{`'text'`, azcosmos.NewPartitionKeyString("text")},
	{`''`, azcosmos.NewPartitionKeyString("")},
	// Beyond the first plane of Unicode the SDK writes escapes that JSON does not have.
	{`'ünï 数据'`, azcosmos.NewPartitionKeyString("ünï 数据")},
	{`0`, azcosmos.NewPartitionKeyNumber(0)},
	{`-1`, azcosmos.NewPartitionKeyNumber(-1)},
	{`1.5`, azcosmos.NewPartitionKeyNumber(1.5)},
	{`9007199254740991`, azcosmos.NewPartitionKeyNumber(9007199254740991)},
	{`true`, azcosmos.NewPartitionKeyBool(true)},
	{`false`, azcosmos.NewPartitionKeyBool(false)},
	{`null`, azcosmos.NullPartitionKey},
}

func TestAnItemIsFoundUnderItsKey(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, version := range []int{1, 2} {
			definition := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: version}
			container := f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, nil)
			for _, pair := range keys {
				t.Run(fmt.Sprintf("V%d %s", version, pair.json), func(t *testing.T) {
					answer, err := container.CreateItem(background, pair.key, body(`{'id':'1','pk':`+pair.json+`}`), nil)
					good(t, 201, answer, err)
					answer, err = container.ReadItem(background, pair.key, "1", nil)
					good(t, 200, answer, err)
					equal(t, []string{"1"}, ids(items(t, container, pair.key, nil)))
				})
			}
			equal(t, len(keys), len(everything(t, container)))
		}
	})
}

func TestNestedAndQuotedPaths(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for path, item := range map[string]string{
			"/address/city":      `{"id":"1","address":{"city":"x"}}`,
			`/"department name"`: `{"id":"1","department name":"x"}`,
		} {
			definition := azcosmos.PartitionKeyDefinition{Paths: []string{path}, Version: 2}
			container := f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, nil)
			answer, err := container.CreateItem(background, azcosmos.NewPartitionKeyString("x"), []byte(item), nil)
			good(t, 201, answer, err)
		}
	})
}

func tenants(t *testing.T, f *fixture) *azcosmos.ContainerClient {
	t.Helper()
	definition := azcosmos.PartitionKeyDefinition{
		Kind: azcosmos.PartitionKeyKindMultiHash, Paths: []string{"/tenant", "/user", "/session"}, Version: 2}
	return f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, nil)
}

func TestHierarchicalKeys(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		container := tenants(t, f)
		key := func(user float64) azcosmos.PartitionKey {
			return azcosmos.NewPartitionKeyString("t").AppendNumber(user).AppendNull()
		}
		for user, item := range []string{`{'id':'a','tenant':'t','user':0,'session':null}`, `{'id':'b','tenant':'t','user':1,'session':null}`} {
			answer, err := container.CreateItem(background, key(float64(user)), body(item), nil)
			good(t, 201, answer, err)
		}
		answer, err := container.ReadItem(background, key(1), "b", nil)
		good(t, 200, answer, err)
		_, err = container.ReadItem(background, key(2), "b", nil)
		refused(t, 404, "0", err)
		_, err = container.ReadItem(background, azcosmos.NewPartitionKeyString("t"), "b", nil)
		refused(t, 400, "1001", err)
		found := everything(t, container)
		slices.Sort(found)
		equal(t, []string{"a", "b"}, found)
	})
}

func TestAPrefixOfAHierarchicalKeyListsWhatIsBelow(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		container := tenants(t, f)
		for _, tenant := range []string{"t", "u"} {
			for _, user := range []string{"1", "2"} {
				key := azcosmos.NewPartitionKeyString(tenant).AppendString(user).AppendBool(true)
				item := `{'id':'` + tenant + user + `','tenant':'` + tenant + `','user':'` + user + `','session':true}`
				answer, err := container.CreateItem(background, key, body(item), nil)
				good(t, 201, answer, err)
			}
		}
		found := ids(items(t, container, azcosmos.NewPartitionKeyString("t"), nil))
		slices.Sort(found)
		equal(t, []string{"t1", "t2"}, found)
		two := azcosmos.NewPartitionKeyString("u").AppendString("2")
		equal(t, []string{"u2"}, ids(items(t, container, two, nil)))
	})
}

func TestALongKeyIsAllowedAndATooLongOneNot(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for version, length := range map[int]int{1: 2048, 2: 2048} {
			definition := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: version}
			container := f.make(t, azcosmos.ContainerProperties{PartitionKeyDefinition: definition}, nil)
			create := func(length int) (azcosmos.ItemResponse, error) {
				text := strings.Repeat("x", length)
				return container.CreateItem(background, azcosmos.NewPartitionKeyString(text), body(`{'id':'1','pk':'`+text+`'}`), nil)
			}
			answer, err := create(length)
			good(t, 201, answer, err)
			_, err = create(length + 1)
			refused(t, 400, "0", err)
		}
	})
}

func TestContainersOfOldClientsNeedNoKey(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		name := unique("c")
		createByHand(t, f.scheme, "dbs/"+f.database.ID(), "colls", Item{"id": name})
		container, err := f.database.NewContainer(name)
		must(t, err)
		none := azcosmos.NewPartitionKey()
		answer, err := container.CreateItem(background, none, body(`{'id':'1','v':1}`), nil)
		good(t, 201, answer, err)
		answer, err = container.ReadItem(background, none, "1", nil)
		equal(t, Item{"id": "1", "v": 1.0}, plain(t, good(t, 200, answer, err).Value))
		answer, err = container.UpsertItem(background, none, body(`{'id':'1','v':2}`), nil)
		good(t, 200, answer, err)
		equal(t, []string{"1"}, everything(t, container))
		answer, err = container.DeleteItem(background, none, "1", nil)
		good(t, 204, answer, err)
		_, err = container.ReadItem(background, none, "1", nil)
		refused(t, 404, "0", err)
	})
}

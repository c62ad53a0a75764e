package table

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Entity is an entity as JSON has it.
type Entity = map[string]any

func unique(prefix string) string {
	bytes := make([]byte, 6)
	_, _ = rand.Read(bytes)
	return prefix + hex.EncodeToString(bytes)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T any](t *testing.T, expected, actual T) {
	t.Helper()
	if !reflect.DeepEqual(expected, actual) {
		t.Fatalf("expected %v, found %v", expected, actual)
	}
}

func isTrue(t *testing.T, condition bool, format string, values ...any) {
	t.Helper()
	if !condition {
		t.Fatalf(format, values...)
	}
}

var errorCode = regexp.MustCompile(`"code":\s*"(\w+)"|<Code>(\w+)</Code>`)

// refused checks status and code of a refusal. Some of the client's errors have the code in their text only.
func refused(t *testing.T, status int, code string, err error) {
	t.Helper()
	var refusal *azcore.ResponseError
	isTrue(t, errors.As(err, &refusal), "not refused by the server: %v", err)
	found := refusal.ErrorCode
	if parts := errorCode.FindStringSubmatch(refusal.Error()); found == "" && parts != nil {
		found = parts[1] + parts[2]
	}
	isTrue(t, refusal.StatusCode == status && (code == "" || found == code),
		"expected %d %s, found %d %s: %v", status, code, refusal.StatusCode, found, err)
}

// refusedInside checks a refusal inside the answer to a transaction: the client keeps the status of the whole.
func refusedInside(t *testing.T, status int, code string, index int, err error) {
	t.Helper()
	var refusal *azcore.ResponseError
	isTrue(t, errors.As(err, &refusal), "not refused by the server: %v", err)
	text := refusal.Error()
	isTrue(t, strings.Contains(text, code), "no %s in %s", code, text)
	isTrue(t, strings.Contains(text, fmt.Sprintf("HTTP/1.1 %d ", status)), "no status %d in %s", status, text)
	if index >= 0 {
		isTrue(t, strings.Contains(text, fmt.Sprintf(`"value":"%d:`, index)), "no index %d in %s", index, text)
	}
}

func row(partition, name string, properties Entity) Entity {
	entity := Entity{"PartitionKey": partition, "RowKey": name}
	for name, value := range properties {
		entity[name] = value
	}
	return entity
}

// bytesOf is an entity for the client. Its own type for entities doubles the quotes of keys.
func bytesOf(t *testing.T, entity Entity) []byte {
	t.Helper()
	text, err := json.Marshal(entity)
	must(t, err)
	return text
}

// parsed is an entity of the client.
func parsed(t *testing.T, text []byte) aztables.EDMEntity {
	t.Helper()
	var entity aztables.EDMEntity
	must(t, json.Unmarshal(text, &entity))
	return entity
}

func (f *fixture) add(t *testing.T, entity Entity) azcore.ETag {
	t.Helper()
	answer, err := f.table.AddEntity(background, bytesOf(t, entity), nil)
	must(t, err)
	return answer.ETag
}

// properties are those of one entity, without its keys.
func (f *fixture) properties(t *testing.T, partition, row string) Entity {
	t.Helper()
	answer, err := f.table.GetEntity(background, partition, row, nil)
	must(t, err)
	return parsed(t, answer.Value).Properties
}

// pages lists entities page by page.
func pages(t *testing.T, table *aztables.Client, options *aztables.ListEntitiesOptions) [][]aztables.EDMEntity {
	t.Helper()
	found, err := tryPages(t, table, options)
	must(t, err)
	return found
}

func tryPages(t *testing.T, table *aztables.Client, options *aztables.ListEntitiesOptions) ([][]aztables.EDMEntity, error) {
	var found [][]aztables.EDMEntity
	for pager := table.NewListEntitiesPager(options); pager.More(); {
		answer, err := pager.NextPage(background)
		if err != nil {
			return nil, err
		}
		var page []aztables.EDMEntity
		for _, text := range answer.Entities {
			page = append(page, parsed(t, text))
		}
		found = append(found, page)
	}
	return found, nil
}

// keys are those of all entities of pages, in order.
func keys(pages [][]aztables.EDMEntity) []string {
	found := []string{}
	for _, page := range pages {
		for _, entity := range page {
			found = append(found, entity.PartitionKey+"/"+entity.RowKey)
		}
	}
	return found
}

func everything(t *testing.T, table *aztables.Client) []string {
	t.Helper()
	return keys(pages(t, table, nil))
}

func sorted(texts []string) []string {
	found := append([]string{}, texts...)
	sort.Strings(found)
	return found
}

// put adds a value of the shared data to an entity, with its type where JSON cannot tell it.
func put(entity Entity, name, kind, text string) {
	entity[name] = text
	switch kind {
	case "Int32", "Boolean":
		entity[name] = json.RawMessage(text)
	case "Double":
		if !strings.ContainsAny(text, "NI") {
			entity[name] = json.RawMessage(text)
		}
	}
	if kind != "String" {
		entity[name+"@odata.type"] = "Edm." + kind
	}
}

// stored is a row of the shared data for the client.
func stored(row map[string]any) Entity {
	entity := Entity{}
	for name, value := range row {
		if pair, ok := value.([]any); ok {
			put(entity, name, pair[0].(string), pair[1].(string))
		} else {
			entity[name] = value
		}
	}
	return entity
}

// checkValue compares a value that the client read, to the bit where the client carries it.
func checkValue(t *testing.T, kind, text string, found any) {
	t.Helper()
	switch kind {
	case "Int32":
		number, err := strconv.ParseInt(text, 10, 32)
		must(t, err)
		equal[any](t, int32(number), found)
	case "Int64":
		number, err := strconv.ParseInt(text, 10, 64)
		must(t, err)
		equal[any](t, aztables.EDMInt64(number), found)
	case "Double":
		checkDouble(t, text, found)
	case "Boolean":
		equal[any](t, text == "true", found)
	case "DateTime":
		moment, err := time.Parse(time.RFC3339Nano, text)
		must(t, err)
		isTrue(t, moment.Equal(time.Time(found.(aztables.EDMDateTime))), "expected %s, found %v", text, found)
	case "Guid":
		equal[any](t, aztables.EDMGUID(text), found)
	case "Binary":
		bytes, err := base64.StdEncoding.DecodeString(text)
		must(t, err)
		equal(t, hex.EncodeToString(bytes), hex.EncodeToString(found.(aztables.EDMBinary)))
	default:
		equal[any](t, text, found)
	}
}

// checkDouble compares doubles by their bits; the client leaves out those whose type the service must name.
func checkDouble(t *testing.T, text string, found any) {
	t.Helper()
	expected, err := strconv.ParseFloat(text, 64)
	must(t, err)
	if math.IsNaN(expected) || math.IsInf(expected, 0) {
		equal[any](t, nil, found)
		return
	}
	// The client writes what it received anew, and thereby makes a whole double a whole number, if it is small enough.
	if number, ok := found.(int32); ok {
		equal(t, expected, float64(number))
		return
	}
	equal(t, math.Float64bits(expected), math.Float64bits(found.(float64)))
}

package table

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var pinnedVersion = regexp.MustCompile(`sdk/data/aztables v(\S+)`)

// TestClientNamesItself prints the line from which the table of clients is made.
func TestClientNamesItself(t *testing.T) {
	module, err := os.ReadFile("../go.mod")
	must(t, err)
	version := pinnedVersion.FindSubmatch(module)
	isTrue(t, version != nil, "go.mod does not name the client")
	recorder := &protocolRecorder{}
	settings := options()
	settings.PerRetryPolicies = []policy.Policy{recorder}
	credential, err := aztables.NewSharedKeyCredential(account, accountKey)
	must(t, err)
	client, err := aztables.NewServiceClientWithSharedKey(endpoint("http", account), credential, settings)
	must(t, err)
	_, err = client.NewListTablesPager(nil).NextPage(background)
	must(t, err)
	isTrue(t, recorder.version != "", "the client sends no version of the protocol")
	fmt.Printf("\nclient {\"client\": \"aztables\", \"version\": %q, \"language\": \"Go\", \"protocol\": %q}\n", version[1], recorder.version)
}

// names lists tables page by page.
func names(t *testing.T, client *aztables.ServiceClient, options *aztables.ListTablesOptions) [][]string {
	t.Helper()
	var found [][]string
	for pager := client.NewListTablesPager(options); pager.More(); {
		answer, err := pager.NextPage(background)
		must(t, err)
		page := []string{}
		for _, table := range answer.Tables {
			page = append(page, *table.Name)
		}
		found = append(found, page)
	}
	return found
}

func flat(pages [][]string) []string {
	found := []string{}
	for _, page := range pages {
		found = append(found, page...)
	}
	return found
}

func TestTablesAreCreatedListedAndDeleted(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		name := unique("t")
		made, err := f.service.CreateTable(background, name, nil)
		must(t, err)
		equal(t, name, *made.TableName)
		only := &aztables.ListTablesOptions{Filter: to.Ptr("TableName eq '" + name + "'")}
		equal(t, []string{name}, flat(names(t, f.service, only)))
		_, err = f.service.CreateTable(background, name, nil)
		refused(t, 409, "TableAlreadyExists", err)
		_, err = f.service.NewClient(name).Delete(background, nil)
		must(t, err)
		equal(t, []string{}, flat(names(t, f.service, only)))
		_, err = f.service.DeleteTable(background, name, nil)
		refused(t, 404, "ResourceNotFound", err)
		_, err = f.service.NewClient(name).CreateTable(background, nil)
		must(t, err)
		_, err = f.service.DeleteTable(background, name, nil)
		must(t, err)
	})
}

func TestTablesAreListedByPage(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		prefix := unique("list")
		made := []string{}
		for index := range 7 {
			made = append(made, prefix+strconv.Itoa(index))
			_, err := f.service.CreateTable(background, made[index], nil)
			must(t, err)
		}
		within := fmt.Sprintf("TableName ge '%s' and TableName lt '%sz'", prefix, prefix)
		listing := aztables.ListTablesOptions{Filter: &within, Top: to.Ptr(int32(3))}
		found := names(t, f.service, &listing)
		equal(t, made, flat(found))
		for _, page := range found {
			isTrue(t, len(page) <= 3, "a page of %d", len(page))
		}
		first, err := f.service.NewListTablesPager(&listing).NextPage(background)
		must(t, err)
		listing.NextTableName = first.NextTableName
		equal(t, made[3:], flat(names(t, f.service, &listing)))
		for _, name := range made {
			_, err := f.service.DeleteTable(background, name, nil)
			must(t, err)
		}
	})
}

func TestAnAbsentTableIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		table := f.service.NewClient(unique("absent"))
		entity := bytesOf(t, row("a", "b", nil))
		_, err := table.AddEntity(background, entity, nil)
		refused(t, 404, "TableNotFound", err)
		_, err = table.UpdateEntity(background, entity, nil)
		refused(t, 404, "TableNotFound", err)
		_, err = table.UpsertEntity(background, entity, nil)
		refused(t, 404, "TableNotFound", err)
		_, err = table.GetEntity(background, "a", "b", nil)
		refused(t, 404, "TableNotFound", err)
		_, err = table.DeleteEntity(background, "a", "b", nil)
		refused(t, 404, "TableNotFound", err)
		_, err = tryPages(t, table, nil)
		refused(t, 404, "TableNotFound", err)
		_, err = table.GetAccessPolicy(background, nil)
		refused(t, 404, "", err)
		_, err = table.SubmitTransaction(background, []aztables.TransactionAction{{ActionType: aztables.TransactionTypeAdd, Entity: entity}}, nil)
		refusedInside(t, 404, "TableNotFound", -1, err)
	})
}

func TestBadNamesAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, name := range append([]string{"a", "1abc", "a-b", "a_b", strings.Repeat("x", 64)}, answer([]string{"tables"}, nil)...) {
			_, err := f.service.CreateTable(background, name, nil)
			refused(t, 400, "", err)
		}
	})
}

func TestServiceProperties(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		azuriteLacks(t, "some service properties")
		kept := &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr(int32(5))}
		sent := aztables.ServiceProperties{
			Logging:       &aztables.Logging{Version: to.Ptr("1.0"), Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(true), RetentionPolicy: kept},
			HourMetrics:   &aztables.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: kept},
			MinuteMetrics: &aztables.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(false), RetentionPolicy: &aztables.RetentionPolicy{Enabled: to.Ptr(false)}},
			Cors: []*aztables.CorsRule{{
				AllowedHeaders: to.Ptr("Accept"), AllowedMethods: to.Ptr("GET,PUT"), AllowedOrigins: to.Ptr("https://www.contoso.example"),
				ExposedHeaders: to.Ptr("x-ms-meta-*"), MaxAgeInSeconds: to.Ptr(int32(30)),
			}},
		}
		_, err := f.service.SetProperties(background, sent, nil)
		must(t, err)
		found, err := f.service.GetProperties(background, nil)
		must(t, err)
		equal(t, sent.Logging, found.Logging)
		equal(t, sent.HourMetrics, found.HourMetrics)
		equal(t, sent.Cors, found.Cors)
		isTrue(t, !*found.MinuteMetrics.Enabled, "minute metrics are on")
	})
}

func TestStatistics(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		azuriteLacks(t, "statistics of the primary address")
		found, err := f.service.GetStatistics(background, nil)
		must(t, err)
		isTrue(t, found.GeoReplication != nil && found.GeoReplication.Status != nil, "no status")
	})
}

// TestTheDocumentedWalk makes a table with throughput if it is absent, adds people and retrieves one of them.
func TestTheDocumentedWalk(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		settings := options()
		settings.PerCallPolicies = []policy.Policy{withHeader{"x-ms-offer-throughput", strconv.Itoa(data.Walk.Throughput)}}
		credential, err := aztables.NewSharedKeyCredential(account, accountKey)
		must(t, err)
		client, err := aztables.NewServiceClientWithSharedKey(endpoint(f.scheme, account), credential, settings)
		must(t, err)
		name := unique(data.Walk.Table)
		_, err = client.CreateTable(background, name, nil)
		must(t, err)
		_, err = client.CreateTable(background, name, nil)
		refused(t, 409, "TableAlreadyExists", err)
		table := f.service.NewClient(name)
		for _, person := range data.Walk.People {
			_, err := table.UpsertEntity(background, bytesOf(t, person), nil)
			must(t, err)
		}
		ben, err := table.GetEntity(background, "Smith", "Ben", nil)
		must(t, err)
		equal[any](t, data.Walk.People[0]["email"], parsed(t, ben.Value).Properties["email"])
		changed := bytesOf(t, row("Smith", "Ben", Entity{"email": "ben.smith@contoso.example"}))
		_, err = table.UpdateEntity(background, changed, &aztables.UpdateEntityOptions{IfMatch: to.Ptr(azcore.ETag(ben.ETag)), UpdateMode: aztables.UpdateModeMerge})
		must(t, err)
		family := keys(pages(t, table, &aztables.ListEntitiesOptions{Filter: to.Ptr("PartitionKey eq 'Smith'")}))
		equal(t, []string{"Smith/Ben", "Smith/Jeff"}, family)
		_, err = table.DeleteEntity(background, "Smith", "Ben", nil)
		must(t, err)
		_, err = table.GetEntity(background, "Smith", "Ben", nil)
		refused(t, 404, "ResourceNotFound", err)
		_, err = f.service.DeleteTable(background, name, nil)
		must(t, err)
	})
}

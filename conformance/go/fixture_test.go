package conformance

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// fixture is what most tests start with: a client of the shared server, a database and an empty container.
type fixture struct {
	scheme    string
	client    *azcosmos.Client
	database  *azcosmos.DatabaseClient
	container *azcosmos.ContainerClient
}

// keyA is the key that most items have.
var keyA = azcosmos.NewPartitionKeyString("a")

// overBoth runs a test over plain HTTP and over TLS.
func overBoth(t *testing.T, test func(t *testing.T, f *fixture)) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			client := shared.client(t, scheme)
			name := unique("db")
			_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: name}, nil)
			must(t, err)
			database, err := client.NewDatabase(name)
			must(t, err)
			t.Cleanup(func() {
				_, err := database.Delete(background, nil)
				must(t, err)
			})
			f := &fixture{scheme: scheme, client: client, database: database}
			f.container = f.make(t, azcosmos.ContainerProperties{}, nil)
			test(t, f)
		})
	}
}

// make creates a container; the key is /pk with the second hash unless the properties say otherwise.
func (f *fixture) make(
	t *testing.T, properties azcosmos.ContainerProperties, options *azcosmos.CreateContainerOptions,
) *azcosmos.ContainerClient {
	t.Helper()
	properties.ID = unique("c")
	if len(properties.PartitionKeyDefinition.Paths) == 0 {
		properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}
	}
	_, err := f.database.CreateContainer(background, properties, options)
	must(t, err)
	container, err := f.database.NewContainer(properties.ID)
	must(t, err)
	return container
}

// mirror is the fixture's container as another client sees it.
func (f *fixture) mirror(t *testing.T) *azcosmos.ContainerClient {
	t.Helper()
	container, err := shared.client(t, f.scheme).NewContainer(f.database.ID(), f.container.ID())
	must(t, err)
	return container
}

func (f *fixture) create(t *testing.T, key azcosmos.PartitionKey, text string) azcosmos.ItemResponse {
	t.Helper()
	answer, err := f.container.CreateItem(background, key, body(text), nil)
	return good(t, 201, answer, err)
}

// items lists a container, in one key or in all, page by page.
func items(t *testing.T, container *azcosmos.ContainerClient, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) [][]Item {
	t.Helper()
	var pages [][]Item
	for pager := container.NewQueryItemsPager("SELECT * FROM c", key, options); pager.More(); {
		answer, err := pager.NextPage(background)
		must(t, err)
		page := []Item{}
		for _, bytes := range answer.Items {
			page = append(page, parsed(t, bytes))
		}
		pages = append(pages, page)
	}
	return pages
}

func ids(pages [][]Item) []string {
	found := []string{}
	for _, page := range pages {
		for _, item := range page {
			found = append(found, item["id"].(string))
		}
	}
	return found
}

// everything is the ids of all items of a container.
func everything(t *testing.T, container *azcosmos.ContainerClient) []string {
	t.Helper()
	return ids(items(t, container, azcosmos.NewPartitionKey(), nil))
}

package conformance

import (
	"errors"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const oneItem = `{'id':'1','pk':'a'}`

func fill(t *testing.T, client *azcosmos.Client) {
	t.Helper()
	_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "db"}, nil)
	must(t, err)
	database, err := client.NewDatabase("db")
	must(t, err)
	properties := azcosmos.ContainerProperties{
		ID: "c", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2}}
	_, err = database.CreateContainer(background, properties, nil)
	must(t, err)
	_, err = filled(t, client).CreateItem(background, keyA, body(oneItem), nil)
	must(t, err)
}

func filled(t *testing.T, client *azcosmos.Client) *azcosmos.ContainerClient {
	t.Helper()
	container, err := client.NewContainer("db", "c")
	must(t, err)
	return container
}

func overSchemes(t *testing.T, test func(t *testing.T, scheme string)) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) { test(t, scheme) })
	}
}

func TestReadOnlyKeysReadAndDoNotWrite(t *testing.T) {
	overSchemes(t, func(t *testing.T, scheme string) {
		server := ownServer(t, "serve")
		fill(t, server.clientWithKey(t, scheme, server.keys(t, "show", "primary")))
		for _, name := range []string{"primary-readonly", "secondary-readonly"} {
			client := server.clientWithKey(t, scheme, server.keys(t, "show", name))
			container := filled(t, client)
			read, err := container.ReadItem(background, keyA, "1", nil)
			good(t, 200, read, err)
			equal(t, []string{"1"}, everything(t, container))
			equal(t, []string{"db"}, databaseNames(t, client))
			_, err = container.UpsertItem(background, keyA, body(oneItem), nil)
			refused(t, 403, "0", err)
			_, err = container.DeleteItem(background, keyA, "1", nil)
			refused(t, 403, "0", err)
			batch := container.NewTransactionalBatch(keyA)
			batch.UpsertItem(body(oneItem), nil)
			_, err = container.ExecuteTransactionalBatch(background, batch, nil)
			refused(t, 403, "0", err)
			_, err = client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "other"}, nil)
			refused(t, 403, "0", err)
			_, err = container.Delete(background, nil)
			refused(t, 403, "0", err)
		}
		second := filled(t, server.clientWithKey(t, scheme, server.keys(t, "show", "secondary")))
		written, err := second.UpsertItem(background, keyA, body(oneItem), nil)
		good(t, 200, written, err)
		// The key that everybody knows opens nothing here.
		_, err = filled(t, server.client(t, scheme)).ReadItem(background, keyA, "1", nil)
		refused(t, 401, "0", err)
	})
}

func TestARotatedKeyIsRefusedAndTheOtherGoesOn(t *testing.T) {
	overSchemes(t, func(t *testing.T, scheme string) {
		server := ownServer(t, "serve")
		leaves := server.clientWithKey(t, scheme, server.keys(t, "show", "primary"))
		stays := server.clientWithKey(t, scheme, server.keys(t, "show", "secondary"))
		fill(t, leaves)
		server.keys(t, "rotate", "primary")
		eventually(t, func() bool {
			read, err := filled(t, stays).ReadItem(background, keyA, "1", nil)
			good(t, 200, read, err)
			_, err = filled(t, leaves).ReadItem(background, keyA, "1", nil)
			var refusal *azcore.ResponseError
			return errors.As(err, &refusal) && refusal.StatusCode == 401
		})
		renewed := server.clientWithKey(t, scheme, server.keys(t, "show", "primary"))
		written, err := filled(t, renewed).UpsertItem(background, keyA, body(oneItem), nil)
		good(t, 200, written, err)
	})
}

func TestTokensHaveTheRightsOfTheirHolder(t *testing.T) {
	overSchemes(t, func(t *testing.T, scheme string) {
		issuer := newIssuer(t)
		server := ownServer(t, "dev", "--identity", issuer.settings(t))
		fill(t, server.client(t, scheme))
		client := func(holder holder) *azcosmos.Client {
			made, err := azcosmos.NewClient(server.endpoint(scheme), holder, server.options())
			must(t, err)
			return made
		}
		for _, name := range []string{"reader", "writer"} {
			client := client(holder{issuer, name})
			container := filled(t, client)
			read, err := container.ReadItem(background, keyA, "1", nil)
			good(t, 200, read, err)
			equal(t, []string{"1"}, everything(t, container))
			_, err = client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "other"}, nil)
			refused(t, 403, "5300", err)
			_, err = client.NewQueryDatabasesPager("SELECT * FROM c", nil).NextPage(background)
			refused(t, 403, "5301", err)
			written, err := container.UpsertItem(background, keyA, body(oneItem), nil)
			if name == "writer" {
				good(t, 200, written, err)
			} else {
				refused(t, 403, "5302", err)
			}
		}
		_, err := filled(t, client(holder{issuer, "nobody"})).ReadItem(background, keyA, "1", nil)
		refused(t, 403, "5301", err)
		_, err = filled(t, client(holder{newIssuer(t), "reader"})).ReadItem(background, keyA, "1", nil)
		refused(t, 401, "5004", err)
	})
}

package conformance

import (
	"fmt"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestEverythingIsThereAfterARestart(t *testing.T) {
	ends := map[string]func(t *testing.T, server *Server){
		"stop": func(t *testing.T, server *Server) { must(t, server.stop()) },
		"kill": func(_ *testing.T, server *Server) { server.kill() },
	}
	for _, scheme := range []string{"http", "https"} {
		for name, end := range ends {
			t.Run(scheme+" "+name, func(t *testing.T) {
				server := ownServer(t, "dev")
				client := server.client(t, scheme)
				_, err := client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "db"}, nil)
				must(t, err)
				database, err := client.NewDatabase("db")
				must(t, err)
				f := &fixture{scheme: scheme, client: client, database: database}
				f.container = f.make(t, azcosmos.ContainerProperties{}, nil)
				for number := range 20 {
					key := fmt.Sprintf("k%d", number%5)
					f.create(t, azcosmos.NewPartitionKeyString(key), fmt.Sprintf(`{'id':'%d','pk':'%s'}`, number, key))
				}
				answer, err := f.container.DeleteItem(background, azcosmos.NewPartitionKeyString("k4"), "4", nil)
				good(t, 204, answer, err)
				before := items(t, f.container, all, nil)
				pager := f.container.NewQueryItemsPager("SELECT * FROM c", all, &azcosmos.QueryOptions{PageSizeHint: 6})
				first, err := pager.NextPage(background)
				must(t, err)
				end(t, server)
				must(t, server.start())
				equal(t, before, items(t, f.container, all, nil))
				rest := items(t, f.container, all, &azcosmos.QueryOptions{ContinuationToken: first.ContinuationToken})
				equal(t, ids(before)[6:], ids(rest))
				equal(t, 19, len(ids(before)))
				f.create(t, keyA, `{'id':'new','pk':'a'}`)
			})
		}
	}
}

package conformance

import (
	"encoding/base64"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"perihelion/conformance/launch"
)

func TestAWrongKeyIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		client := shared.clientWithKey(t, f.scheme, base64.StdEncoding.EncodeToString(make([]byte, 64)))
		container, err := client.NewContainer(f.database.ID(), f.container.ID())
		must(t, err)
		_, err = container.ReadItem(background, keyA, "1", nil)
		refused(t, 401, "0", err)
		_, err = container.CreateItem(background, keyA, body(`{'id':'1','pk':'a'}`), nil)
		refused(t, 401, "0", err)
		equal(t, []string{}, everything(t, f.container))
	})
}

func TestAConnectionStringIsEnough(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		text := "AccountEndpoint=" + shared.endpoint(f.scheme) + ";AccountKey=" + emulatorKey + ";"
		options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: shared.transport()}}
		client, err := azcosmos.NewClientFromConnectionString(text, options)
		must(t, err)
		database, err := client.NewDatabase(f.database.ID())
		must(t, err)
		_, err = database.Read(background, nil)
		must(t, err)
	})
}

func TestAStrangersAuthorityIsNotTrusted(t *testing.T) {
	credential, err := azcosmos.NewKeyCredential(emulatorKey)
	must(t, err)
	stranger := &Server{&launch.Server{Port: shared.Port}}
	options := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: stranger.transport()}}
	options.Retry.MaxRetries = -1
	client, err := azcosmos.NewClientWithKey(shared.endpoint("https"), credential, options)
	must(t, err)
	_, err = client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: unique("db")}, nil)
	isTrue(t, err != nil, "a client without the authority's certificate got through")
}

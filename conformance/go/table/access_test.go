package table

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"perihelion/conformance/launch"
)

var (
	hourAgo   = func() time.Time { return time.Now().UTC().Add(-time.Hour).Truncate(time.Second) }
	inAnHour  = func() time.Time { return time.Now().UTC().Add(time.Hour).Truncate(time.Second) }
	allTypes  = aztables.AccountSASResourceTypes{Service: true, Container: true, Object: true}
	everyVerb = aztables.AccountSASPermissions{Read: true, Write: true, Delete: true, List: true, Add: true, Create: true, Update: true}
)

// isAllowed tells whether a call was refused because of its signature.
func isAllowed(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	var refusal *azcore.ResponseError
	isTrue(t, errors.As(err, &refusal) && refusal.StatusCode == 403, "not about access: %v", err)
	return false
}

// accountSigned is a client of the table with an account signature; the client's own is for TLS only.
func (f *fixture) accountSigned(t *testing.T, key string, values aztables.AccountSASSignatureValues) *aztables.ServiceClient {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(account, key)
	must(t, err)
	values.Services = "t"
	if values.ResourceTypes == "" {
		values.ResourceTypes = allTypes.String()
	}
	if values.ExpiryTime.IsZero() {
		values.ExpiryTime = inAnHour()
	}
	query, err := values.Sign(credential)
	must(t, err)
	client, err := aztables.NewServiceClientWithNoCredential(endpoint(f.scheme, account)+"/?"+query.Encode(), options())
	must(t, err)
	return client
}

func get(table *aztables.Client) error {
	_, err := table.GetEntity(background, "a", "b", nil)
	return err
}

func write(t *testing.T, table *aztables.Client, name string) error {
	_, err := table.AddEntity(background, bytesOf(t, row("a", name, nil)), nil)
	return err
}

func TestAWrongKeyOrAccountIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		wrong := clientOf(t, endpoint(f.scheme, account), account, launch.EmulatorKey)
		refused(t, 403, answer("AuthenticationFailed", "AuthorizationFailure"), write(t, wrong.NewClient(f.name), "b"))
		nobody := clientOf(t, endpoint(f.scheme, "nobody"), "nobody", accountKey)
		_, err := nobody.NewListTablesPager(nil).NextPage(background)
		isTrue(t, err != nil, "an account that does not exist was served")
		equal(t, []string{}, everything(t, f.table))
	})
}

func TestTheAccountOfTheOtherEmulator(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		azuriteLacks(t, "a second account")
		other := clientOf(t, endpoint(f.scheme, "localhost"), "localhost", launch.EmulatorKey)
		_, err := other.NewListTablesPager(nil).NextPage(background)
		must(t, err)
	})
}

func TestAConnectionString(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		text := "DefaultEndpointsProtocol=" + f.scheme + ";AccountName=" + account + ";AccountKey=" + accountKey +
			";TableEndpoint=" + endpoint(f.scheme, account) + ";"
		client, err := aztables.NewServiceClientFromConnectionString(text, options())
		must(t, err)
		must(t, write(t, client.NewClient(f.name), "b"))
		must(t, get(f.table))
	})
}

func TestAccountSignatures(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		must(t, write(t, f.table, "b"))
		signed := func(permissions aztables.AccountSASPermissions) *aztables.Client {
			return f.accountSigned(t, accountKey, aztables.AccountSASSignatureValues{Permissions: permissions.String()}).NewClient(f.name)
		}
		all := signed(everyVerb)
		must(t, get(all))
		must(t, write(t, all, "c"))
		equal(t, []string{"a/b", "a/c"}, everything(t, all))
		reader := signed(aztables.AccountSASPermissions{Read: true})
		must(t, get(reader))
		isTrue(t, !isAllowed(t, write(t, reader, "d")), "a reader wrote")
		adder := signed(aztables.AccountSASPermissions{Add: true})
		must(t, write(t, adder, "d"))
		isTrue(t, !isAllowed(t, get(adder)), "a writer read")
		for _, values := range []aztables.AccountSASSignatureValues{
			{Permissions: "r", ExpiryTime: hourAgo()},
			{Permissions: "r", StartTime: inAnHour(), ExpiryTime: inAnHour().Add(time.Hour)},
			{Permissions: "r", ResourceTypes: "s"},
		} {
			isTrue(t, !isAllowed(t, get(f.accountSigned(t, accountKey, values).NewClient(f.name))), "%v was good", values)
		}
		forged := f.accountSigned(t, launch.EmulatorKey, aztables.AccountSASSignatureValues{Permissions: "r"})
		isTrue(t, !isAllowed(t, get(forged.NewClient(f.name))), "a forged signature was good")
	})
}

func TestTheSignatureOfTheClientIsForTLS(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		must(t, write(t, f.table, "b"))
		address, err := f.service.GetAccountSASURL(allTypes, everyVerb, hourAgo(), inAnHour())
		must(t, err)
		client, err := aztables.NewServiceClientWithNoCredential(address, options())
		must(t, err)
		equal(t, f.scheme == "https", isAllowed(t, get(client.NewClient(f.name))))
	})
}

// tableSigned is a client of the table with the query of a signature.
func (f *fixture) tableSigned(t *testing.T, query string) *aztables.Client {
	t.Helper()
	client, err := aztables.NewClientWithNoCredential(endpoint(f.scheme, account)+"/"+f.name+"?"+query, options())
	must(t, err)
	return client
}

func (f *fixture) query(t *testing.T, values aztables.SASSignatureValues) string {
	t.Helper()
	credential, err := aztables.NewSharedKeyCredential(account, accountKey)
	must(t, err)
	values.TableName = f.name
	query, err := values.Sign(credential)
	must(t, err)
	return query
}

func TestTableSignatures(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		must(t, write(t, f.table, "b"))
		address, err := f.table.GetTableSASURL(aztables.SASPermissions{Read: true, Add: true}, hourAgo(), inAnHour())
		must(t, err)
		_, query, _ := strings.Cut(address, "?")
		own := f.tableSigned(t, query)
		must(t, get(own))
		must(t, write(t, own, "c"))
		_, err = own.DeleteEntity(background, "a", "b", nil)
		isTrue(t, !isAllowed(t, err), "a signature without permission deleted")
		old := f.tableSigned(t, f.query(t, aztables.SASSignatureValues{Permissions: "r", ExpiryTime: hourAgo()}))
		isTrue(t, !isAllowed(t, get(old)), "an expired signature was good")
		changed := f.tableSigned(t, strings.Replace(query, "sp=ra", "sp=rad", 1))
		isTrue(t, !isAllowed(t, get(changed)), "a changed signature was good")
		_, err = url.ParseQuery(query)
		must(t, err)
	})
}

func TestARangeOfKeys(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		azuriteLacks(t, "ranges of keys")
		for _, partition := range []string{"a", "b", "c"} {
			f.add(t, row(partition, "1", nil))
		}
		values := aztables.SASSignatureValues{Permissions: "r", ExpiryTime: inAnHour(), StartPartitionKey: "b", EndPartitionKey: "b"}
		// The client signs the keys and does not send them.
		held := f.tableSigned(t, f.query(t, values)+"&spk=b&epk=b")
		equal(t, []string{"b/1"}, everything(t, held))
		_, err := held.GetEntity(background, "a", "1", nil)
		isTrue(t, !isAllowed(t, err), "a row out of range was read")
	})
}

func TestStoredPolicies(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		must(t, write(t, f.table, "b"))
		begin, end := hourAgo(), inAnHour()
		policies := []*aztables.SignedIdentifier{
			{ID: to.Ptr("readers"), AccessPolicy: &aztables.AccessPolicy{Start: &begin, Expiry: &end, Permission: to.Ptr("r")}},
			{ID: to.Ptr("writers"), AccessPolicy: &aztables.AccessPolicy{Start: &begin, Expiry: &end, Permission: to.Ptr("raud")}},
		}
		_, err := f.table.SetAccessPolicy(background, &aztables.SetAccessPolicyOptions{TableACL: policies})
		must(t, err)
		found, err := f.table.GetAccessPolicy(background, nil)
		must(t, err)
		equal(t, 2, len(found.SignedIdentifiers))
		for index, one := range found.SignedIdentifiers {
			equal(t, *policies[index].ID, *one.ID)
			equal(t, *policies[index].AccessPolicy.Permission, *one.AccessPolicy.Permission)
			isTrue(t, begin.Equal(*one.AccessPolicy.Start) && end.Equal(*one.AccessPolicy.Expiry), "other times: %v", one.AccessPolicy)
		}
		reader := f.tableSigned(t, f.query(t, aztables.SASSignatureValues{Identifier: "readers"}))
		must(t, get(reader))
		isTrue(t, !isAllowed(t, write(t, reader, "c")), "a reader wrote")
		writer := f.tableSigned(t, f.query(t, aztables.SASSignatureValues{Identifier: "writers"}))
		must(t, write(t, writer, "c"))
		_, err = f.table.SetAccessPolicy(background, &aztables.SetAccessPolicyOptions{})
		must(t, err)
		isTrue(t, !isAllowed(t, get(reader)), "a signature outlived its policy")
	})
}

package conformance

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestAnItemIsCreatedReadReplacedUpsertedAndDeleted(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		created := f.create(t, keyA, `{'id':'1','pk':'a','v':1}`)
		equal(t, Item{"id": "1", "pk": "a", "v": 1.0}, plain(t, created.Value))
		answer, err := f.container.ReadItem(background, keyA, "1", nil)
		equal(t, parsed(t, created.Value), parsed(t, good(t, 200, answer, err).Value))
		answer, err = f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':2}`), nil)
		equal(t, 2.0, parsed(t, good(t, 200, answer, err).Value)["v"].(float64))
		answer, err = f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':3}`), nil)
		equal(t, 3.0, parsed(t, good(t, 200, answer, err).Value)["v"].(float64))
		answer, err = f.container.DeleteItem(background, keyA, "1", nil)
		good(t, 204, answer, err)
		_, err = f.container.ReadItem(background, keyA, "1", nil)
		refused(t, 404, "0", err)
		_, err = f.container.DeleteItem(background, keyA, "1", nil)
		refused(t, 404, "0", err)
		answer, err = f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a'}`), nil)
		good(t, 201, answer, err)
	})
}

func TestSystemPropertiesAreThoseOfTheService(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		created := f.create(t, keyA, `{'id':'1','pk':'a'}`)
		item := parsed(t, created.Value)
		equal(t, string(created.ETag), item["_etag"].(string))
		equal(t, "attachments/", item["_attachments"].(string))
		isTrue(t, strings.HasSuffix(item["_self"].(string), "/docs/"+item["_rid"].(string)+"/"), "self link %v", item["_self"])
		isTrue(t, item["_ts"].(float64) > 0, "no time")
		answer, err := f.container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':1}`), nil)
		again := parsed(t, good(t, 200, answer, err).Value)
		equal(t, item["_rid"], again["_rid"])
		isTrue(t, item["_etag"] != again["_etag"], "the ETag did not change")
	})
}

func TestASecondItemOfAnIdIsAConflict(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		f.create(t, keyA, `{'id':'1','pk':'a','v':1}`)
		_, err := f.container.CreateItem(background, keyA, body(`{'id':'1','pk':'a','v':2}`), nil)
		refused(t, 409, "0", err)
		f.create(t, azcosmos.NewPartitionKeyString("b"), `{'id':'1','pk':'b'}`)
	})
}

func TestAReplaceNeedsAnItemAndMayChangeItsId(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a'}`), nil)
		refused(t, 404, "0", err)
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		_, err = f.container.ReplaceItem(background, keyA, "1", body(`{'id':'2','pk':'a'}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.container.ReadItem(background, keyA, "1", nil)
		refused(t, 404, "0", err)
		f.create(t, keyA, `{'id':'1','pk':'a'}`)
		_, err = f.container.ReplaceItem(background, keyA, "1", body(`{'id':'2','pk':'a'}`), nil)
		refused(t, 409, "0", err)
	})
}

func TestTheKeyOfTheItemMustBeTheKeyOfTheRequest(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		_, err := f.container.CreateItem(background, keyA, body(`{'id':'1','pk':'b'}`), nil)
		refused(t, 400, "1001", err)
	})
}

func TestItemsOfAMissingContainerAre404(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		missing, err := f.database.NewContainer(unique("none"))
		must(t, err)
		_, err = missing.ReadItem(background, keyA, "1", nil)
		refused(t, 404, "1003", err)
		_, err = missing.CreateItem(background, keyA, body(`{'id':'1','pk':'a'}`), nil)
		refused(t, 404, "1003", err)
	})
}

func TestAWriteMayLeaveTheItemOut(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		credential, err := azcosmos.NewKeyCredential(emulatorKey)
		must(t, err)
		options := &azcosmos.ClientOptions{}
		options.Transport = shared.transport()
		client, err := azcosmos.NewClientWithKey(shared.endpoint(f.scheme), credential, options)
		must(t, err)
		container, err := client.NewContainer(f.database.ID(), f.container.ID())
		must(t, err)
		answer, err := container.CreateItem(background, keyA, body(`{'id':'1','pk':'a','v':1}`), nil)
		equal(t, 0, len(good(t, 201, answer, err).Value))
		read, err := container.ReadItem(background, keyA, "1", nil)
		equal(t, answer.ETag, good(t, 200, read, err).ETag)
		answer, err = container.ReplaceItem(background, keyA, "1", body(`{'id':'1','pk':'a','v':2}`), nil)
		equal(t, 0, len(good(t, 200, answer, err).Value))
		answer, err = container.UpsertItem(background, keyA, body(`{'id':'1','pk':'a','v':3}`),
			&azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		equal(t, 3.0, parsed(t, good(t, 200, answer, err).Value)["v"].(float64))
	})
}

func TestUnusualIds(t *testing.T) {
	for _, id := range []string{"a b", "100%", "a+b", "ünï", "数据", "🙂", "a:b@c;d,e", "(a)[b]{c}", "a.b~c", strings.Repeat("x", 255)} {
		t.Run(id[:min(len(id), 16)], func(t *testing.T) {
			overBoth(t, func(t *testing.T, f *fixture) {
				text := []byte(`{"id":"` + id + `","pk":"a"}`)
				answer, err := f.container.CreateItem(background, keyA, text, nil)
				good(t, 201, answer, err)
				answer, err = f.container.ReadItem(background, keyA, id, nil)
				equal(t, id, parsed(t, good(t, 200, answer, err).Value)["id"].(string))
				answer, err = f.container.ReplaceItem(background, keyA, id, text, nil)
				good(t, 200, answer, err)
				answer, err = f.container.DeleteItem(background, keyA, id, nil)
				good(t, 204, answer, err)
			})
		})
	}
}

func TestValuesComeBackAsTheyWere(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		text := []byte(`{"id":"1","pk":"a","none":null,"yes":true,"small":5e-324,"third":0.3333333333333333,
			"text":"tab\t nul\u0000 ü 🙂","nested":{"list":[[],{},[1,[2,[3]]]]},"empty":"","whole":9007199254740991}`)
		answer, err := f.container.CreateItem(background, keyA, text, nil)
		good(t, 201, answer, err)
		answer, err = f.container.ReadItem(background, keyA, "1", nil)
		equal(t, parsed(t, text), plain(t, good(t, 200, answer, err).Value))
	})
}

func TestAnItemOfMoreThanTwoMegabytesIsRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		item := func(size int) []byte {
			return []byte(`{"id":"1","pk":"a","text":"` + strings.Repeat("x", size) + `"}`)
		}
		_, err := f.container.CreateItem(background, keyA, item(2*1024*1024), nil)
		refused(t, 413, "0", err)
		answer, err := f.container.CreateItem(background, keyA, item(2*1024*1024-4096), nil)
		good(t, 201, answer, err)
	})
}

func TestBrokenItemsAreRefused(t *testing.T) {
	overBoth(t, func(t *testing.T, f *fixture) {
		for _, text := range []string{`{`, `[]`, `7`, `{"pk":"a"}`, `{"id":7,"pk":"a"}`, `{"id":"","pk":"a"}`} {
			_, err := f.container.CreateItem(background, keyA, []byte(text), nil)
			refused(t, 400, "0", err)
		}
		equal(t, []string{}, everything(t, f.container))
	})
}

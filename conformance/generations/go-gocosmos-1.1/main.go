// The walk-through of gocosmos, a driver of Go's database/sql by a third party. What SQL has no words for (pages,
// conditions, reading the throughput) goes through the REST client of the same package.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/btnguyen2k/gocosmos"
)

const (
	database = "gocosmos"
	// More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
	pagesMax = 50
)

// walk is one client in both of its forms.
type walk struct {
	db   *sql.DB
	rest *gocosmos.RestClient
}

func main() {
	readData()
	report("gocosmos", gocosmos.DefaultApiVersion)
	source := fmt.Sprintf("AccountEndpoint=%s;AccountKey=%s", os.Getenv("PERIHELION_ENDPOINT"), key)
	db, err := sql.Open("gocosmos", source+";DefaultDb="+database)
	must(err)
	rest, err := gocosmos.NewRestClient(nil, source)
	must(err)
	w := &walk{db: db, rest: rest}
	w.catalog()
	w.items()
	for _, wanted := range append(data.Queries, data.QuotedAliases) {
		if canServe(wanted) {
			checkRows(wanted.Name, w.query(wanted), wanted)
		}
	}
	w.pages()
	w.replace()
	w.remove()
	w.throughput()
	w.drop()
	finish(0)
}

// changed executes a statement and tells how many rows it changed.
func (w *walk) changed(statement string, values ...any) int64 {
	result, err := w.db.Exec(statement, values...)
	must(err)
	count, err := result.RowsAffected()
	must(err)
	return count
}

func (w *walk) refused(name string, expected error, statement string, values ...any) {
	_, err := w.db.Exec(statement, values...)
	check(name, errors.Is(err, expected), true)
}

// rows are the rows of a statement, a document each.
func (w *walk) rows(statement string, values ...any) []any {
	found, err := w.db.Query(statement, values...)
	must(err)
	defer found.Close()
	columns, err := found.Columns()
	must(err)
	var all []any
	for found.Next() {
		cells := make([]any, len(columns))
		targets := make([]any, len(columns))
		for index := range cells {
			targets[index] = &cells[index]
		}
		must(found.Scan(targets...))
		row := item{}
		for index, name := range columns {
			row[name] = cells[index]
		}
		all = append(all, row)
	}
	must(found.Err())
	return all
}

func (w *walk) catalog() {
	check("create database", w.changed("CREATE DATABASE "+database), 1)
	w.refused("create database twice", gocosmos.ErrConflict, "CREATE DATABASE "+database)
	check("list databases", names(w.rows("LIST DATABASES"))[database], true)
	wanted := data.Container
	create := fmt.Sprintf("CREATE COLLECTION %s.%s WITH pk=%s WITH ru=%d", database, wanted.Id, wanted.PartitionKey, wanted.Throughput)
	check("create container", w.changed(create), 1)
	w.refused("create container twice", gocosmos.ErrConflict, create)
	read := w.rest.GetCollection(database, wanted.Id)
	must(read.Error())
	check("read container", read.PartitionKey.Paths(), []string{wanted.PartitionKey})
	check("list containers", names(w.rows("LIST COLLECTIONS FROM "+database)), map[string]bool{wanted.Id: true})
}

func names(rows []any) map[string]bool {
	found := map[string]bool{}
	for _, row := range rows {
		found[row.(item)["id"].(string)] = true
	}
	return found
}

func (w *walk) write(verb string, document item) (sql.Result, error) {
	statement := fmt.Sprintf("%s INTO %s (id, device, city, celsius) VALUES (:1, :2, :3, :4) WITH pk=/device", verb, data.Container.Id)
	return w.db.Exec(statement, document["id"], document["device"], document["city"], document["celsius"])
}

func (w *walk) items() {
	for _, document := range data.Documents {
		_, err := w.write("INSERT", document)
		must(err)
	}
	check("create items", len(w.query(rows{Text: "SELECT * FROM c"})), len(data.Documents))
	_, err := w.write("INSERT", data.Read)
	check("create item twice", errors.Is(err, gocosmos.ErrConflict), true)
	check("read item", plain(w.read(data.Read).DocInfo), data.Read)
	check("read absent item", w.read(data.Absent).StatusCode, 404)
}

func (w *walk) read(document item) *gocosmos.RespGetDoc {
	return w.rest.GetDocument(gocosmos.DocReq{
		DbName: database, CollName: data.Container.Id, DocId: document["id"].(string),
		PartitionKeyValues: []any{document["device"]},
	})
}

// canServe tells whether the driver can serve a query: of several ranges it merges aggregates only if they are
// grouped, and it does not apply TOP to the merged rows.
func canServe(wanted rows) bool {
	isTop := strings.HasPrefix(wanted.Text, "SELECT TOP") && wanted.Key == nil
	return !isTop && !strings.HasPrefix(wanted.Text, "SELECT VALUE")
}

// query writes a query as the driver wants it: placeholders have numbers, and the scope is part of the text.
func (w *walk) query(wanted rows) []any {
	text := wanted.Text
	var values []any
	for index, parameter := range wanted.Parameters {
		text = strings.ReplaceAll(text, parameter.Name, fmt.Sprintf("@%d", index+1))
		values = append(values, parameter.Value)
	}
	if wanted.Key == nil {
		text = strings.Replace(text, "SELECT ", "SELECT CROSS PARTITION ", 1)
	}
	return w.rows(text+" WITH collection="+data.Container.Id, values...)
}

func (w *walk) pages() {
	var all []any
	for _, row := range w.query(rows{Text: "SELECT * FROM c"}) {
		all = append(all, plain(row.(item)))
	}
	var documents []any
	for _, document := range data.Documents {
		documents = append(documents, document)
	}
	checkRows("read feed", all, rows{Expected: documents})
	var pages [][]any
	request := gocosmos.ListDocsReq{DbName: database, CollName: data.Container.Id, MaxItemCount: data.FeedPages.Size}
	for count := 0; count < pagesMax; count++ {
		page := w.rest.ListDocuments(request)
		must(page.Error())
		var ids []any
		for _, document := range page.Documents {
			ids = append(ids, document["id"])
		}
		pages = append(pages, ids)
		if request.ContinuationToken = page.ContinuationToken; request.ContinuationToken == "" {
			break
		}
	}
	checkPages("feed in pages", pages, data.FeedPages)
	checkPages("query in pages", w.resumed(data.QueryPages), data.QueryPages)
}

// resumed takes each page by a query of its own that resumes with the continuation of the last.
func (w *walk) resumed(wanted rows) [][]any {
	var pages [][]any
	request := gocosmos.QueryReq{
		DbName: database, CollName: data.Container.Id, Query: wanted.Text, PkValue: *wanted.Key, MaxItemCount: wanted.Size,
	}
	for count := 0; count < pagesMax; count++ {
		page := w.rest.QueryDocuments(request)
		must(page.Error())
		pages = append(pages, page.Documents)
		if request.ContinuationToken = page.ContinuationToken; request.ContinuationToken == "" {
			break
		}
	}
	return pages
}

func (w *walk) update(document item) int64 {
	statement := fmt.Sprintf("UPDATE %s SET celsius=:1 WHERE id=:2 AND device=:3", data.Container.Id)
	return w.changed(statement, document["celsius"], document["id"], document["device"])
}

func (w *walk) replaceIf(etag string, document item) *gocosmos.RespReplaceDoc {
	return w.rest.ReplaceDocument(etag, gocosmos.DocumentSpec{
		DbName: database, CollName: data.Container.Id, PartitionKeyValues: []any{document["device"]}, DocumentData: document,
	})
}

func (w *walk) replace() {
	before := w.read(data.Read)
	check("replace item", w.update(data.Replaced), 1)
	after := w.read(data.Replaced)
	check("read updated item", plain(after.DocInfo), data.Replaced)
	conditional := w.replaceIf(after.Etag(), data.ReplacedOnCondition)
	check("conditional replace", conditional.StatusCode, 200)
	check("conditional replace of an old version", w.replaceIf(before.Etag(), data.Replaced).StatusCode, 412)
	check("read replaced item", plain(w.read(data.Read).DocInfo), data.ReplacedOnCondition)
	check("replace absent item", w.update(data.Absent), 0)
	_, err := w.write("UPSERT", data.Upserted)
	must(err)
	check("upsert item", plain(w.read(data.Upserted).DocInfo), data.Upserted)
}

func (w *walk) remove() {
	statement := fmt.Sprintf("DELETE FROM %s.%s WHERE id=:1 AND device=:2", database, data.Container.Id)
	values := []any{data.Deleted["id"], data.Deleted["device"]}
	check("delete item", w.changed(statement, values...), 1)
	check("read deleted item", w.read(data.Deleted).StatusCode, 404)
	check("delete absent item", w.changed(statement, values...), 0)
}

func (w *walk) throughput() {
	container := w.rest.GetCollection(database, data.Container.Id)
	must(container.Error())
	current := func() int {
		offer := w.rest.GetOfferForResource(container.Rid)
		must(offer.Error())
		return offer.OfferThroughput()
	}
	check("read offer", current(), data.Container.Throughput)
	alter := fmt.Sprintf("ALTER COLLECTION %s.%s WITH ru=%d", database, data.Container.Id, data.Container.ThroughputReplaced)
	check("alter container", w.changed(alter), 1)
	check("replace offer", current(), data.Container.ThroughputReplaced)
}

func (w *walk) drop() {
	drop := fmt.Sprintf("DROP COLLECTION %s.%s", database, data.Container.Id)
	check("delete container", w.changed(drop), 1)
	w.refused("delete absent container", gocosmos.ErrNotFound, drop)
	check("delete database", w.changed("DROP DATABASE "+database), 1)
	w.refused("delete absent database", gocosmos.ErrNotFound, "DROP DATABASE "+database)
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"sort"
	"strings"
)

const key = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// item is a document or a row.
type item = map[string]any

// rows are expected in their order or in any.
type rows struct {
	Name       string
	Text       string
	Parameters []struct {
		Name  string
		Value any
	}
	Key       *string
	Size      int
	IsOrdered bool
	Expected  []any
}

// data is what all clients walk through.
var data struct {
	Container struct {
		Id, PartitionKey               string
		Throughput, ThroughputReplaced int
	}
	Documents                                                      []item
	Read, Absent, Replaced, ReplacedOnCondition, Upserted, Deleted item
	Queries                                                        []rows
	FeedPages, QueryPages, QuotedAliases                           rows
}

var passed = 0

func readData() {
	text, err := os.ReadFile("../walk.json")
	must(err)
	must(json.Unmarshal(text, &data))
}

// check counts a right answer; a wrong one ends the program.
func check(name string, actual, expected any) {
	found, wanted := normal(actual), normal(expected)
	if !reflect.DeepEqual(found, wanted) {
		fmt.Printf("FAILED %s: expected %v, got %v\n", name, wanted, found)
		finish(1)
	}
	passed++
	fmt.Println("ok", name)
}

// checkRows compares the rows of a query or a feed, in any order unless one is promised.
func checkRows(name string, actual []any, wanted rows) {
	expected := wanted.Expected
	if !wanted.IsOrdered {
		actual, expected = sorted(actual), sorted(expected)
	}
	check(name, actual, expected)
}

// checkPages expects pages of a bounded size that give every row once. Empty pages are allowed.
func checkPages(name string, pages [][]any, wanted rows) {
	var all []any
	var sizes []int
	isBounded := true
	for _, page := range pages {
		all = append(all, page...)
		if len(page) > 0 {
			sizes = append(sizes, len(page))
		}
		isBounded = isBounded && len(page) <= wanted.Size
	}
	if len(sizes) < 2 || !isBounded {
		check(name+": sizes", sizes, fmt.Sprintf("several of at most %d rows", wanted.Size))
	}
	checkRows(name, all, wanted)
}

// normal gives equal values equal types: all numbers are float64, as JSON has them.
func normal(value any) any {
	text, err := json.Marshal(value)
	must(err)
	var result any
	must(json.Unmarshal(text, &result))
	return result
}

func sorted(rows []any) []any {
	copied := append([]any{}, rows...)
	text := func(row any) string { return fmt.Sprint(normal(row)) }
	sort.Slice(copied, func(left, right int) bool { return text(copied[left]) < text(copied[right]) })
	return copied
}

// plain is the item without system properties.
func plain(document item) item {
	copied := item{}
	for name, value := range document {
		if !strings.HasPrefix(name, "_") {
			copied[name] = value
		}
	}
	return copied
}

// report prints the line from which the table of clients is made.
func report(client, protocol string) {
	module, err := os.ReadFile("go.mod")
	must(err)
	version := regexp.MustCompile(client + ` v(\S+)`).FindSubmatch(module)
	if version == nil {
		must(fmt.Errorf("go.mod does not name %s", client))
	}
	fmt.Printf("client {\"client\": %q, \"version\": %q, \"language\": \"Go\", \"protocol\": %q}\n", client, version[1], protocol)
}

// must ends the program by an error that no check expects.
func must(err error) {
	if err != nil {
		fmt.Printf("FAILED after %d checks: %v\n", passed, err)
		finish(1)
	}
}

func finish(failed int) {
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	os.Exit(failed)
}

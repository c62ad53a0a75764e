// A pre-trigger: refuses a book whose author does not exist, and stamps the others.
function checkAuthor() {
  var collection = getContext().getCollection();
  var request = getContext().getRequest();
  var book = request.getBody();
  book.checked = true;
  request.setBody(book);
  var filter = { query: "SELECT VALUE c.id FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: book.authorId }] };
  collection.queryDocuments(collection.getSelfLink(), filter, function (err, found) {
    if (err) throw err;
    if (found.length === 0) throw new Error(409, "dangling author " + book.authorId);
  });
}

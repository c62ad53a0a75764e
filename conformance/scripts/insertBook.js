// A book and the number of books of its author, in one transaction.
function insertBook(book) {
  var collection = getContext().getCollection();
  var link = collection.getSelfLink();
  var query = {
    query: "SELECT * FROM c WHERE c.type = 'author' AND c.id = @id",
    parameters: [{ name: "@id", value: book.authorId }],
  };
  var isAccepted = collection.createDocument(link, book, function (err, created) {
    if (err) throw err;
    collection.queryDocuments(link, query, function (err, authors) {
      if (err) throw err;
      if (authors.length !== 1) throw new Error(404, "no author " + book.authorId);
      var author = authors[0];
      author.countOfBooks = (author.countOfBooks || 0) + 1;
      collection.replaceDocument(author._self, author, { etag: author._etag }, function (err, replaced) {
        if (err) throw err;
        console.log("author %s", replaced.id);
        getContext().getResponse().setBody({ book: created.id, countOfBooks: replaced.countOfBooks });
      });
    });
  });
  if (!isAccepted) throw new Error("The book was not accepted.");
}

// A post-trigger: counts the created book in its author, in the same transaction.
function countBook() {
  var collection = getContext().getCollection();
  var book = getContext().getResponse().getBody();
  var isAccepted = collection.readDocument(collection.getAltLink() + "/docs/" + book.authorId, function (err, author) {
    if (err) throw err;
    author.countOfBooks = (author.countOfBooks || 0) + 1;
    collection.replaceDocument(author._self, author, function (err) {
      if (err) throw err;
    });
  });
  if (!isAccepted) throw new Error("The author was not read.");
}

// Deletes what a query finds until the budget is used up; returns whether the client must call again.
function bulkDelete(query) {
  var collection = getContext().getCollection();
  var answer = { deleted: 0, continuation: true };
  find();
  function find(continuation) {
    var options = { continuation: continuation, pageSize: 20 };
    var isAccepted = collection.queryDocuments(collection.getSelfLink(), query, options, function (err, items, next) {
      if (err) throw err;
      if (items.length > 0) remove(items);
      else if (next.continuation) find(next.continuation);
      else {
        answer.continuation = false;
        getContext().getResponse().setBody(answer);
      }
    });
    if (!isAccepted) getContext().getResponse().setBody(answer);
  }
  function remove(items) {
    if (items.length === 0) return find();
    var isAccepted = collection.deleteDocument(items[0]._self, {}, function (err) {
      if (err) throw err;
      answer.deleted++;
      items.shift();
      remove(items);
    });
    if (!isAccepted) getContext().getResponse().setBody(answer);
  }
}

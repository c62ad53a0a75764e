// A pre-trigger: gives a new item the next number of its partition key.
function autoIncrement() {
  var collection = getContext().getCollection();
  var request = getContext().getRequest();
  var item = request.getBody();
  collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c WHERE c.id = '_sequence'", function (err, found) {
    if (err) throw err;
    var sequence = found[0] || { id: "_sequence", pk: item.pk, last: 0 };
    sequence.last++;
    collection.upsertDocument(collection.getSelfLink(), sequence, function (err) {
      if (err) throw err;
      item.number = sequence.last;
      request.setBody(item);
    });
  });
}

// A counter that is made when it is first used.
function increment(id, pk, by) {
  var collection = getContext().getCollection();
  collection.readDocument(collection.getAltLink() + "/docs/" + id, function (err, counter) {
    if (err && err.number !== ErrorCodes.NotFound) throw err;
    counter = counter || { id: id, pk: pk, value: 0 };
    counter.value += by || 1;
    collection.upsertDocument(collection.getSelfLink(), counter, function (err, stored) {
      if (err) throw err;
      getContext().getResponse().setBody(stored.value);
    });
  });
}

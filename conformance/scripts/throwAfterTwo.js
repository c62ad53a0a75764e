// Throws after two creates: nothing of them stays.
function throwAfterTwo(pk) {
  var collection = getContext().getCollection();
  collection.createDocument(collection.getSelfLink(), { id: "one", pk: pk }, function (err) {
    if (err) throw err;
    collection.createDocument(collection.getSelfLink(), { id: "two", pk: pk }, function (err) {
      if (err) throw err;
      throw new Error("after two");
    });
  });
}

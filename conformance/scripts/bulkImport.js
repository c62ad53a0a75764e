// Creates or upserts items until the budget is used up; returns how many, so that the client continues there.
function bulkImport(items, isUpsert) {
  var collection = getContext().getCollection();
  var count = 0;
  if (!items) throw new Error("The array is undefined or null.");
  next();
  function next() {
    if (count >= items.length) return getContext().getResponse().setBody(count);
    var store = isUpsert ? collection.upsertDocument : collection.createDocument;
    var isAccepted = store.call(collection, collection.getSelfLink(), items[count], done);
    if (!isAccepted) getContext().getResponse().setBody(count);
  }
  function done(err) {
    if (err) throw err;
    count++;
    next();
  }
}

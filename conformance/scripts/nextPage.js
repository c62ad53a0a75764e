// One page of a query, and where the next one starts.
function nextPage(query, size, continuation) {
  var isAccepted = __.queryDocuments(__.getSelfLink(), query, { pageSize: size, continuation: continuation }, function (err, items, next) {
    if (err) throw err;
    __.response.setBody({ items: items, continuation: next.continuation || null });
  });
  if (!isAccepted) throw new Error("not accepted");
}

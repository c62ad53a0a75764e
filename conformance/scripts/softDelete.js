// Marks an item as deleted and lets it expire, instead of deleting it; async style.
async function softDelete(id, seconds) {
  const collection = getContext().getCollection();
  const call = (method, ...parameters) => new Promise((resolve, reject) => {
    const isAccepted = collection[method](...parameters, (err, result) => (err ? reject(err) : resolve(result)));
    if (!isAccepted) reject(new Error("not accepted"));
  });
  const item = await call("readDocument", `${collection.getAltLink()}/docs/${id}`);
  const marked = await call("replaceDocument", item._self, { ...item, isDeleted: true, ttl: seconds });
  getContext().getResponse().setBody({ id: marked.id, isDeleted: marked.isDeleted, ttl: marked.ttl });
}

// The latest state of a device over all its readings. Readings may arrive late: an older one changes nothing.
function setLatestStateAcrossReadings(reading) {
  var collection = getContext().getCollection();
  var link = collection.getSelfLink();
  collection.upsertDocument(link, reading, function (err) {
    if (err) throw err;
    var query = "SELECT TOP 1 * FROM c WHERE c.type = 'reading' ORDER BY c.time DESC";
    collection.queryDocuments(link, query, function (err, readings) {
      if (err) throw err;
      var latest = { id: "latest", deviceId: reading.deviceId, type: "state", time: readings[0].time, value: readings[0].value };
      latest.pk = reading.pk;
      collection.upsertDocument(link, latest, function (err, state) {
        if (err) throw err;
        getContext().getResponse().setBody(state.value);
      });
    });
  });
}

// A pre-trigger: refuses a second item with the same name.
function unique() {
  var item = getContext().getRequest().getBody();
  __.filter(
    function (other) { return other.name === item.name && other.id !== item.id; },
    function (err, others) {
      if (err) throw err;
      if (others.length > 0) throw new Error(409, "the name " + item.name + " is taken");
    }
  );
}

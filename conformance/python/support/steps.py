"""Scripts that carry out a list of steps in one transaction: the steps are those of a transactional batch.

If a step fails, the error has the number of its refusal, and its text says which step of what it was.
"""

import re

_RUN = """
function run(steps, owner, done) {
    var c = getContext().getCollection(), self = c.getSelfLink(), items = [];
    function next(n) {
        if (n === steps.length) return done(items);
        var step = steps[n], kind = step.operationType, body = step.resourceBody;
        var link = c.getAltLink() + '/docs/' + step.id, options = step.ifMatch ? { etag: step.ifMatch } : {};
        function stored(err, item) {
            if (err) throw new Error(err.number, owner + ' ' + n + ' failed: ' + err.message);
            items.push(kind === 'Delete' ? null : item);
            next(n + 1);
        }
        var accepted = kind === 'Create' ? c.createDocument(self, body, options, stored)
            : kind === 'Upsert' ? c.upsertDocument(self, body, options, stored)
            : kind === 'Replace' ? c.replaceDocument(link, body, options, stored)
            : kind === 'Patch' ? c.patchDocument(link, body.operations, options, stored)
            : kind === 'Read' ? c.readDocument(link, options, stored)
            : c.deleteDocument(link, options, stored);
        if (!accepted) throw new Error('not accepted');
    }
    next(0);
}
"""
# A stored procedure that answers what each step shows, `null` for a delete; `fails` makes it throw after the last one.
PROCEDURE = """function steps(steps, fails) {
    run(steps, 'step', function (items) {
        if (fails) throw new Error('all of it is undone');
        getContext().getResponse().setBody(items);
    });
}""" + _RUN
# A pre-trigger that reads the item whose id is in `guard` and adds what it has read to the item to write.
PRE_TRIGGER = """function before() {
    var c = getContext().getCollection(), request = getContext().getRequest(), item = request.getBody();
    c.readDocument(c.getAltLink() + '/docs/' + item.guard, function (err, guard) {
        if (err) throw new Error(err.number, 'guard 0 failed: ' + err.message);
        item.seen = guard;
        request.setBody(item);
    });
}"""
# A post-trigger that carries out the steps in `after` and answers the item together with what they show.
POST_TRIGGER = """function after() {
    var response = getContext().getResponse(), item = response.getBody();
    run(item.after, 'after', function (items) { response.setBody({ item: item, items: items }); });
}""" + _RUN

_FAILED = re.compile(r"\b(step|guard|after) (\d+) failed")


def failed_step(text):
    """Owner and index of the step that an error names, if it names one."""
    found = _FAILED.search(text)
    return (found[1], int(found[2])) if found else None

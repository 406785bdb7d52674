"""Every verb and operation that takes --json answers a failure with one document that says so."""
import json

import verb_tree

seen = 0
for leaf in verb_tree.leaves():
    if "--json" not in verb_tree.run(*leaf, "--help").stdout:
        continue
    seen += 1
    done = verb_tree.run(*leaf, "--json", "--no-such-option")
    document = json.loads(done.stdout)
    error = document["error"]
    assert document["schema"] == 2 and list(document) == ["schema", "error"], (leaf, document)
    assert done.returncode == error["exit_code"] == 2, (leaf, done)
    assert error["code"] == "invalidArgument" and error["message"] and isinstance(error["hints"], list), (leaf, error)
assert seen >= 22, seen

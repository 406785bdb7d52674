"""Every verb and operation lists -q and -v, and has an example that begins with its own words."""
import verb_tree

for leaf in verb_tree.leaves():
    said = verb_tree.run(*leaf, "--help").stdout
    assert "-q,--quiet" in said and "-v,--verbose" in said, leaf
    assert f"\n  heddle {' '.join(leaf)}" in said, leaf
    assert "HEDDLE_DB  " not in said, leaf

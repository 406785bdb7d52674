// Owns the text in which the tables of elements and of kinds leave the library (heddle_tables), for programs in other
// languages: Python checks its calls by them. What a table gains is here at once; who reads it skips what it does not
// know.
#pragma once

#include <string>

namespace heddle {

// {"elements": [{"name", "mlir", "torch", "number", "bytes", "dlpack"}],
//  "kinds": [{"name", "base", "adds", "is_deterministic",
//             "roles": [{"name", "form", "element", "extents", "access", "presence"}]}],
//  "kind_suffixes": {"gradients_of", "out", "keys", "precision": {name: {"of", "suffix"}}, "scale_rows"}}
// mlir: the name in patterns; torch: of PyTorch and numpy; number: heddle_dtype, 0 where no tensor of a call has it;
// dlpack: DLDataTypeCode. Roles are in the order in which sizes are taken from them; element, of this kind of call;
// extents are names of sizes, in the order of memory. The text of a kernel's kind is its name, gradients_of and numbers
// of arguments with _ between them, and those of keys, out, precision, for elements `of`, and scale_rows; each but the name
// where there is something to say.
const std::string &tablesText();

} // namespace heddle

#include "dialect/Analysis/DocumentRows.h"

using namespace mlir;

namespace heddle::attn {

/// Any document may hold rows: those that tensors leave out belong to the first or the last one.
static DocumentRows withAllRows(const DocumentRows &documents) {
  const IntExpr number = symbol(Symbol::Cell), rows = symbol(Symbol::SeqlenQ), count = max(documents.count, 1);
  const IntExpr inside = min(max(documents.begin, 0), rows);
  return {count, select(less(0, number), select(less(number, count), inside, rows), 0)};
}

std::optional<DocumentRows> documentRowsOf(PatternOp pattern, std::string &whyNone) {
  std::optional<DocumentRows> documents;
  for (auto mask : pattern.getBody().front().getOps<MaskOpInterface>()) {
    std::optional<DocumentRows> own = mask.documentRows();
    if (own && documents && own->begin != documents->begin) {
      whyNone = "its masks lay the rows into documents of different tensors";
      return std::nullopt;
    }
    if (own)
      documents = documents ? DocumentRows{min(documents->count, own->count), own->begin} : *own;
  }
  if (!documents)
    whyNone = "its rows do not lie in documents";
  return documents ? std::optional(withAllRows(*documents)) : std::nullopt;
}

} // namespace heddle::attn

#include "codegen/Config/DocumentTiles.h"
#include "codegen/Config/ForwardLaunch.h"
#include "codegen/Config/KernelRequest.h"

namespace heddle {

LaunchExpr itemsOfHead(const KernelRequest &request, const ForwardConfig &config, int64_t rows) {
  if (!config.documentTiles)
    return itemsPerHead(request, rows);
  return floorDiv(LaunchSymbol::seqlenQ, rows) + request.documents;
}

// Whatever the configuration.
static std::optional<std::string> whyPacked(const KernelRequest &request) {
  if (!request.hasDocuments)
    return "tiles cannot begin where documents do: " +
           (request.whyNoDocuments.empty() ? "the documents of the pattern are not known" : request.whyNoDocuments);
  for (const VariantRates &variant : request.variants)
    if (variant.queryRate != 1)
      return "a document's tiles are of neighbouring rows, and rows lie in " + std::to_string(variant.queryRate) +
             " classes";
  return std::nullopt;
}

std::optional<std::string> checkDocumentTiles(const KernelRequest &request, const ForwardConfig &config) {
  if (!config.documentTiles)
    return std::nullopt;
  if (config.chainedMib)
    return std::string("rounds of passes begin where tiles of all rows do, not where documents begin");
  return whyPacked(request);
}

void appendDocumentKnob(std::vector<Knob> &knobs, const KernelRequest &request, size_t group) {
  if (!whyPacked(request))
    knobs.push_back(
        {"document_tiles",
         "query tiles over the borders of documents, or tiles of every document's own, of which the last may be short",
         {0, 1},
         group});
}

} // namespace heddle

// Owns the choice between tiles that run over the borders of documents, masked there, and tiles of every document's own
// (`document_tiles`): where it exists, and how many work items follow. The device half is document_items.cuh.
#pragma once

#include "codegen/Config/Constraint.h"
#include "codegen/Config/ForwardConfig.h"
#include "runtime/Core/LaunchExpr.h"

namespace heddle {

/// Work items of one head, each of `rows` rows: itemsPerHead (ForwardLaunch.h), or, where documents have tiles of their
/// own, floor(seqlen_q / rows) and one more for each document, some of which then have no rows.
LaunchExpr itemsOfHead(const KernelRequest &request, const ForwardConfig &config, int64_t rows);

/// Why documents of the request cannot have tiles of their own; nothing if they have none in this configuration, or
/// can.
std::optional<std::string> checkDocumentTiles(const KernelRequest &request, const ForwardConfig &config);

/// The request has documents of neighbouring rows, or there is nothing to choose.
void appendDocumentKnob(std::vector<Knob> &knobs, const KernelRequest &request, size_t group);

} // namespace heddle

//===- DocumentFunctions.h - where documents begin --------------*- C++ -*-===//
// Owns pattern_document_count and pattern_document_row (docs/architecture.md, section 2), which a pattern has whose
// rows lie in documents.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_SCHEDULE_DOCUMENTFUNCTIONS_H
#define HEDDLE_CODEGEN_SCHEDULE_DOCUMENTFUNCTIONS_H

#include "dialect/IR/Attn.h"

#include "mlir/IR/BuiltinOps.h"

namespace heddle {

/// Appends both to the module of the pattern's functions; nothing if its rows lie in no documents, or in several ways.
void appendDocumentFunctions(mlir::ModuleOp module, attn::PatternOp pattern);

} // namespace heddle

#endif

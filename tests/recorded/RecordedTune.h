//===- RecordedTune.h - a search that a table answers -----------*- C++ -*-===//
// Owns how a session runs without a GPU: the trials of a recorded table stand in for compilation and launches, so that
// strategies, databases and sweeps are tried as they are, on any machine. Nothing is measured, and whoever shows the
// outcome has to say so.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/TuneSession.h"
#include "tests/recorded/RecordedTable.h"

namespace heddle {

/// What a table says of the GPU that it was recorded on. The last two may be missing.
inline constexpr const char *kGpuFact = "gpu", *kSmCountFact = "sm_count", *kMemoryFact = "memory_gib";

/// Facts that deviceOf reads back.
void setDevice(tuner::RecordedTable &table, const DeviceIdentity &device);
/// The GPU of the table. SMs that it does not count are those of the data sheet, memory is then 0. invalidArgument: it
/// names no GPU; notFound: one that has no data sheet here.
Result<DeviceIdentity> deviceOf(const tuner::RecordedTable &table);

/// As tune(), on the GPU of the table. The space are the rows of the table, and the sizes are not compared with those
/// that it was recorded on. A recorded second takes `pace` seconds. The winner is compiled and published as tuned, with
/// the recorded time and no driver; without a compiler it is left out.
/// invalidArgument: a row that is no configuration of the kernels that serve the request.
Result<TuneOutcome> tuneRecorded(const PatternFile &file, const TuneRequest &request, tuner::RecordedTable table,
                                 double pace, Store &store);

} // namespace heddle

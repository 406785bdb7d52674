// Results that leave piece by piece.
#pragma once

#include "compiler/Io/Safetensors.h"
#include "compiler/Stream/StreamCall.h"

namespace heddle {

/// The file that writeAttentionOutputs would write of a call of rows from `firstRow` on; it has its name after publish().
class PiecesFile final : public StreamSink {
public:
  /// io: the disk has no room for it, said before anything is computed.
  static Result<std::unique_ptr<PiecesFile>> create(const std::string &path, const RowSource &source, int64_t firstRow);
  Status take(const StreamPiece &piece, StreamMachine &machine) override;
  Status publish() { return file.publish(); }

private:
  PiecesFile(SafetensorsPieces file, int64_t firstRow) : file(std::move(file)), firstRow(firstRow) {}
  SafetensorsPieces file;
  int64_t firstRow;
  std::vector<char> onHost;
};

} // namespace heddle

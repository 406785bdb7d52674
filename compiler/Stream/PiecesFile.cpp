#include "compiler/Stream/PiecesFile.h"

namespace heddle {

Result<std::unique_ptr<PiecesFile>> PiecesFile::create(const std::string &path, const RowSource &source,
                                                       int64_t firstRow) {
  AttentionSizes sizes = source.sizes;
  sizes.seqlenQ -= firstRow;
  std::map<std::string, HostTensor> tensors;
  for (const RoleSpec &role : rolesOf(Kind(), Access::write))
    tensors[role.name] = HostTensor{CallElements(source.dtype).of(role.element), sizes.shapeOf(role), {}};
  HEDDLE_ASSIGN(SafetensorsPieces file, SafetensorsPieces::create(path, tensors));
  return std::unique_ptr<PiecesFile>(new PiecesFile(std::move(file), firstRow));
}

Status PiecesFile::take(const StreamPiece &piece, StreamMachine &machine) {
  const AttentionSizes &sizes = machine.source().sizes;
  const int64_t rows = piece.rows.size(), first = piece.rows.begin - firstRow, all = sizes.seqlenQ - firstRow;
  const int64_t width = sizes.heads * sizes.valueDim, element = dtypeBytes(machine.source().dtype);
  onHost.resize(size_t(sizes.batch * rows * width * element));
  HEDDLE_TRY(machine.take(piece.out, onHost.size(), onHost.data()));
  for (int64_t batch = 0; batch < sizes.batch; ++batch)
    HEDDLE_TRY(file.write(specOf(Role::out).name, uint64_t((batch * all + first) * width),
                          onHost.data() + batch * rows * width * element, uint64_t(rows * width)));
  onHost.resize(size_t(sizes.batch * sizes.heads * rows) * sizeof(float));
  HEDDLE_TRY(machine.take(piece.lse, onHost.size(), onHost.data()));
  for (int64_t line = 0; line < sizes.batch * sizes.heads; ++line)
    HEDDLE_TRY(file.write(specOf(Role::lse).name, uint64_t(line * all + first),
                          onHost.data() + size_t(line * rows) * sizeof(float), uint64_t(rows)));
  return {};
}

} // namespace heddle

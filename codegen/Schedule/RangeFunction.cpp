//===- RangeFunction.cpp - ranges as device code --------------------------===//
// Each piece gives its next tiles at or after `from`; a run begins at the first of them and ends where the set of
// pieces that cover it changes. Nothing is stored or sorted, so a query tile needs no memory for its ranges.
//===----------------------------------------------------------------------===//
#include "codegen/Schedule/RangeFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
namespace arith = mlir::arith;
namespace scf = mlir::scf;

namespace heddle {
namespace {

/// Column numbers that one piece visits, and may call full, in one combination of cells.
struct CellColumns {
  Value visitFirst, visitLast, hasRows, fullFirst, fullLast;
};

/// Accumulators that are carried through the loops over cells.
using Carried = SmallVector<Value, 4>;

class RangeBuilder {
public:
  RangeBuilder(FunctionBuilder &function, const attn::BranchRanges &branch, const TileArguments &tile)
      : function(function), branch(branch), tile(tile), builder(function.builder), loc(function.loc) {}

  KeyRun build() {
    SmallVector<PieceRun> pieces;
    for (const attn::PieceRange &piece : branch.pieces)
      pieces.push_back(nextOf(piece));
    Value none = function.constant(kNoTile);
    KeyRun run{none, none, none, none, none};
    for (const PieceRun &piece : pieces)
      run.begin = min(run.begin, piece.begin);
    run.fullBegin = run.fullEnd = run.begin;
    for (const PieceRun &piece : pieces)
      run.end = min(run.end, select(less(run.begin, piece.begin), piece.begin, piece.end));
    run.reach = run.end;
    for (const PieceRun &piece : pieces)
      run.reach = max(run.reach, select(less(run.begin, piece.begin), run.end, piece.end));
    for (const PieceRun &piece : pieces)
      widenFull(run, piece);
    return run;
  }

private:
  Value add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
  Value max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
  Value both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
  Value select(Value condition, Value a, Value b) { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value less(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b); }
  Value lessEqual(Value a, Value b) { return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, a, b); }
  Value one() { return function.constant(1); }
  /// Columns that matter are not negative; what an empty range gives is never used.
  Value tileOf(Value column) { return arith::DivUIOp::create(builder, loc, column, tile.blockN); }
  Value firstTileFrom(Value column) { return tileOf(add(column, sub(tile.blockN, one()))); }

  Value symbolValue(attn::Symbol symbol, const std::map<unsigned, Value> &cells) {
    if (symbol.kind == attn::Symbol::TileFirst)
      return tile.tileFirst;
    if (symbol.kind == attn::Symbol::TileLast)
      return tile.tileLast;
    if (symbol.kind == attn::Symbol::Cell)
      return cells.at(symbol.index);
    return function.contextSymbol(symbol);
  }

  using CellBody = function_ref<Carried(const CellColumns &, Carried)>;

  /// Runs `body` for every combination of cells that the tile crosses.
  Carried overCells(const attn::PieceRange &piece, Carried initial, CellBody body) {
    std::map<unsigned, Value> cells;
    return overCellsFrom(piece, 0, cells, std::move(initial), body);
  }

  Carried overCellsFrom(const attn::PieceRange &piece, size_t depth, std::map<unsigned, Value> &cells, Carried initial,
                        CellBody body) {
    attn::ExprBuilder expressions(builder, loc, [&](attn::Symbol symbol) { return symbolValue(symbol, cells); });
    if (depth == piece.cells.size())
      return body({expressions.integer(piece.visitFirst), expressions.integer(piece.visitLast),
                   expressions.condition(piece.hasRows), expressions.integer(piece.fullFirst),
                   expressions.integer(piece.fullLast)},
                  std::move(initial));
    Value lower = expressions.integer(piece.cells[depth].lower);
    Value upper = expressions.integer(piece.cells[depth].upper), end = add(upper, one());
    auto loop = scf::ForOp::create(builder, loc, lower, end, one(), initial);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    cells[piece.cells[depth].cell] = loop.getInductionVar();
    Carried carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    Carried next = overCellsFrom(piece, depth + 1, cells, carried, body);
    scf::YieldOp::create(builder, loc, next);
    return Carried(loop.getResults().begin(), loop.getResults().end());
  }

  /// The next tiles of one piece, and the columns that its rows all keep.
  struct PieceRun {
    Value begin, end, fullFirst, fullLast;
  };

  /// Cells come in ascending order, so the first that reaches past `from` holds the piece's next tiles.
  PieceRun nextOf(const attn::PieceRange &piece) {
    Value none = function.constant(kNoTile);
    Carried initial = {none, none, function.constant(-kNoTile - 1), none};
    Carried result = overCells(piece, initial, [&](const CellColumns &columns, Carried carried) -> Carried {
      Value last = tileOf(columns.visitLast), end = add(last, one());
      Value hasColumns = lessEqual(columns.visitFirst, columns.visitLast), reaches = both(hasColumns, less(tile.from, end));
      Value isNext = both(reaches, isNone(carried[0]));
      return {select(isNext, max(tileOf(columns.visitFirst), tile.from), carried[0]),
              select(isNext, end, carried[1]),
              select(columns.hasRows, max(carried[2], columns.fullFirst), carried[2]),
              select(columns.hasRows, min(carried[3], columns.fullLast), carried[3])};
    });
    return {result[0], result[1], result[2], result[3]};
  }
  Value isNone(Value tileNumber) { return function.isEqual(tileNumber, kNoTile); }

  void widenFull(KeyRun &run, const PieceRun &piece) {
    Value begin = max(firstTileFrom(piece.fullFirst), run.begin), end = min(endOfFull(piece.fullLast), run.end);
    Value known = sub(run.fullEnd, run.fullBegin), wider = less(known, sub(end, begin));
    Value isFull = both(lessEqual(piece.fullFirst, piece.fullLast), wider);
    run.fullBegin = select(isFull, begin, run.fullBegin);
    run.fullEnd = select(isFull, end, run.fullEnd);
  }

  /// Tiles that end at or before `last`; a last tile that the class cuts short counts.
  Value endOfFull(Value last) {
    std::map<unsigned, Value> noCells;
    attn::ExprBuilder expressions(builder, loc, [&](attn::Symbol symbol) { return symbolValue(symbol, noCells); });
    Value count = expressions.integer(branch.columnCount), end = add(last, one());
    Value isCut = lessEqual(count, end), ofCount = firstTileFrom(count), ofEnd = tileOf(end);
    return select(isCut, ofCount, ofEnd);
  }

  FunctionBuilder &function;
  const attn::BranchRanges &branch;
  const TileArguments &tile;
  OpBuilder &builder;
  Location loc;
};

} // namespace

KeyRun buildNextRange(FunctionBuilder &function, const attn::BranchRanges &branch, const TileArguments &tile) {
  return RangeBuilder(function, branch, tile).build();
}

} // namespace heddle

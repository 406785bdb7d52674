//===- RangeFunction.cpp - ranges as device code --------------------------===//
// A run is found in two sweeps over the pieces: the first finds where it begins, the second where the set of pieces
// that cover it changes. Nothing is stored or sorted, so a query tile needs no memory for its ranges.
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
using Carried = SmallVector<Value, 3>;

class RangeBuilder {
public:
  RangeBuilder(FunctionBuilder &function, const attn::BranchRanges &branch, const TileArguments &tile)
      : function(function), branch(branch), tile(tile), builder(function.builder), loc(function.loc) {}

  KeyRun build() {
    Value none = function.constant(kNoTile);
    Value begin = none;
    for (const attn::PieceRange &piece : branch.pieces)
      begin = overCells(piece, {begin}, [&](const CellColumns &columns, Carried carried) -> Carried {
        return {min(carried[0], nextTileOf(columns))};
      })[0];
    KeyRun run{begin, none, begin, begin};
    for (const attn::PieceRange &piece : branch.pieces)
      extend(run, piece);
    run.fullEnd = min(run.fullEnd, run.end);
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
  Value tileOf(Value column) { return attn::buildFloorDiv(builder, loc, column, tile.blockN); }
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
    Value end = add(expressions.integer(piece.cells[depth].upper), one());
    auto loop = scf::ForOp::create(builder, loc, lower, end, one(), initial);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    cells[piece.cells[depth].cell] = loop.getInductionVar();
    Carried carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    Carried next = overCellsFrom(piece, depth + 1, cells, carried, body);
    scf::YieldOp::create(builder, loc, next);
    return Carried(loop.getResults().begin(), loop.getResults().end());
  }

  struct Tiles {
    Value any, begin, end;
  };
  Tiles tilesOf(const CellColumns &columns) {
    return {lessEqual(columns.visitFirst, columns.visitLast), tileOf(columns.visitFirst),
            add(tileOf(columns.visitLast), one())};
  }

  /// The first tile at or after `from` that these columns touch.
  Value nextTileOf(const CellColumns &columns) {
    Tiles tiles = tilesOf(columns);
    return select(both(tiles.any, less(tile.from, tiles.end)), max(tiles.begin, tile.from), function.constant(kNoTile));
  }

  /// Where these columns end if they hold the run's first tile, where they begin if that is later.
  Value nextChange(const CellColumns &columns, Value begin) {
    Tiles tiles = tilesOf(columns);
    Value none = function.constant(kNoTile);
    Value ending = select(less(begin, tiles.end), tiles.end, none);
    return select(tiles.any, select(less(begin, tiles.begin), tiles.begin, ending), none);
  }

  /// Ends the run where `piece` starts or stops, and widens its full part by the piece's.
  void extend(KeyRun &run, const attn::PieceRange &piece) {
    Value lowest = function.constant(-kNoTile - 1), none = function.constant(kNoTile);
    Carried result = overCells(piece, {run.end, lowest, none}, [&](const CellColumns &columns, Carried carried) -> Carried {
      return {min(carried[0], nextChange(columns, run.begin)),
              select(columns.hasRows, max(carried[1], columns.fullFirst), carried[1]),
              select(columns.hasRows, min(carried[2], columns.fullLast), carried[2])};
    });
    run.end = result[0];
    Value fullBegin = max(firstTileFrom(result[1]), run.begin), fullEnd = endOfFull(result[2]);
    Value wider = less(sub(run.fullEnd, run.fullBegin), sub(fullEnd, fullBegin));
    Value isFull = both(lessEqual(result[1], result[2]), wider);
    run.fullBegin = select(isFull, fullBegin, run.fullBegin);
    run.fullEnd = select(isFull, fullEnd, run.fullEnd);
  }

  /// Tiles that end at or before `last`; a last tile that the class cuts short counts.
  Value endOfFull(Value last) {
    std::map<unsigned, Value> noCells;
    attn::ExprBuilder expressions(builder, loc, [&](attn::Symbol symbol) { return symbolValue(symbol, noCells); });
    Value count = expressions.integer(branch.columnCount), end = add(last, one());
    return select(lessEqual(count, end), firstTileFrom(count), tileOf(end));
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

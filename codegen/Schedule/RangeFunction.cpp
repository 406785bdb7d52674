// Each piece gives its next tiles at or after `from`; a run begins at the first of them and ends where the set of
// pieces that cover it changes. Nothing is stored or sorted, so a tile needs no memory for its ranges.
// A piece with a list asks for its next cell in every cell of rows. On a device the lanes of a warp ask together, so
// its loops go round equally often in all of them, the shorter ones over their last cell again.
#include "codegen/Schedule/RangeFunction.h"
#include "dialect/IR/ListCalls.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <stdexcept>

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

  ColumnRun build() {
    SmallVector<PieceRun> pieces;
    for (const attn::PieceRange &piece : branch.pieces) // first, while few registers are taken
      if (piece.list)
        pieces.push_back(nextListed(piece));
    for (const attn::PieceRange &piece : branch.pieces)
      if (!piece.list)
        pieces.push_back(nextOf(piece));
    Value none = function.constant(kNoTile);
    ColumnRun run{none, none, none, none, none};
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

  using Cells = std::map<unsigned, Value>;

  Value symbolValue(attn::Symbol symbol, const Cells &cells) {
    if (symbol.kind == attn::Symbol::TileFirst)
      return tile.tileFirst;
    if (symbol.kind == attn::Symbol::TileLast)
      return tile.tileLast;
    if (symbol.kind == attn::Symbol::Cell) {
      auto own = cells.find(symbol.index);
      if (own == cells.end())
        throw std::logic_error("a range of columns uses a cell that its piece has no loop of");
      return own->second;
    }
    return function.contextSymbol(symbol);
  }

  using CellBody = function_ref<Carried(const CellColumns &, const Cells &, Carried)>;

  /// Runs `body` for every combination of cells that the tile crosses.
  Carried overCells(const attn::PieceRange &piece, Carried initial, CellBody body) {
    Cells cells;
    return overCellsFrom(piece, 0, cells, std::move(initial), body);
  }

  Carried overCellsFrom(const attn::PieceRange &piece, size_t depth, Cells &cells, Carried initial, CellBody body) {
    attn::ExprBuilder expressions(builder, loc, [&](attn::Symbol symbol) { return symbolValue(symbol, cells); });
    if (depth == piece.cells.size())
      return body({expressions.integer(piece.visitFirst), expressions.integer(piece.visitLast),
                   expressions.condition(piece.hasRows), expressions.integer(piece.fullFirst),
                   expressions.integer(piece.fullLast)},
                  cells, std::move(initial));
    Value lower = expressions.integer(piece.cells[depth].lower);
    Value upper = expressions.integer(piece.cells[depth].upper);
    Value last = piece.list ? lastOfWarp(lower, upper) : upper, end = add(last, one());
    auto loop = scf::ForOp::create(builder, loc, lower, end, one(), initial);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    cells[piece.cells[depth].cell] = piece.list ? min(loop.getInductionVar(), upper) : loop.getInductionVar();
    Carried carried(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    Carried next = overCellsFrom(piece, depth + 1, cells, carried, body);
    scf::YieldOp::create(builder, loc, next);
    return Carried(loop.getResults().begin(), loop.getResults().end());
  }

  /// Where a loop from `lower` ends so that it goes round as often as the longest one of the warp.
  Value lastOfWarp(Value lower, Value upper) {
    return add(lower, attn::callLargestOfWarp(builder, loc, sub(upper, lower)));
  }

  /// The next tiles of one piece, and the columns that its rows all keep.
  struct PieceRun {
    Value begin, end, fullFirst, fullLast;
  };

  /// Cells come in ascending order, so the first that reaches past `from` holds the piece's next tiles.
  PieceRun nextOf(const attn::PieceRange &piece) {
    Value none = function.constant(kNoTile);
    Carried initial = {none, none, function.constant(-kNoTile - 1), none};
    Carried result =
        overCells(piece, initial, [&](const CellColumns &columns, const Cells &, Carried carried) -> Carried {
          Value last = tileOf(columns.visitLast), end = add(last, one());
          Value hasColumns = lessEqual(columns.visitFirst, columns.visitLast),
                reaches = both(hasColumns, less(tile.from, end));
          Value isNext = both(reaches, isNone(carried[0]));
          return {select(isNext, max(tileOf(columns.visitFirst), tile.from), carried[0]),
                  select(isNext, end, carried[1]),
                  select(columns.hasRows, max(carried[2], columns.fullFirst), carried[2]),
                  select(columns.hasRows, min(carried[3], columns.fullLast), carried[3])};
        });
    return {result[0], result[1], result[2], result[3]};
  }

  /// The next listed cell of a cell of rows at or after `from`. A run ends where that of another cell of rows begins
  /// or ends, so that inside it the columns that all keep are those of these cells.
  PieceRun nextListed(const attn::PieceRange &piece) {
    Value none = function.constant(kNoTile);
    Carried initial = {none, none, function.constant(-kNoTile - 1), none};
    Carried result =
        overCells(piece, initial, [&](const CellColumns &columns, const Cells &cells, Carried carried) -> Carried {
          ListedCell next = nextCell(*piece.list, columns, cells);
          Value first = max(columns.visitFirst, next.first), last = min(columns.visitLast, next.last);
          Value lastTile = tileOf(last), reached = add(lastTile, one());
          Value hasColumns = lessEqual(first, last), isAhead = less(tile.from, reached);
          Value isListed = both(next.exists, hasColumns), visits = both(isListed, isAhead);
          Value begin = select(visits, max(tileOf(first), tile.from), none);
          Value end = select(visits, reached, none);
          Value runBegin = min(carried[0], begin);
          Value mine = select(less(runBegin, begin), begin, end);
          Value others = select(less(runBegin, carried[0]), carried[0], carried[1]);
          Value fullFirst = max(columns.fullFirst, select(visits, next.first, none));
          Value fullLast = min(columns.fullLast, next.last);
          return {runBegin, min(mine, others), select(columns.hasRows, max(carried[2], fullFirst), carried[2]),
                  select(columns.hasRows, min(carried[3], fullLast), carried[3])};
        });
    return {result[0], result[1], result[2], result[3]};
  }

  struct ListedCell {
    Value exists, first, last; ///< columns
  };

  ListedCell nextCell(const attn::ListedColumns &list, const CellColumns &columns, const Cells &cells) {
    Value from = max(columns.visitFirst, arith::MulIOp::create(builder, loc, tile.from, tile.blockN));
    Value listed;
    attn::ExprBuilder expressions(builder, loc, [&](attn::Symbol symbol) {
      if (symbol.kind == attn::Symbol::Column)
        return from;
      return symbol.kind == attn::Symbol::ListedCell ? listed : symbolValue(symbol, cells);
    });
    SmallVector<Value> operands;
    for (const attn::IntExpr &argument : list.arguments)
      operands.push_back(expressions.integer(argument));
    operands.push_back(expressions.integer(list.row));
    operands.push_back(expressions.integer(list.cellOf));
    Value next = attn::callNext(builder, loc, *list.rule, operands);
    Value exists = less(next, function.constant(attn::kNoCell));
    listed = select(exists, next, function.constant(0));
    Value first = expressions.integer(list.first), last = expressions.integer(list.last);
    return {exists, first, last};
  }

  Value isNone(Value tileNumber) { return function.isEqual(tileNumber, kNoTile); }

  void widenFull(ColumnRun &run, const PieceRun &piece) {
    Value begin = max(firstTileFrom(piece.fullFirst), run.begin), end = min(endOfFull(piece.fullLast), run.end);
    Value known = sub(run.fullEnd, run.fullBegin), wider = less(known, sub(end, begin));
    Value isFull = both(lessEqual(piece.fullFirst, piece.fullLast), wider);
    run.fullBegin = select(isFull, begin, run.fullBegin);
    run.fullEnd = select(isFull, end, run.fullEnd);
  }

  /// Tiles that end at or before `last`; a last tile that the class cuts short counts.
  Value endOfFull(Value last) {
    Cells noCells;
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

ColumnRun buildNextRange(FunctionBuilder &function, const attn::BranchRanges &branch, const TileArguments &tile) {
  return RangeBuilder(function, branch, tile).build();
}

} // namespace heddle

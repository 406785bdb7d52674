//===- HandPatternTexts.h - pattern modules written by hand -----------------===//
// The MLIR texts behind HandPatterns.cpp, in parts that several patterns share. CTX stands for the
// declared context arguments, ARGS for their names and TYPES for their types.
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_HANDPATTERNTEXTS_H
#define HEDDLE_TESTS_UNIT_SUPPORT_HANDPATTERNTEXTS_H

namespace heddle::test {

// A range of tiles from an interval of visited and one of fully kept key numbers; `keys` is the number
// of existing keys of the class. A tile is full when all its existing keys are in [full_lo, full_hi].
inline constexpr const char *rangeHelper = R"mlir(
func.func private @range_of(%keys: i32, %lo: i32, %hi: i32, %full_lo: i32, %full_hi: i32,
                            %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant 0x7fffffff : i32
  %last = arith.subi %keys, %one : i32
  %first_key = arith.maxsi %lo, %zero : i32
  %last_key = arith.minsi %hi, %last : i32
  %first_tile = arith.floordivsi %first_key, %block_n : i32
  %begin = arith.maxsi %first_tile, %from : i32
  %after_key = arith.addi %last_key, %one : i32
  %end = arith.ceildivsi %after_key, %block_n : i32
  %no_key = arith.cmpi sgt, %first_key, %last_key : i32
  %no_tile = arith.cmpi sge, %begin, %end : i32
  %empty = arith.ori %no_key, %no_tile : i1
  scf.if %empty {
    memref.store %none, %out[%c0] : memref<5xi32>
    memref.store %none, %out[%c1] : memref<5xi32>
    memref.store %zero, %out[%c2] : memref<5xi32>
    memref.store %zero, %out[%c3] : memref<5xi32>
    memref.store %none, %out[%c4] : memref<5xi32>
  } else {
    %full_first = arith.maxsi %full_lo, %zero : i32
    %full_tile = arith.ceildivsi %full_first, %block_n : i32
    %full_begin = arith.maxsi %full_tile, %begin : i32
    %full_after = arith.addi %full_hi, %one : i32
    %full_floor = arith.floordivsi %full_after, %block_n : i32
    %to_the_end = arith.cmpi sge, %full_hi, %last : i32
    %full_stop = arith.select %to_the_end, %end, %full_floor : i32
    %full_end = arith.minsi %full_stop, %end : i32
    memref.store %begin, %out[%c0] : memref<5xi32>
    memref.store %end, %out[%c1] : memref<5xi32>
    memref.store %full_begin, %out[%c2] : memref<5xi32>
    memref.store %full_end, %out[%c3] : memref<5xi32>
    memref.store %end, %out[%c4] : memref<5xi32>
  }
  return
}
)mlir";

inline constexpr const char *singleVariant = R"mlir(
func.func @pattern_variant(CTX) -> i32 {
  %zero = arith.constant 0 : i32
  return %zero : i32
}
func.func @pattern_query_rate(%variant: i32) -> i32 {
  %one = arith.constant 1 : i32
  return %one : i32
}
)mlir";

inline constexpr const char *denseKeys = R"mlir(
func.func @pattern_key_rate(%variant: i32, %branch: i32) -> i32 {
  %one = arith.constant 1 : i32
  return %one : i32
}
func.func @pattern_key_residue(CTX, %variant: i32, %branch: i32, %tile_first: i32) -> i32 {
  %zero = arith.constant 0 : i32
  return %zero : i32
}
)mlir";

inline constexpr const char *fullBody = R"mlir(
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %zero = arith.constant 0 : i32
  call @range_of(%seqlen_k, %zero, %seqlen_k, %zero, %seqlen_k, %block_n, %from, %out)
      : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %yes = arith.constant true
  return %yes : i1
}
)mlir";

inline constexpr const char *causalBody = R"mlir(
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %zero = arith.constant 0 : i32
  %hi = arith.subi %tile_last, %k_origin : i32
  %full_hi = arith.subi %tile_first, %k_origin : i32
  call @range_of(%seqlen_k, %zero, %hi, %zero, %full_hi, %block_n, %from, %out)
      : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %kept = arith.cmpi sle, %k, %q : i32
  return %kept : i1
}
)mlir";

inline constexpr const char *windowBody = R"mlir(
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %first = arith.subi %tile_first, %k_origin : i32
  %last = arith.subi %tile_last, %k_origin : i32
  %lo = arith.subi %first, %param_0 : i32
  %hi = arith.addi %last, %param_1 : i32
  %full_lo = arith.subi %last, %param_0 : i32
  %full_hi = arith.addi %first, %param_1 : i32
  call @range_of(%seqlen_k, %lo, %hi, %full_lo, %full_hi, %block_n, %from, %out)
      : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %distance = arith.subi %q, %k : i32
  %zero = arith.constant 0 : i32
  %ahead = arith.subi %zero, %param_1 : i32
  %near_left = arith.cmpi sle, %distance, %param_0 : i32
  %near_right = arith.cmpi sge, %distance, %ahead : i32
  %kept = arith.andi %near_left, %near_right : i1
  return %kept : i1
}
)mlir";

// SHORT, LONG and RATE_LESS_ONE are replaced by numbers. A tile may cross segments: visited is the hull
// of its segments, full only within one.
inline constexpr const char *dilatedBody = R"mlir(
func.func private @segment_length(%variant: i32) -> i32 {
  %second = arith.constant 1 : i32
  %short = arith.constant SHORT : i32
  %long = arith.constant LONG : i32
  %is_second = arith.cmpi eq, %variant, %second : i32
  %length = arith.select %is_second, %long, %short : i32
  return %length : i32
}
func.func private @offset(%variant: i32) -> i32 {
  return %variant : i32
}
func.func @pattern_variant(CTX) -> i32 {
  %two = arith.constant 2 : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %twice = arith.muli %head, %two : i32
  %second = arith.cmpi sge, %twice, %heads : i32
  %variant = arith.select %second, %one, %zero : i32
  return %variant : i32
}
func.func @pattern_query_rate(%variant: i32) -> i32 {
  %more = arith.constant RATE_LESS_ONE : i32
  %one = arith.constant 1 : i32
  %extra = arith.muli %variant, %more : i32
  %rate = arith.addi %extra, %one : i32
  return %rate : i32
}
func.func @pattern_key_rate(%variant: i32, %branch: i32) -> i32 {
  %rate = call @pattern_query_rate(%variant) : (i32) -> i32
  return %rate : i32
}
func.func private @floor_mod(%a: i32, %b: i32) -> i32 {
  %quotient = arith.floordivsi %a, %b : i32
  %whole = arith.muli %quotient, %b : i32
  %rest = arith.subi %a, %whole : i32
  return %rest : i32
}
func.func @pattern_key_residue(CTX, %variant: i32, %branch: i32, %tile_first: i32) -> i32 {
  %rate = call @pattern_query_rate(%variant) : (i32) -> i32
  %offset = call @offset(%variant) : (i32) -> i32
  %shifted = arith.subi %offset, %k_origin : i32
  %residue = call @floor_mod(%shifted, %rate) : (i32, i32) -> i32
  return %residue : i32
}
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %one = arith.constant 1 : i32
  %minus_one = arith.constant -1 : i32
  %zero = arith.constant 0 : i32
  %rate = call @pattern_query_rate(%variant) : (i32) -> i32
  %length = call @segment_length(%variant) : (i32) -> i32
  %offset = call @offset(%variant) : (i32) -> i32
  %residue = func.call @pattern_key_residue(ARGS, %variant, %branch, %tile_first) : (TYPES, i32, i32, i32) -> i32
  %existing = arith.subi %seqlen_k, %residue : i32
  %keys_raw = arith.ceildivsi %existing, %rate : i32
  %keys = arith.maxsi %keys_raw, %zero : i32
  %first_segment = arith.floordivsi %tile_first, %length : i32
  %last_segment = arith.floordivsi %tile_last, %length : i32
  %start = arith.muli %first_segment, %length : i32
  %next = arith.addi %last_segment, %one : i32
  %stop = arith.muli %next, %length : i32
  %base = arith.addi %k_origin, %residue : i32
  %start_from_base = arith.subi %start, %base : i32
  %stop_from_base = arith.subi %stop, %base : i32
  %lo = arith.ceildivsi %start_from_base, %rate : i32
  %after = arith.ceildivsi %stop_from_base, %rate : i32
  %hi = arith.subi %after, %one : i32
  %row_rest = call @floor_mod(%tile_first, %rate) : (i32, i32) -> i32
  %on_lattice = arith.cmpi eq, %row_rest, %offset : i32
  %hi_kept = arith.select %on_lattice, %hi, %minus_one : i32
  %single = arith.cmpi eq, %first_segment, %last_segment : i32
  %full_lo = arith.select %single, %lo, %keys : i32
  %full_hi = arith.select %single, %hi, %minus_one : i32
  func.call @range_of(%keys, %lo, %hi_kept, %full_lo, %full_hi, %block_n, %from, %out)
      : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %variant = func.call @pattern_variant(ARGS) : (TYPES) -> i32
  %rate = call @pattern_query_rate(%variant) : (i32) -> i32
  %length = call @segment_length(%variant) : (i32) -> i32
  %offset = call @offset(%variant) : (i32) -> i32
  %q_segment = arith.floordivsi %q, %length : i32
  %k_segment = arith.floordivsi %k, %length : i32
  %q_rest = call @floor_mod(%q, %rate) : (i32, i32) -> i32
  %k_rest = call @floor_mod(%k, %rate) : (i32, i32) -> i32
  %same = arith.cmpi eq, %q_segment, %k_segment : i32
  %q_on = arith.cmpi eq, %q_rest, %offset : i32
  %k_on = arith.cmpi eq, %k_rest, %offset : i32
  %on = arith.andi %q_on, %k_on : i1
  %kept = arith.andi %same, %on : i1
  return %kept : i1
}
)mlir";

inline constexpr const char *twoBranchBody = R"mlir(
func.func @pattern_key_rate(%variant: i32, %branch: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %four = arith.constant 4 : i32
  %dense = arith.cmpi eq, %branch, %zero : i32
  %rate = arith.select %dense, %one, %four : i32
  return %rate : i32
}
func.func @pattern_key_residue(CTX, %variant: i32, %branch: i32, %tile_first: i32) -> i32 {
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %zero = arith.constant 0 : i32
  %shifted = arith.subi %one, %k_origin : i32
  %low_bits = arith.andi %shifted, %three : i32
  %dense = arith.cmpi eq, %branch, %zero : i32
  %residue = arith.select %dense, %zero, %low_bits : i32
  return %residue : i32
}
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %dense = arith.cmpi eq, %branch, %zero : i32
  %first = arith.subi %tile_first, %k_origin : i32
  %last = arith.subi %tile_last, %k_origin : i32
  scf.if %dense {
    %lo = arith.subi %first, %three : i32
    %full_lo = arith.subi %last, %three : i32
    func.call @range_of(%seqlen_k, %lo, %last, %full_lo, %first, %block_n, %from, %out)
        : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  } else {
    %residue = func.call @pattern_key_residue(ARGS, %variant, %branch, %tile_first) : (TYPES, i32, i32, i32) -> i32
    %existing = arith.subi %seqlen_k, %residue : i32
    %keys_raw = arith.ceildivsi %existing, %four : i32
    %keys = arith.maxsi %keys_raw, %zero : i32
    %hi_distance = arith.subi %last, %residue : i32
    %hi = arith.floordivsi %hi_distance, %four : i32
    %full_distance = arith.subi %first, %residue : i32
    %full_hi = arith.floordivsi %full_distance, %four : i32
    func.call @range_of(%keys, %zero, %hi, %zero, %full_hi, %block_n, %from, %out)
        : (i32, i32, i32, i32, i32, i32, i32, memref<5xi32>) -> ()
  }
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %dense = arith.cmpi eq, %branch, %zero : i32
  %not_after = arith.cmpi sle, %k, %q : i32
  %distance = arith.subi %q, %k : i32
  %near = arith.cmpi sle, %distance, %three : i32
  %low_bits = arith.andi %k, %three : i32
  %on = arith.cmpi eq, %low_bits, %one : i32
  %local = arith.select %dense, %near, %on : i1
  %kept = arith.andi %not_after, %local : i1
  return %kept : i1
}
)mlir";

inline constexpr const char *scannedBody = R"mlir(
func.func private @tile_keeps(CTX, %tile_first: i32, %tile_last: i32, %block_n: i32, %tile: i32,
                              %any: i1) -> i1 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %branch = arith.constant 0 : i32
  %begin = arith.muli %tile, %block_n : i32
  %reach = arith.addi %begin, %block_n : i32
  %end = arith.minsi %reach, %seqlen_k : i32
  %q_end = arith.addi %tile_last, %one : i32
  %all = arith.constant true
  %start = arith.xori %any, %all : i1
  %found = scf.for %q = %tile_first to %q_end step %one iter_args(%outer = %start) -> (i1) : i32 {
    %inner = scf.for %key = %begin to %end step %one iter_args(%state = %outer) -> (i1) : i32 {
      %k = arith.addi %key, %k_origin : i32
      %kept = func.call @pattern_keep(ARGS, %branch, %q, %k) : (TYPES, i32, i32, i32) -> i1
      %either = arith.ori %state, %kept : i1
      %both = arith.andi %state, %kept : i1
      %new_state = arith.select %any, %either, %both : i1
      scf.yield %new_state : i1
    }
    scf.yield %inner : i1
  }
  return %found : i1
}
func.func @pattern_next_range(CTX, %variant: i32, %branch: i32, %tile_first: i32, %tile_last: i32,
                              %block_n: i32, %from: i32, %out: memref<5xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %none = arith.constant 0x7fffffff : i32
  %any = arith.constant true
  %every = arith.constant false
  %tiles = arith.ceildivsi %seqlen_k, %block_n : i32
  %tile = scf.for %t = %from to %tiles step %one iter_args(%best = %none) -> (i32) : i32 {
    %hit = func.call @tile_keeps(ARGS, %tile_first, %tile_last, %block_n, %t, %any)
        : (TYPES, i32, i32, i32, i32, i1) -> i1
    %candidate = arith.select %hit, %t, %none : i32
    %new_best = arith.minsi %best, %candidate : i32
    scf.yield %new_best : i32
  }
  %missing = arith.cmpi eq, %tile, %none : i32
  %after = arith.addi %tile, %one : i32
  %end = arith.select %missing, %none, %after : i32
  %full_end = scf.if %missing -> (i32) {
    scf.yield %tile : i32
  } else {
    %full = func.call @tile_keeps(ARGS, %tile_first, %tile_last, %block_n, %tile, %every)
        : (TYPES, i32, i32, i32, i32, i1) -> i1
    %stop = arith.select %full, %after, %tile : i32
    scf.yield %stop : i32
  }
  memref.store %tile, %out[%c0] : memref<5xi32>
  memref.store %end, %out[%c1] : memref<5xi32>
  memref.store %tile, %out[%c2] : memref<5xi32>
  memref.store %full_end, %out[%c3] : memref<5xi32>
  memref.store %end, %out[%c4] : memref<5xi32>
  return
}
func.func @pattern_keep(CTX, %branch: i32, %q: i32, %k: i32) -> i1 {
  %two = arith.constant 2 : i32
  %three = arith.constant 3 : i32
  %five = arith.constant 5 : i32
  %seven = arith.constant 7 : i32
  %a = arith.muli %k, %seven : i32
  %b = arith.muli %q, %three : i32
  %sum = arith.addi %a, %b : i32
  %rest = arith.remsi %sum, %five : i32
  %kept = arith.cmpi slt, %rest, %two : i32
  return %kept : i1
}
)mlir";

} // namespace heddle::test

#endif

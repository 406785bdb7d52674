// Everything of the dialect, for tablegen.
include "dialect/IR/AttnBase.td"
include "dialect/IR/MaskOps.td"
include "dialect/IR/ScoreOps.td"
include "dialect/IR/PatternOps.td"

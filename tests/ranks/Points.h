//===- Points.h - where a rank may be killed ------------------------------------===//
// Owns the points of a rank: its calls into NCCL and into the driver, and those of the C interface that announce themselves.
// How often a rank asks whether something has happened depends on the machine: the first of several such questions is a
// point. So a program that is given the same has the same points, and a rank dies at the one that was drawn.
#ifndef HEDDLE_TESTS_RANKS_POINTS_H
#define HEDDLE_TESTS_RANKS_POINTS_H

#include "runtime/Core/Status.h"

namespace heddle::ranks {

// The calls of this process into both libraries pass by here from now on, and count on the board for rank `number`.
Status watchCalls(int number);
// At its point `last` from now on the process sends itself the signal; 0: at none.
void dieAt(int64_t last, int signal);
// One of them.
void point();

} // namespace heddle::ranks

#endif

//===- FakeNccl.h - the control side of the stand-in for NCCL ---------------===//
// Owns what tests may ask of and order from libheddle_fake_nccl.so, which stands for libnccl.so.2 beside the recording
// driver (../fake_cuda): ranks are threads of one process, messages are copied in host memory. It keeps NCCL's order:
// operations of a communicator one after the other, messages of two ranks by their order on each side, nothing before both
// sides are there; messages of two lengths are an error. Communicators that do not block answer "in progress" until an
// operation is done; blocking ones wait. Operations are counted for each communicator from 0: a group, or a collective.
// Environment, for whole programs: HEDDLE_FAKE_NCCL_DIES="1@3" (fakeNcclDie); HEDDLE_FAKE_NCCL_FOLDER: unique ids are of
// ranks that are processes, which meet in files of that folder (SharedRanks.h) and know no orders but those of symbols.
#ifndef HEDDLE_TESTS_UNIT_FAKE_NCCL_FAKENCCL_H
#define HEDDLE_TESTS_UNIT_FAKE_NCCL_FAKENCCL_H

namespace heddle::fake {

extern "C" {
// Forgets orders, counters and whatever is under way.
void fakeNcclReset();
// Messages, of both sides, that were given to communicators that share another one's connections, since the reset.
int fakeNcclAtOnce();
// Calls of one symbol since the reset.
int fakeNcclCalls(const char *symbol);
// The next calls of `symbol` return `code`, after `skip` good ones. Code 0 ends it.
void fakeNcclFail(const char *symbol, int code, int skip);
// The rank takes part in no operation from this one on: what it enqueues never begins.
void fakeNcclDie(int rank, int operation);
// The rank's process is stopped: it closes no connection, so communicators of others do not end. -1: nobody's is.
void fakeNcclStop(int rank);
// What the rank is told of failures meanwhile, from now on.
void fakeNcclAsyncError(int rank, int code);
// Whether operations are done when the stream comes to them, rather than when they were enqueued; streams of the
// recording driver are held as long.
void fakeNcclSetLate(int isLate);
// Until so many ranks have come and wait for others, nobody is told how it stands with what is in progress: what then
// is missing never comes, however slow the machine is.
void fakeNcclAwait(int ranks);
// A blocking communicator that exists, as another library has it. `id` is as long as NCCL's.
void *fakeNcclCommunicator(const void *id, int rank, int ranks, int device);
// Of communicators made by whomever, not ended; what was split from one counts with it.
int fakeNcclLive();
}

} // namespace heddle::fake

#endif

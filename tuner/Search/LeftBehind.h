// Owns the count of this process's threads whose work was given up and goes on: a compiler that hangs cannot be stopped.
// At exit they are waited for a moment; if one still runs, the process ends then and there, with its exit code and its
// streams flushed, because what runs must not meet the destructors of what it uses.
#pragma once

namespace heddle::tuner {

// A thread's work was given up. Its code stays loaded from then on.
void leaveBehind();
// Called by that thread when it has let go of everything.
void endLeftBehind();

} // namespace heddle::tuner

// Signals that ask a run to stop: noticed between steps, so that a checkpoint can be written first.
#pragma once

namespace layline::app {

// From now on the first SIGINT or SIGTERM is only noted; a second one of the same kind ends the process. A reader of
// standard output that goes away (SIGPIPE) does not end a run.
void install_signal_handlers();

// The signal that was noted; 0: none.
int stop_signal();

}  // namespace layline::app

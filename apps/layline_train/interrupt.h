// Signals that ask a run to stop: noticed between steps, so that a checkpoint can be written first. Before the first
// step there is nothing to save, and they end the process as they always do.
#pragma once

namespace layline::app {

// From now on the first SIGINT or SIGTERM is only noted; a second one of the same kind ends the process.
void note_signals();

// A reader of standard output that goes away (SIGPIPE) does not end a run.
void ignore_lost_readers();

// When the process that started this one is gone, this one gets a SIGTERM.
void end_with_parent();

// The signal that was noted; 0: none.
int stop_signal();

}  // namespace layline::app

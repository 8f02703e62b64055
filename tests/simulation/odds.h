// How likely each fault is, by what could go wrong at that point. All zero: nothing goes wrong.
#pragma once

#include "common/units.h"

namespace siding::simulation {

struct Odds {
  // Of each operation on a task.
  double launch_fails = 0;   // the job has failed then
  double restore_fails = 0;  // the image is good, and this attempt was not
  double image_rots = 0;     // of each image that is read: it does not verify, now and ever after
  double image_refused = 0;  // of each image that is made: no restore will ever take it
  double freeze_fails = 0;
  double thaw_fails = 0;
  double dump_fails = 0;
  double dump_slow = 0;  // takes so long that its deadline passes, or nearly
  double save_fails = 0;
  double clock_off = 0;  // of each start: the node's clock is hours off

  // Of each write of the journal.
  double append_fails = 0;        // nothing was written, and the engine hears so
  double append_unheard = 0;      // it was written, and the engine hears that it was not
  double crash_after_append = 0;  // written, and the controller dies before it acts on it
  double crash_amid_sends = 0;    // of each command: the controller dies before it is sent

  // Of each message. A stream is ordered and breaks as a whole; these go beyond what it can do.
  double message_lost = 0;
  double message_doubled = 0;
  double message_late =
      0;  // others pass it; of an agent's messages only: a command must not come before another

  // Of each message: the connection breaks with it.
  double connection_breaks = 0;
};

}  // namespace siding::simulation

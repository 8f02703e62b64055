// Jobs whose time is over: their own walltime, or their user's quota of a day.
//
// Used under the engine's lock.
#pragma once

#include <string>

#include "controller/engine/decide/admission.h"
#include "controller/engine/state/context.h"

namespace siding {

class Walltime {
 public:
  Walltime(const Context& c, Admission& admission)
      : policy_(c.policy),
        clock_(c.clock),
        startup_(c.startup),
        cluster_(c.cluster),
        recorder_(c.recorder),
        admission_(admission) {}

  // A job whose time is over is ended, or by the policy loses its precedence. True: it was recorded.
  bool EndOverdue(const JobRecord& job);
  // It runs, and its time is over.
  bool IsOverdue(const JobRecord& job) const;

 private:
  std::string WhyOverdue(const JobRecord& job) const;

  const Policy& policy_;
  const Clock& clock_;
  const StartUp& startup_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  Admission& admission_;
};

}  // namespace siding

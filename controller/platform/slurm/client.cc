#include "controller/platform/slurm/client.h"

namespace siding::slurm {

std::string ToString(Verb verb) {
  switch (verb) {
    case Verb::kSuspend:
      return "suspend";
    case Verb::kResume:
      return "resume";
    case Verb::kRequeue:
      return "requeue";
    case Verb::kRequeueHeld:
      return "requeuehold";
    case Verb::kHold:
      return "hold";
    case Verb::kRelease:
      return "release";
    case Verb::kCancel:
      return "cancel";
  }
  return "";
}

}  // namespace siding::slurm

#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

std::string ToString(Verb verb) {
  switch (verb) {
    case Verb::kSuspend:
      return "suspend";
    case Verb::kResume:
      return "resume";
  }
  return "";
}

}  // namespace siding::slurm

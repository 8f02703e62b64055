// The status of an OnDemandRequest: from what its pods are and what the engine says, what is to be written.
// Pure.
//
// What was decided once lies in the status itself, so that whoever looks goes on from there: which generation
// of the spec was accepted, with how many pods, and which of them were seen. A pod that was seen and is not
// there any more is not made again.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/objects/request.h"
#include "controller/platform/kubernetes/watch/job_table.h"

namespace siding::kubernetes {

// What the engine says of a job with a deadline.
struct Outlook {
  bool refused = false;           // it will not be started
  bool planned = false;           // by its deadline; neither: it waits, and `text` says for what
  std::string text;               // one line
  std::optional<Time> earliest;   // refused: the earliest start that would do
  std::optional<Time> predicted;  // else: its start
};

// What the status of a request says by itself.
struct RequestRecord {
  bool accepted = false;
  bool invalid = false;    // this generation is
  int64_t generation = 0;  // accepted: the one that counts, whatever the spec says now
  int count = 0;
  std::set<std::string> pods;  // that were seen
  bool over = false;           // its pods ended: nothing is done any more
};
RequestRecord RecordOf(const Request& request);

struct RequestNow {
  std::vector<std::optional<PodStanding>> pods;  // by index; nothing: there is none of this name
  std::optional<Outlook> outlook;                // nothing: the engine does not know it
  std::string problem;                           // why pods could not be made
};
bool IsPodOf(const Request& request, const PodStanding& pod);

// Each is the whole status. What is the same as before keeps its time of transition.
Json StatusIfAccepted(const Request& request, const RequestSpec& spec, Time now);
// `reason`: a word, such as "Invalid"; `why` names the field and what was expected.
Json StatusIfTurnedDown(const Request& request, const std::string& reason, const std::string& why, Time now);
// Of a request that was accepted.
Json StatusOf(const Request& request, const RequestNow& there, Time now);

// What makes a server's `status` of the request this one, of the version that was read; null: it is.
std::optional<Json> PatchTowards(const Request& request, const Json& status);

}  // namespace siding::kubernetes

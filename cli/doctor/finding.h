// What `sidingctl doctor` finds, and in what.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/units.h"
#include "siding/v1/api.pb.h"

namespace siding::cli {

enum class Severity {
  kFault,    // siding does not work there as it should
  kWarning,  // it soon will not, or something is lost
};

struct Finding {
  Severity severity = Severity::kFault;
  std::string about;    // "node n1", "job 7"
  std::string problem;  // a sentence
  // What to do, with the command or the page that says more. NODE in it is the node that a finding is about.
  std::string mend;
  // How the sentence ends of one alone: ", and was heard last 3.00s ago". Of several each would have its own.
  std::string when = {};
};
using Findings = std::vector<Finding>;

// What is said of one alone.
std::string ProblemOf(const Finding& finding);
std::string MendOf(const Finding& finding);

// What a controller has said, all of it at about the same time.
struct Answers {
  v1::SiteInfo site;
  v1::ListNodesResponse nodes;
  v1::ListJobsResponse jobs;  // that have not ended, of those that the caller may see
  v1::ListCheckpointsResponse checkpoints;
  v1::PolicyInForce policy;
  std::map<std::string, std::string> away;  // why controllers do not answer, by their addresses
  // By this machine's clock: before it was asked for `site`, and after it had answered.
  Time asked, answered;
  bool same_machine = false;  // the controller's machine is this one

  // By the controller's clock, which all times of its answers are of.
  Time now() const { return FromMicros(site.now_us()); }
};

}  // namespace siding::cli

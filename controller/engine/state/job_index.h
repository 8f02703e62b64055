// The jobs that have not ended, by what they are doing: what is done after every event looks only at those
// that it concerns, not at ten thousand.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/ids.h"

namespace siding {

struct JobRecord;

// Follows the records; not thread-safe.
class JobIndex {
 public:
  using Jobs = std::map<JobId, JobRecord*>;
  using Ranks = std::set<std::pair<JobId, int>>;
  bool operator==(const JobIndex&) const = default;

  // To be called after every change of a record. The record stays where it is as long as its job has not
  // ended.
  void Update(JobRecord& job);

  const Jobs& requests() const { return requests_; }        // deadline jobs that have precedence
  const Jobs& waiting() const { return waiting_; }          // hold no nodes
  const Jobs& unsettled() const { return unsettled_; }      // hold nodes and do not simply run
  const Jobs& with_orders() const { return with_orders_; }  // by hand, that wait
  // How many jobs of the user's have not ended.
  size_t CountOf(uint32_t uid) const;
  // Jobs that hold the node, and with which of their ranks.
  const Ranks& On(const NodeId& node) const;

 private:
  void Move(JobId job, const std::vector<NodeId>& nodes);

  Jobs requests_, waiting_, unsettled_, with_orders_;
  std::map<uint32_t, std::set<JobId>> by_user_;
  std::map<JobId, std::vector<NodeId>> nodes_;  // as they are in on_
  std::map<NodeId, Ranks> on_;
};

}  // namespace siding

#include "controller/ha/partition_detector.h"

#include <algorithm>

namespace siding {

std::vector<NodeId> PartitionDetector::Update(const AgentContacts& asked,
                                              const std::map<NodeId, Contact>& heard, Time now) {
  if (!seen_) seen_ = asked;
  for (const auto& [who, times] : asked) {
    const auto before = seen_->find(who);
    if (before != seen_->end() && before->second == times) continue;
    const auto node = heard.find(who.second);
    // Who has not been heard of by this controller is not lost to it.
    if (node != heard.end()) elsewhere_.try_emplace(who.second, Asking{now, now}).first->second.last = now;
  }
  seen_ = asked;
  std::erase_if(elsewhere_, [&](const auto& gone) {
    const auto node = heard.find(gone.first);
    return node == heard.end() || node->second.last > gone.second.since ||
           now - gone.second.last > kForgotten;
  });

  const auto lost = [&](const NodeId& node) {
    const auto since = elsewhere_.find(node);
    return since != elsewhere_.end() && now - since->second.since >= kSilence;
  };
  std::vector<NodeId> unreached;
  for (const auto& [node, state] : heard) {
    if (lost(node)) {
      unreached.push_back(node);
    } else if (state.connected) {
      return {};
    }
  }
  return now - start_ >= kSettle ? unreached : std::vector<NodeId>();
}

}  // namespace siding

#include "controller/engine/act/network_joins.h"

#include <algorithm>
#include <utility>

namespace siding {
namespace {

bool IsJoined(const NetworkRank& rank) { return rank.report->joined(); }

// Not while another order is under way with it, nor before it is known where it is.
bool MayMeet(const NetworkRank& rank) {
  const v1::TaskPhase phase = rank.report->phase();
  return rank.report->has_endpoint() && (IsJoined(rank) || phase == v1::RUNNING || phase == v1::RESTORING);
}

}  // namespace

bool NetworkJoins::AwaitsOthers(const v1::TaskReport& report) {
  return report.phase() == v1::LAUNCHING || report.phase() == v1::RESTORING ||
         (report.phase() == v1::RUNNING && !report.joined());
}

void NetworkJoins::Join(const std::vector<NetworkRank>& ranks) {
  if (!std::all_of(ranks.begin(), ranks.end(), MayMeet)) return;
  const bool all_joined = std::all_of(ranks.begin(), ranks.end(), IsJoined);
  for (const NetworkRank& rank : ranks) {
    v1::ToAgent command;
    if (!IsJoined(rank)) {
      if (orders_.WasSent(rank.node, rank.task, rank.op, v1::ToAgent::kJoinNetwork)) continue;
      for (const NetworkRank& other : ranks)
        *command.mutable_join_network()->add_ranks() = other.report->endpoint();
    } else if (all_joined && rank.report->phase() == v1::RESTORING) {
      command.mutable_all_joined();
    } else {
      continue;
    }
    Send(rank, std::move(command));
  }
}

void NetworkJoins::Refuse(const std::vector<NetworkRank>& ranks, const std::string& why) {
  for (const NetworkRank& rank : ranks) {
    // One that runs in its network is its peers' and its manager's to end.
    if (!AwaitsOthers(*rank.report)) continue;
    v1::ToAgent command;
    command.mutable_join_network()->set_refused(why);
    Send(rank, std::move(command));
  }
}

void NetworkJoins::Send(const NetworkRank& rank, v1::ToAgent command) {
  if (!cluster_.IsConnected(rank.node)) return;
  command.set_op(rank.op);
  orders_.Send(rank.node, rank.task, std::move(command));
}

}  // namespace siding

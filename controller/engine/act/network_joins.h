// The networks of ranks whose connections are kept are joined when all ranks have one: for a connection that
// has not been restored yet a packet is its end, and a restored rank sends as soon as it runs.
//
// Used under the engine's lock.
#pragma once

#include <string>
#include <vector>

#include "controller/engine/act/orders.h"
#include "controller/engine/state/cluster_view.h"

namespace siding {

// A rank that has not ended, as its agent says.
struct NetworkRank {
  int number = 0;
  NodeId node;
  TaskId task;
  int64_t op = 0;  // of orders to it
  const v1::TaskReport* report = nullptr;
};

class NetworkJoins {
 public:
  NetworkJoins(const ClusterView& cluster, Orders& orders) : cluster_(cluster), orders_(orders) {}

  // It is on its way into its network, or is there and waits for its peers.
  static bool AwaitsOthers(const v1::TaskReport& report);
  // Tells each where all are, and then those that have been restored that all know; nothing while one cannot
  // meet the others yet. Again, until they say that they have heard it.
  void Join(const std::vector<NetworkRank>& ranks);
  // Nothing will come of it: those that wait are told why.
  void Refuse(const std::vector<NetworkRank>& ranks, const std::string& why);

 private:
  void Send(const NetworkRank& rank, v1::ToAgent command);

  const ClusterView& cluster_;
  Orders& orders_;
};

}  // namespace siding

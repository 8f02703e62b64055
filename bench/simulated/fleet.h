// Many simulated nodes, each with a connection of its own to the controller. One thread keeps their time:
// heartbeats, what becomes of tasks, connections that break and come back.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/simulated/agent.h"
#include "bench/simulated/node.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

struct FleetOptions {
  std::string socket;  // of the controller
  int agents = 1000;
  SimulatedNodeOptions node;         // all alike; their names are node0, node1, ...
  double reconnects_per_second = 0;  // of all of them together
};

// Thread-safe. Its end ends all connections.
class Fleet {
 public:
  explicit Fleet(FleetOptions options);
  ~Fleet();

  size_t size() const { return agents_.size(); }
  int Welcomed() const;  // that are connected now
  int Tasks() const;     // of all nodes
  int64_t reconnections() const { return reconnections_; }
  int64_t heartbeats() const;
  // Since when the node is connected; nothing: it is not, or there is none of this name.
  std::optional<Time> ConnectedSince(const std::string& node) const;

 private:
  struct Appointment {
    Time at;
    size_t agent;
    bool operator>(const Appointment& other) const { return at > other.at; }
  };

  void Appoint(size_t agent, Time at);
  void KeepTime();
  std::vector<size_t> TakeDue(Time now);
  void BreakSome(Time now);

  const FleetOptions options_;
  std::vector<std::unique_ptr<SimulatedAgent>> agents_;
  Mutex mutex_;
  std::priority_queue<Appointment, std::vector<Appointment>, std::greater<>> appointments_
      ABSL_GUARDED_BY(mutex_);
  std::mt19937 random_{1};  // of the thread that keeps time
  Time next_break_;         // of the thread that keeps time
  std::atomic<int64_t> reconnections_{0};
  std::atomic<bool> stop_{false};
  std::thread timekeeper_;
};

}  // namespace siding

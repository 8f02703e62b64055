// The controller's journal on a disk that may fail, holding events as the real one does: encoded. Beside it,
// the state that a controller would have which started now: checks look at that, for it is the truth whether
// or not a controller is running.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/engine/state/cluster_state.h"
#include "controller/journal/journal.h"
#include "tests/simulation/lab.h"

namespace siding::simulation {

// Not thread-safe.
class JournalDisk final : public Journal {
 public:
  explicit JournalDisk(Lab& lab) : lab_(lab) {}

  absl::Status Append(const std::vector<Event>& events) override;
  absl::Status Replay(const std::function<void(const Event&)>& visit) override;
  absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const override;

  int64_t restored() const override { return restored_; }

  const ClusterState& state() const { return state_; }
  // What an operator does: copies it, and puts the copy in its place while no controller runs.
  void Backup();
  void PutBack();
  // After each event that has become durable, `state()` included.
  std::function<void(const Event&)> on_event = [](const Event&) {};
  // The controller dies as soon as it would act on what it has just written.
  std::function<void()> on_crash = [] {};
  // It was told of an error, and has to be started again.
  std::function<void()> on_error = [] {};

 private:
  struct Row {
    int64_t seq = 0;
    Time at;
    JobId job;
    std::string kind, body;
  };
  absl::StatusOr<Event> Decode(const Row& row) const;

  Lab& lab_;
  std::vector<Row> rows_, backup_;
  int64_t restored_ = 0;  // of what was put back, the last event; 0 when that is recorded
  ClusterState state_;
};

}  // namespace siding::simulation

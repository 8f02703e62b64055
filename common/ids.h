// Identifiers as types of their own, so that a job is never passed where a node is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <utility>

namespace siding {

// A value that names something. Cheap to copy if Rep is; ordered, hashable and printable.
template <class Tag, class Rep>
class StrongId {
 public:
  StrongId() = default;
  explicit StrongId(Rep value) : value_(std::move(value)) {}
  const Rep& value() const { return value_; }
  auto operator<=>(const StrongId&) const = default;  // NOLINT(modernize-use-nullptr): there is none

  template <class H>
  friend H AbslHashValue(H h, const StrongId& id) {
    return H::combine(std::move(h), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, const StrongId& id) { return out << id.value_; }

 private:
  Rep value_{};
};

// Jobs are numbered from 1 by the controller's journal; 0 is "no job".
using JobId = StrongId<struct JobTag, int64_t>;
// A node is known by the name that its agent was started with.
using NodeId = StrongId<struct NodeTag, std::string>;
// "<job>.<n>": the n-th checkpoint ordered for a job; see store/ for what it names on disk.
using CheckpointId = StrongId<struct CheckpointTag, std::string>;

// One rank of one incarnation of a job: what an agent runs. A start and every restore begin a new
// incarnation, so a late message about an earlier one can never be taken for the present one.
struct TaskId {
  JobId job;
  int incarnation = 0;
  int rank = 0;
  auto operator<=>(const TaskId&) const = default;  // NOLINT(modernize-use-nullptr): there is none
};

// Each step of a cluster manager's job has so many numbers for its tasks' ranks; 0 is the script's.
inline constexpr int kRanksPerStep = 65536;

// "42.1.0" (job.incarnation.rank), the form used in folder names and messages.
inline std::string ToString(const TaskId& id) {
  return std::to_string(id.job.value()) + "." + std::to_string(id.incarnation) + "." +
         std::to_string(id.rank);
}

}  // namespace siding

template <class Tag, class Rep>
struct std::hash<siding::StrongId<Tag, Rep>> {
  size_t operator()(const siding::StrongId<Tag, Rep>& id) const { return std::hash<Rep>()(id.value()); }
};

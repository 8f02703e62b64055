// What has changed between two polls of Slurm. Pure.
#pragma once

#include <optional>
#include <vector>

#include "controller/platform/slurm/client/values.h"

namespace siding::slurm {

// No `before`: seen for the first time. No `after`: gone. Never neither.
template <class T>
struct Change {
  std::optional<T> before;
  std::optional<T> after;
};

struct Changes {
  std::vector<Change<QueueJob>> jobs;
  std::vector<Change<QueueNode>> nodes;
  bool empty() const { return jobs.empty() && nodes.empty(); }
};

// Both lists are sorted as Before() says, which is how a Client gives them; so is the answer.
template <class T>
std::vector<Change<T>> Compare(const std::vector<T>& before, const std::vector<T>& after) {
  std::vector<Change<T>> changes;
  auto old = before.begin();
  auto now = after.begin();
  while (old != before.end() || now != after.end()) {
    const bool gone = now == after.end() || (old != before.end() && Before(*old, *now));
    const bool seen = old == before.end() || (now != after.end() && Before(*now, *old));
    if (gone) {
      changes.push_back({*old++, {}});
    } else if (seen) {
      changes.push_back({{}, *now++});
    } else {
      if (!(*old == *now)) changes.push_back({*old, *now});
      ++old, ++now;
    }
  }
  return changes;
}

}  // namespace siding::slurm

#include "sim/machine.h"

#include <cassert>

namespace siding::sim {

Machine::Machine(int nodes)
    : runner_(nodes, kNobody), sleeper_(nodes, kNobody), kept_for_(nodes, kNobody), at_(nodes, kNobody) {
  for (int node = nodes; node-- > 0;) Update(node);
}

void Machine::Update(int node) {
  const bool is = runner_[node] == kNobody && sleeper_[node] == kNobody && kept_for_[node] == kNobody;
  if (is == (at_[node] >= 0)) return;
  if (is) {
    at_[node] = static_cast<int>(free_.size());
    free_.push_back(node);
    return;
  }
  const int last = free_.back();
  free_[at_[node]] = last;
  at_[last] = at_[node];
  free_.pop_back();
  at_[node] = -1;
}

std::vector<int> Machine::Take(int count, int job) {
  assert(count <= free());
  std::vector<int> nodes(free_.end() - count, free_.end());
  for (int node : nodes) Run(node, job);
  return nodes;
}

void Machine::Run(int node, int job) {
  assert(runner_[node] == kNobody);
  runner_[node] = job;
  Update(node);
}

void Machine::Stop(int node) {
  runner_[node] = kNobody;
  Update(node);
}

void Machine::Sleep(int node, int job) {
  sleeper_[node] = job;
  Update(node);
}

void Machine::Wake(int node) {
  sleeper_[node] = kNobody;
  Update(node);
}

void Machine::Keep(int node, int job) {
  kept_for_[node] = job;
  Update(node);
}

void Machine::Unkeep(int node) {
  kept_for_[node] = kNobody;
  Update(node);
}

}  // namespace siding::sim

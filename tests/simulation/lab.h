// What every part of a simulated world needs of it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "siding/v1/agent.pb.h"
#include "tests/simulation/image_store.h"
#include "tests/simulation/odds.h"
#include "tests/simulation/program.h"
#include "tests/simulation/random.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/trace.h"

namespace siding::simulation {

struct Lab {
  Lab(uint64_t seed, bool print) : random(seed), timeline(clock), trace(clock, print) {}

  FakeClock clock{FromMicros(1'800'000'000'000'000)};
  Random random;
  Timeline timeline;
  Trace trace;
  Odds odds;
  ImageStore store;
  Time files_away_until;  // what the jobs have open is not there, and nothing is restored
  std::vector<Program> programs;
  // Who came to the end of its work: in which incarnations, by job and rank. In several, where one was
  // started because another was taken for lost.
  std::map<std::pair<JobId, int>, std::set<int>> finished;
  // Which task each network was made for that a rank had to itself, by its node and number.
  std::map<std::pair<std::string, int>, TaskId> networks;
  // Called when a rank has been let into the network of its job.
  std::function<void(const TaskId&, const v1::JoinNetwork&)> on_join = [](const TaskId&, const auto&) {};
  // Called when a process has begun to run, or goes on.
  std::function<void()> on_running = [] {};
  // Called when an image has become visible, and when one has been deleted.
  std::function<void(const ImageName&)> on_image = [](const ImageName&) {};
  std::function<void(const ImageName&)> on_delete = [](const ImageName&) {};
};

}  // namespace siding::simulation

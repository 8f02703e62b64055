#include "tests/simulation/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/logging.h"

namespace siding::simulation {
namespace {

struct Seeds {
  uint64_t first = 1, last = 1;
};

bool ParseSeeds(const std::string& text, Seeds& seeds) {
  const size_t dash = text.find('-');
  return dash != std::string::npos && absl::SimpleAtoi(text.substr(0, dash), &seeds.first) &&
         absl::SimpleAtoi(text.substr(dash + 1), &seeds.last) && seeds.first <= seeds.last;
}

// Every `step`-th of them, from `seeds.first`. Returns how many went wrong, or stops at the first.
int RunSome(WorldRunner run, const Seeds& seeds, int step, bool go_on) {
  int failures = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last; seed += step) {
    const Outcome outcome = run(seed, false);
    if (outcome.violation.empty()) continue;
    std::printf("seed %" PRIu64 ": %s\n", seed, outcome.violation.c_str());
    std::fflush(stdout);
    ++failures;
    if (!go_on) break;
  }
  return failures;
}

// Each of these processes takes every so-manieth seed. 0: all was well.
int RunAll(WorldRunner run, const Seeds& seeds, int processes, bool go_on) {
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(RunSome(run, {seeds.first + i, seeds.last}, processes, go_on) > 0 ? 1 : 0);
    children.push_back(child);
  }
  bool well = true;
  for (pid_t child : children) {
    int status = 0;
    well &= child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return well ? 0 : 1;
}

int RunOne(WorldRunner run, uint64_t seed, bool trace) {
  const Outcome outcome = run(seed, trace);
  std::printf("seed %" PRIu64 ": %s; %.0f simulated seconds, hash %016" PRIx64 "\n", seed,
              outcome.violation.empty() ? "all is well" : outcome.violation.c_str(),
              ToSeconds(outcome.simulated), outcome.hash);
  return outcome.violation.empty() ? 0 : 1;
}

}  // namespace

int RunSimulation(int argc, char** argv, const std::string& what, WorldRunner run) {
  CLI::App app{what + "; docs/design/simulation.md"};
  uint64_t seed = 0;
  std::string range = "1-1000";
  int processes = 1;
  bool trace = false, go_on = false;
  auto* one = app.add_option("--seed", seed, "Run this one only");
  app.add_flag("--trace", trace, "Print everything that happens")->needs(one);
  app.add_option("--seeds", range, "Run these, as FIRST-LAST");
  app.add_option("--processes", processes, "Share them among so many")->check(CLI::Range(1, 256));
  app.add_flag("--go-on", go_on, "Do not stop at the first that goes wrong");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::off);
  if (one->count() > 0) return RunOne(run, seed, trace);
  Seeds seeds;
  if (!ParseSeeds(range, seeds)) {
    std::fprintf(stderr, "--seeds %s: expected FIRST-LAST, such as 1-1000\n", range.c_str());
    return 2;
  }
  const int result = RunAll(run, seeds, processes, go_on);
  if (result == 0) std::printf("seeds %s: all is well\n", range.c_str());
  return result;
}

}  // namespace siding::simulation

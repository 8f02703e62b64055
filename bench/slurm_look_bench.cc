// What looking at Slurm costs slurmctld and us: looks one after the other, and the processor time that both
// took. bench/slurm runs it on a private Slurm; by hand: slurm_look_bench --controller PID [--job N]
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "controller/platform/slurm/client/open.h"
#include "controller/platform/slurm/watch/poller.h"

namespace siding::slurm {
namespace {

struct Flags {
  std::string backend = "library";
  int looks = 500;
  int controller = 0;  // pid of slurmctld
  uint32_t job = 0;    // 0: nothing changes between looks
};

// Of all its threads, also those that have ended.
double CpuSeconds(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  std::istringstream fields(text.str().substr(text.str().rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// With the tools that were run, if any.
double OwnCpuSeconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  return seconds;
}

absl::Status Touch(Client& client, uint32_t job, int look) {
  if (job == 0) return absl::OkStatus();
  JobChange change;
  change.comment = absl::StrFormat("look %d", look);
  return client.Update(JobNumber(job), change);
}

// Each look's seconds, in order of length.
absl::StatusOr<std::vector<double>> Time(Client& client, const Flags& flags) {
  Poller poller(client);
  SIDING_RETURN_IF_ERROR(poller.Poll().status());
  std::vector<double> took;
  for (int look = 0; look < flags.looks; ++look) {
    SIDING_RETURN_IF_ERROR(Touch(client, flags.job, look));
    const auto begun = std::chrono::steady_clock::now();
    SIDING_ASSIGN_OR_RETURN(const Changes changes, poller.Poll());
    took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    if (flags.job != 0 && changes.jobs.empty()) return absl::InternalError("a change was not seen");
  }
  std::sort(took.begin(), took.end());
  return took;
}

absl::Status Run(const Flags& flags) {
  SIDING_ASSIGN_OR_RETURN(const Backend backend, ParseBackend(flags.backend));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, OpenClient(backend));
  SIDING_ASSIGN_OR_RETURN(const auto jobs, client->Jobs());
  SIDING_ASSIGN_OR_RETURN(const auto nodes, client->Nodes());
  const double theirs = CpuSeconds(flags.controller), ours = OwnCpuSeconds();
  SIDING_ASSIGN_OR_RETURN(const std::vector<double> took, Time(*client, flags));
  const double per_look = 1e3 / flags.looks;
  const double controller = (CpuSeconds(flags.controller) - theirs) * per_look;
  std::cout << absl::StrFormat(
      "%-20s %4d jobs %2d nodes  %-16s  look: median %6.2f ms, 99%% %6.2f ms; processor per look: slurmctld "
      "%5.2f ms, here %6.2f ms; slurmctld at 5 looks a second: %.2f%% of a core\n",
      client->Description(), jobs->size(), nodes->size(), flags.job == 0 ? "no changes" : "a change a look",
      took[took.size() / 2] * 1e3, took[took.size() * 99 / 100] * 1e3, controller,
      (OwnCpuSeconds() - ours) * per_look, controller * 5 / 10);
  return absl::OkStatus();
}

}  // namespace
}  // namespace siding::slurm

int main(int argc, char** argv) {
  siding::slurm::Flags flags;
  CLI::App app("what looking at Slurm's jobs and nodes costs");
  app.add_option("--backend", flags.backend, "library or tools")->capture_default_str();
  app.add_option("--looks", flags.looks, "how many")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--controller", flags.controller, "slurmctld's pid")->required();
  app.add_option("--job", flags.job, "a job whose comment is changed before every look");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = siding::slurm::Run(flags);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

// slurm cleanup: speaks to Slurm itself; needs no controller.
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"
#include "controller/platform/slurm/client/open.h"
#include "controller/platform/slurm/reconcile/cleanup.h"

namespace siding::cli {
namespace {

struct SlurmFlags {
  std::string backend = "any";
  bool dry_run = false;
};

using Steps = std::vector<slurm::StepResult>;

void PrintJson(const Steps& steps, bool dry_run) {
  nlohmann::json answer = {{"dry_run", dry_run}, {"steps", nlohmann::json::array()}};
  for (const auto& [step, status] : steps) {
    nlohmann::json one = {{"target", step.target}, {"actions", step.actions}};
    if (!status.ok()) one["problem"] = std::string(status.message());
    answer["steps"].push_back(std::move(one));
  }
  std::cout << answer.dump(2) << "\n";
}

void PrintText(const Steps& steps, bool dry_run) {
  if (steps.empty()) std::cout << "siding has left nothing in Slurm\n";
  for (const auto& [step, status] : steps) {
    if (!status.ok()) {
      std::cerr << "sidingctl: slurm cleanup: " << std::string(status.message()) << "\n";
      continue;
    }
    std::cout << step.target << (dry_run ? ": would be " : ": ") << absl::StrJoin(step.actions, ", ") << "\n";
  }
}

absl::StatusOr<int> CleanUp(const Session& session, const SlurmFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(const slurm::Backend backend, slurm::ParseBackend(flags.backend));
  SIDING_ASSIGN_OR_RETURN(const auto client, slurm::OpenClient(backend));
  SIDING_ASSIGN_OR_RETURN(const Steps steps, slurm::CleanUp(*client, flags.dry_run));
  session.json ? PrintJson(steps, flags.dry_run) : PrintText(steps, flags.dry_run);
  const auto failed = [](const slurm::StepResult& step) { return !step.status.ok(); };
  return std::any_of(steps.begin(), steps.end(), failed) ? 1 : 0;
}

}  // namespace

void AddSlurm(CLI::App& app, Session& session) {
  auto flags = std::make_shared<SlurmFlags>();
  CLI::App& slurm = *app.add_subcommand("slurm", "Slurm: take back what siding has left there");
  slurm.require_subcommand(1);
  CLI::App& cleanup =
      *slurm.add_subcommand("cleanup",
                            "delete siding's reservations, free the jobs whose nodes it chose, resume those "
                            "it suspended, set nice values back; for when siding's controller is gone");
  cleanup.add_flag("--dry-run", flags->dry_run, "only say what would be done");
  cleanup.add_option("--backend", flags->backend, "any, library (libslurm) or tools (scontrol and others)")
      ->capture_default_str();
  cleanup.callback(
      [&session, flags] { session.run = [&session, flags] { return CleanUp(session, *flags); }; });
}

}  // namespace siding::cli

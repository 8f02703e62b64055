#include <iostream>

#include "cli/doctor/report.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/tls/endpoint.h"

namespace siding::cli {

absl::StatusOr<Answers> AskForDoctor(Session& session) {
  Answers answers;
  Client& client = session.client();
  answers.asked = SystemClock().Now();
  SIDING_ASSIGN_OR_RETURN(answers.site, client.Site());
  answers.answered = SystemClock().Now();
  answers.same_machine = !ParseEndpoint(session.connection.controller).remote;
  for (const auto& [address, status] : client.LookAtEach()) {
    if (!status.ok()) answers.away[address] = std::string(status.message());
  }
  SIDING_ASSIGN_OR_RETURN(answers.nodes, client.Nodes());
  SIDING_ASSIGN_OR_RETURN(answers.jobs, client.Jobs(v1::ListJobsRequest()));
  SIDING_ASSIGN_OR_RETURN(answers.checkpoints, client.Checkpoints(/*job=*/0));
  SIDING_ASSIGN_OR_RETURN(answers.policy, client.Policy());
  return answers;
}

namespace {

absl::StatusOr<int> Diagnose(Session& session) {
  SIDING_ASSIGN_OR_RETURN(const Answers answers, AskForDoctor(session));
  const Findings findings = Examine(answers);
  std::cout << (session.json ? FindingsJson(findings) : FindingsText(findings));
  const std::string unseen = NotLookedAt(answers);
  if (!unseen.empty()) std::cerr << "note: " << unseen << "\n";
  return ExitCodeOf(findings);
}

}  // namespace

void AddDoctor(CLI::App& app, Session& session) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "say what is wrong with the controller and its nodes, and how to mend it");
  doctor->footer(
      "Exit code 0: there is nothing to mend; 1: warnings only; 2: faults, where siding does not work as it "
      "should; 3: no controller answers. With --json an array of objects. docs/admin/doctor.md has all "
      "findings.");
  doctor->callback([&session] { session.run = [&session] { return Diagnose(session); }; });
}

}  // namespace siding::cli

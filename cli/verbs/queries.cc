#include <unistd.h>

#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/keys.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"

namespace siding::cli {
namespace {

struct QueryFlags {
  bool all = false, follow = false;
  std::string watch;
  int64_t job = 0;
  std::vector<int64_t> ids;
};

// Once, or again and again: on a terminal in place, elsewhere one after another.
absl::StatusOr<int> Repeat(Session& session, const std::string& watch,
                           const std::function<absl::Status()>& show) {
  if (watch.empty()) {
    SIDING_RETURN_IF_ERROR(show());
    return 0;
  }
  const auto interval = ParseDuration(watch);
  if (!interval.ok()) return Annotate(interval.status(), "--watch");
  const bool terminal = isatty(STDOUT_FILENO) == 1 && !session.json;
  SIDING_RETURN_IF_ERROR(session.OutlastController());
  Keys keys(STDIN_FILENO);
  do {
    if (terminal) std::cout << "\033[H\033[2J";
    SIDING_RETURN_IF_ERROR(show());
  } while (keys.Wait(*interval) != 'q');
  return 0;
}

absl::Status ShowJobs(Session& session, const QueryFlags& flags) {
  v1::ListJobsRequest request;
  request.set_all(flags.all);
  request.mutable_ids()->Assign(flags.ids.begin(), flags.ids.end());
  SIDING_ASSIGN_OR_RETURN(v1::ListJobsResponse jobs, session.client().Jobs(request));
  session.Print(jobs, JobsTable(jobs, session.style(), flags.ids.size() == 1));
  return absl::OkStatus();
}

absl::Status ShowNodes(Session& session) {
  SIDING_ASSIGN_OR_RETURN(v1::ListNodesResponse nodes, session.client().Nodes());
  session.Print(nodes, NodesTable(nodes, session.style()));
  return absl::OkStatus();
}

absl::StatusOr<int> ShowEvents(Session& session, const QueryFlags& flags) {
  if (flags.follow) SIDING_RETURN_IF_ERROR(session.OutlastController());
  v1::EventsRequest request;
  request.set_follow(flags.follow);
  request.set_job(flags.job);
  const absl::Status status = session.client().Events(request, [&](const v1::Event& event) {
    session.Print(event, EventLine(event));
    return static_cast<bool>(std::cout);
  });
  if (!status.ok()) return status;
  return 0;
}

void AddWatch(CLI::App& verb, std::string& watch) {
  verb.add_option("--watch", watch, "repeat, every 2s or as given")->expected(0, 1)->default_str("2s");
}

}  // namespace

void AddQueries(CLI::App& app, Session& session) {
  auto flags = std::make_shared<QueryFlags>();

  CLI::App* jobs = app.add_subcommand("jobs", "jobs, their state, and what they wait for");
  jobs->add_flag("--all,-a", flags->all, "also those that have ended");
  jobs->add_option("job", flags->ids, "only these");
  AddWatch(*jobs, flags->watch);
  jobs->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch, [&] { return ShowJobs(session, *flags); });
    };
  });

  CLI::App* nodes =
      app.add_subcommand("nodes", "nodes, what is free on them, and how fast they dump and restore");
  AddWatch(*nodes, flags->watch);
  nodes->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch, [&] { return ShowNodes(session); });
    };
  });

  CLI::App* top = app.add_subcommand("top", "nodes and jobs, live; q ends it");
  top->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch.empty() ? "1s" : flags->watch, [&] {
        SIDING_RETURN_IF_ERROR(ShowNodes(session));
        if (!session.json) std::cout << "\n";
        return ShowJobs(session, *flags);
      });
    };
  });
  AddWatch(*top, flags->watch);

  CLI::App* explain =
      app.add_subcommand("explain", "why each victim of a request was chosen, and each other job was not");
  explain->add_option("request", flags->job, "the on-demand job")->required();
  explain->footer("example: sidingctl explain 17");
  explain->callback([&session, flags] {
    session.run = [&session, flags]() -> absl::StatusOr<int> {
      SIDING_ASSIGN_OR_RETURN(v1::ExplainResponse explanation, session.client().Explain(flags->job));
      session.Print(explanation, ExplainText(explanation, session.style()));
      return 0;
    };
  });

  CLI::App* events =
      app.add_subcommand("events", "what was decided and what was observed; with --json one object a line");
  events->add_flag("--follow,-f", flags->follow, "continue with new events");
  events->add_option("--job", flags->job, "of this job only");
  events->callback(
      [&session, flags] { session.run = [&session, flags] { return ShowEvents(session, *flags); }; });
}

}  // namespace siding::cli

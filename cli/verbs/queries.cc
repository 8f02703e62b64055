#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/keys.h"
#include "cli/moment.h"
#include "cli/trend_text.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/status.h"

namespace siding::cli {
namespace {

struct QueryFlags {
  bool all = false, follow = false, by_hour = false;
  std::string watch, user, states, since;
  int64_t job = 0;
  std::vector<int64_t> ids;
};

using TextNow = std::function<absl::StatusOr<std::string>()>;

// Once, or again and again: on a terminal in place, elsewhere one after another.
absl::StatusOr<int> Repeat(Session& session, const std::string& watch, const TextNow& show) {
  if (watch.empty()) {
    SIDING_ASSIGN_OR_RETURN(const std::string text, show());
    std::cout << text;
    return 0;
  }
  const auto interval = ParseDuration(watch);
  if (!interval.ok()) return Annotate(interval.status(), "--watch");
  const bool terminal = isatty(STDOUT_FILENO) == 1 && !session.json;
  SIDING_RETURN_IF_ERROR(session.OutlastController());
  Keys keys(STDIN_FILENO);
  do {
    SIDING_ASSIGN_OR_RETURN(const std::string text, show());
    winsize size = {};
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
      std::cout << "\033[H\033[2J" << FitTo(text, size.ws_row, size.ws_col) << std::flush;
    } else {
      std::cout << text << std::flush;
    }
  } while (std::cout && keys.Wait(*interval) != 'q');
  return 0;
}

// `live`: what runs is seen also where the screen ends before the queue does.
absl::StatusOr<std::string> JobsNow(Session& session, const QueryFlags& flags, bool live) {
  v1::ListJobsRequest request;
  request.set_all(flags.all);
  request.mutable_ids()->Assign(flags.ids.begin(), flags.ids.end());
  request.set_user(flags.user);
  for (absl::string_view state : absl::StrSplit(flags.states, ',', absl::SkipEmpty()))
    request.add_states(std::string(state));
  SIDING_ASSIGN_OR_RETURN(v1::ListJobsResponse jobs, session.client().Jobs(request));
  if (live) {
    std::stable_partition(jobs.mutable_jobs()->begin(), jobs.mutable_jobs()->end(),
                          [](const v1::Job& job) { return job.nodes_size() > 0; });
  }
  return session.Text(jobs, JobsTable(jobs, session.style(), flags.ids.size() == 1) +
                                (flags.ids.empty() ? "" : CommandLines(jobs)));
}

absl::StatusOr<std::string> NodesNow(Session& session) {
  SIDING_ASSIGN_OR_RETURN(v1::ListNodesResponse nodes, session.client().Nodes());
  return session.Text(nodes, NodesTable(nodes, session.style()));
}

absl::StatusOr<std::string> NodesAndJobsNow(Session& session) {
  SIDING_ASSIGN_OR_RETURN(const std::string nodes, NodesNow(session));
  SIDING_ASSIGN_OR_RETURN(const std::string jobs, JobsNow(session, {}, /*live=*/true));
  return absl::StrCat(nodes, session.json ? "" : "\n", jobs);
}

absl::StatusOr<int> ShowEvents(Session& session, const QueryFlags& flags) {
  if (flags.follow) SIDING_RETURN_IF_ERROR(session.OutlastController());
  v1::EventsRequest request;
  request.set_follow(flags.follow);
  if (!flags.since.empty()) {
    const auto since = ParsePast(flags.since, SystemClock().Now());
    if (!since.ok()) return Annotate(since.status(), "--since");
    request.set_since_us(ToMicros(*since));
  }
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
  jobs->add_option("--user", flags->user, "only this user's");
  jobs->add_option("--state", flags->states,
                   "only those in this state, such as running; with commas, in one of these");
  jobs->add_option("job", flags->ids, "only these, with the commands that they run or ran");
  AddWatch(*jobs, flags->watch);
  jobs->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch, [&] { return JobsNow(session, *flags, !flags->watch.empty()); });
    };
  });

  CLI::App* nodes =
      app.add_subcommand("nodes", "nodes, what is free on them, and how fast they dump and restore");
  AddWatch(*nodes, flags->watch);
  nodes->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch, [&] { return NodesNow(session); });
    };
  });

  CLI::App* top = app.add_subcommand("top", "nodes and jobs, live; q ends it");
  top->callback([&session, flags] {
    session.run = [&session, flags] {
      return Repeat(session, flags->watch.empty() ? "1s" : flags->watch,
                    [&] { return NodesAndJobsNow(session); });
    };
  });
  AddWatch(*top, flags->watch);

  CLI::App* explain =
      app.add_subcommand("explain", "why each victim of a request was chosen, and each other job was not");
  explain->add_option("request", flags->job, "the on-demand job")->required();
  explain->add_flag("--all,-a", flags->all,
                    "name every job that was left alone, not only how many for each reason");
  explain->footer("example: sidingctl explain 17");
  explain->callback([&session, flags] {
    session.run = [&session, flags]() -> absl::StatusOr<int> {
      SIDING_ASSIGN_OR_RETURN(v1::ExplainResponse explanation,
                              session.client().Explain(flags->job, flags->all));
      session.Print(explanation, ExplainText(explanation, session.style(), flags->all));
      return 0;
    };
  });

  CLI::App* events =
      app.add_subcommand("events", "what was decided and what was observed; with --json one object a line");
  events->add_flag("--follow,-f", flags->follow, "continue with new events");
  events->add_option("job,--job", flags->job, "of this job only");
  events->add_option("--since", flags->since, "not those before: a time, or a duration ago, such as 2h");
  events->callback(
      [&session, flags] { session.run = [&session, flags] { return ShowEvents(session, *flags); }; });

  CLI::App* trends = app.add_subcommand(
      "trends",
      "by day: deadlines, lost work, whether predictions were right, and how fast images were written");
  trends->add_flag("--hours", flags->by_hour, "by hour, of the last 7 days");
  trends->callback([&session, flags] {
    session.run = [&session, flags]() -> absl::StatusOr<int> {
      SIDING_ASSIGN_OR_RETURN(const v1::TrendsResponse told, session.client().Trends());
      session.Print(told, TrendsTable(told, flags->by_hour, session.style()));
      return 0;
    };
  });
}

}  // namespace siding::cli

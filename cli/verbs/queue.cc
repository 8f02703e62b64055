// What is changed of jobs that wait, and of those that run: not by whom they make way, but their own place.
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"
#include "common/units.h"

namespace siding::cli {
namespace {

struct QueueFlags {
  std::vector<int64_t> jobs;
  std::optional<int> priority;
  std::string walltime;
};

// Done when the controller has answered: it is recorded then.
absl::StatusOr<int> RecordEach(Session& session, const QueueFlags& flags, const JobOrder& order,
                               const std::string& done) {
  SIDING_RETURN_IF_ERROR(ForEachJob(flags.jobs, [&](int64_t id) {
    SIDING_RETURN_IF_ERROR(order(id));
    session.Done(absl::StrCat("job ", id, " ", done));
    return absl::OkStatus();
  }));
  return 0;
}

absl::StatusOr<int> Update(Session& session, const QueueFlags& flags) {
  v1::UpdateRequest request;
  if (!flags.priority && flags.walltime.empty())
    return absl::InvalidArgumentError("expected --priority or --walltime");
  if (flags.priority) request.set_priority(*flags.priority);
  if (flags.walltime == "none") {
    request.set_walltime_us(0);
  } else if (!flags.walltime.empty()) {
    const auto walltime = ParseDuration(flags.walltime);
    if (!walltime.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("--walltime: '", flags.walltime, "': expected a duration such as 20m, or none"));
    if (walltime->count() == 0)
      return absl::InvalidArgumentError("--walltime: expected 1s or more, or none for no limit");
    request.set_walltime_us(walltime->count());
  }
  const auto order = [&](int64_t id) {
    request.set_id(id);
    return session.client().Update(request);
  };
  return RecordEach(session, flags, order, "is updated");
}

}  // namespace

void AddQueue(CLI::App& app, Session& session) {
  auto flags = std::make_shared<QueueFlags>();
  CLI::App* hold = app.add_subcommand("hold", "keep jobs that wait from being started or continued");
  hold->callback([&session, flags] {
    session.run = [&session, flags] {
      return RecordEach(
          session, *flags, [&](int64_t id) { return session.client().Hold(id); }, "is held");
    };
  });
  hold->footer(
      "For batch jobs that are pending, parked or suspended, or on their way off their nodes. What an "
      "operator holds, only operators release. A job that runs is not held: suspend it, or vacate its "
      "nodes.");

  CLI::App* release = app.add_subcommand("release", "let jobs that are held start or continue again");
  release->callback([&session, flags] {
    session.run = [&session, flags] {
      return RecordEach(
          session, *flags, [&](int64_t id) { return session.client().Release(id); }, "is not held any more");
    };
  });

  CLI::App* update = app.add_subcommand("update", "change the priority or the walltime of jobs");
  update->add_option("--priority", flags->priority,
                     "higher starts first; only operators raise it, unless the policy lets users");
  update->add_option(
      "--walltime", flags->walltime,
      "how long it may run, such as 20m, or none; once it has started only operators give more");
  update->footer("example: sidingctl update 7 8 --walltime 2h");
  update->callback(
      [&session, flags] { session.run = [&session, flags] { return Update(session, *flags); }; });
  for (CLI::App* verb : {hold, release, update})
    verb->add_option("job", flags->jobs, "the jobs' ids")->required();
}

}  // namespace siding::cli

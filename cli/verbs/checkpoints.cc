#include "absl/strings/str_cat.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"

namespace siding::cli {
namespace {

struct CheckpointFlags {
  int64_t job = 0;
  std::string id;
};

absl::StatusOr<int> List(Session& session, const CheckpointFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::ListCheckpointsResponse list, session.client().Checkpoints(flags.job));
  session.Print(list, CheckpointsTable(list, session.style()));
  return 0;
}

absl::StatusOr<int> Show(Session& session, const CheckpointFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::ListCheckpointsResponse list, session.client().Checkpoints(0));
  for (const v1::CheckpointInfo& checkpoint : list.checkpoints()) {
    if (checkpoint.id() != flags.id) continue;
    session.Print(checkpoint, CheckpointText(checkpoint, session.style()));
    return 0;
  }
  return absl::NotFoundError(absl::StrCat("there is no checkpoint ", flags.id));
}

absl::StatusOr<int> Verify(Session& session, const CheckpointFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(v1::VerifyResponse response, session.client().Verify(flags.id));
  if (!response.good() && !session.json) return absl::DataLossError(response.problem());
  int files = 0;
  int64_t bytes = 0;
  for (const v1::VerifiedRank& rank : response.ranks()) {
    files += rank.files();
    bytes += rank.bytes();
  }
  session.Print(response, absl::StrCat("checkpoint ", flags.id, " is good: ", files, " files, ",
                                       FormatBytes(Bytes{bytes}), "\n"));
  if (!response.good()) return absl::DataLossError(response.problem());
  return 0;
}

}  // namespace

void AddCheckpoints(CLI::App& app, Session& session) {
  auto flags = std::make_shared<CheckpointFlags>();
  CLI::App* checkpoints =
      app.add_subcommand("checkpoints", "durable checkpoints: list, show, verify, delete");
  checkpoints->require_subcommand(1);
  const auto add = [&](const std::string& name, const std::string& help,
                       const std::function<absl::StatusOr<int>()>& run) {
    CLI::App* verb = checkpoints->add_subcommand(name, help);
    verb->callback([&session, run] { session.run = run; });
    return verb;
  };
  add("list", "all, or those of one job", [=, &session] {
    return List(session, *flags);
  })->add_option("job,--job", flags->job, "of this job only");
  for (CLI::App* verb :
       {add("show", "one checkpoint", [=, &session] { return Show(session, *flags); }),
        add("verify", "read every byte of it and compare checksums",
            [=, &session] { return Verify(session, *flags); }),
        add("delete", "remove it; not while a job needs it", [=, &session]() -> absl::StatusOr<int> {
          SIDING_RETURN_IF_ERROR(session.client().Delete(flags->id));
          session.Done(absl::StrCat("checkpoint ", flags->id, " is deleted"));
          return 0;
        })}) {
    verb->add_option("checkpoint", flags->id, "its id, such as 7.2")->required();
  }
}

}  // namespace siding::cli

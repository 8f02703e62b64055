// submit, where Slurm has the queue.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/sbatch.h"
#include "cli/verbs/verbs.h"
#include "common/run_program.h"
#include "common/status.h"

namespace siding::cli {

absl::StatusOr<int> SubmitToSlurm(const Session& session, const v1::JobSpec& spec, bool wait) {
  SIDING_ASSIGN_OR_RETURN(std::vector<std::string> command, SbatchCommand(spec));
  if (wait) command.insert(command.end() - 1, "--wait");
  absl::Status numbered = absl::InternalError("sbatch did not say the job's number");
  const auto print = [&](const std::string& line) {
    int64_t id = 0;
    // "42", or "42;north" where there are several clusters.
    if (absl::SimpleAtoi(line.substr(0, line.find(';')), &id)) {
      v1::SubmitResponse response;
      response.set_id(id);
      session.Print(response, absl::StrCat("job ", id, "\n"));
      numbered = absl::OkStatus();
    } else {
      numbered = absl::InternalError(absl::StrCat("sbatch said '", line, "', not the job's number"));
    }
  };
  SIDING_ASSIGN_OR_RETURN(const int code, FollowProgram(command, print));
  if (code == 0) SIDING_RETURN_IF_ERROR(numbered);
  if (session.json && !numbered.ok())
    Session::PrintFailure(
        absl::FailedPreconditionError(absl::StrCat("sbatch exited with ", code, " and said why on stderr")));
  return code;
}

}  // namespace siding::cli

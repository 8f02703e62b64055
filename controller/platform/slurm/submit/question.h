// What Slurm's plugin asks when a job with a deadline is submitted, and what it is answered;
// docs/design/slurm.md, "Asking the controller". Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "model/job.h"

namespace siding::slurm {

struct Question {
  uint32_t uid = 0;  // of who asks; not in the text
  Time start_by;
  std::optional<Time> not_before;              // --begin
  std::map<std::string, std::string> options;  // those of sbatch that were given, as Slurm writes them
};

// kInvalidArgument names the line and what was expected; kUnimplemented: of another version. Lines that this
// version does not know are skipped.
absl::StatusOr<Question> ParseQuestion(const std::string& text);

// The promise to start then, or the refusal for this reason, as spank/messages.h reads it. kUnavailable is no
// refusal: whether it can start is not known yet.
std::string AnswerText(const absl::StatusOr<Time>& starts);

// The request that the job is. Slurm chooses the number of nodes where the user does not say it; here that is
// as many as --nodelist names or --ntasks and --ntasks-per-node need, or one. How much that is of each node
// if it wants all of it (--exclusive) is not known here: TakeWholeNodes of translate.h. kInvalidArgument
// names the option that cannot be understood; kUnimplemented: one that a promise cannot be made for.
absl::StatusOr<JobSpec> SpecOf(const Question& question);

}  // namespace siding::slurm

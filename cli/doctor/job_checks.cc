#include "cli/doctor/job_checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render.h"

namespace siding::cli {
namespace {

std::string About(const v1::Job& job) { return absl::StrCat("job ", job.id()); }

bool IsParkedFor(const v1::Job& job, v1::Back::Kind kind) {
  return job.state() == "parked" && job.back().because().kind() == kind;
}

std::string Because(const std::string& why) { return why.empty() ? "" : ": " + why; }

std::string WhereItLies(const v1::CheckpointInfo& checkpoint) {
  return absl::StrCat(TierName(checkpoint.tier()), " storage, dumped on ",
                      absl::StrJoin(checkpoint.nodes(), ", "));
}

// Null: it has ended.
const v1::Job* JobOf(const Answers& answers, const v1::CheckpointInfo& checkpoint) {
  const auto& jobs = answers.jobs.jobs();
  const auto job = std::find_if(jobs.begin(), jobs.end(),
                                [&](const v1::Job& job) { return job.id() == checkpoint.job(); });
  return job == jobs.end() ? nullptr : &*job;
}

bool HasRefusedImage(const Answers& answers, const v1::Job& job) {
  const auto& checkpoints = answers.checkpoints.checkpoints();
  return std::any_of(checkpoints.begin(), checkpoints.end(), [&](const v1::CheckpointInfo& checkpoint) {
    return checkpoint.job() == job.id() && checkpoint.state() == "refused";
  });
}

// Without it nothing is lost: its job runs, or goes on from another one.
bool MayBeDeleted(const v1::Job& job) { return job.state() == "running" || !job.checkpoint().empty(); }

std::string MendOfRefused(const v1::CheckpointInfo& checkpoint, const v1::Job& job) {
  if (MayBeDeleted(job))
    return absl::StrCat("`sidingctl checkpoints delete ", checkpoint.id(),
                        "`, after which its job is checkpointed again (docs/admin/checkpoints.md)");
  return absl::StrCat(
      "keep it, for its job may have nothing else; if another criu or node would take it: "
      "`sidingctl resume ",
      job.id(), "` (docs/admin/checkpoints.md)");
}

Finding WaitsForTasks(const v1::Job& job) {
  const std::string& node = job.back().because().node();
  return {Severity::kWarning, About(job),
          absl::StrCat("it waits until tasks of its last start are seen to be gone",
                       node.empty() ? "" : " from node " + node, Because(job.reason())),
          absl::StrCat(
              "see to that node and its agent; if the node never comes back, and is off: `sidingctl lost ",
              node.empty() ? "NODE" : node, "` (docs/admin/nodes.md)")};
}

Finding NeedsMoreNodes(const v1::Job& job) {
  return {Severity::kWarning, About(job),
          "there are fewer nodes in use that have what it asks for than it needs" + Because(job.reason()),
          "bring back nodes that are away or cordoned, or add some; else `sidingctl kill` it, and submit it "
          "for less (docs/admin/nodes.md)"};
}

}  // namespace

Findings JobsThatNeedAWord(const Answers& answers) {
  Findings findings;
  for (const v1::Job& job : answers.jobs.jobs()) {
    if (!IsParkedFor(job, v1::Back::DECISION)) continue;
    findings.push_back(
        {Severity::kWarning, About(job),
         "it waits until somebody says how it is to go on" + Because(job.reason()),
         absl::StrCat(HasRefusedImage(answers, job) ? absl::StrCat("`sidingctl resume ", job.id(),
                                                                   "` tries once more what was refused, ")
                                                    : "",
                      "`sidingctl restart ", job.id(), "` starts it from its beginning, `sidingctl kill ",
                      job.id(), "` ends it (docs/admin/checkpoints.md)")});
  }
  return findings;
}

Findings JobsThatCannotGoOn(const Answers& answers) {
  Findings findings;
  for (const v1::Job& job : answers.jobs.jobs()) {
    const v1::Back::Kind why = job.back().because().kind();
    if (why == v1::Back::TASKS_LEFT) findings.push_back(WaitsForTasks(job));
    if (why == v1::Back::TOO_FEW) findings.push_back(NeedsMoreNodes(job));
  }
  return findings;
}

Findings RestoresThatFail(const Answers& answers) {
  Findings findings;
  for (const v1::Job& job : answers.jobs.jobs()) {
    if (!IsParkedFor(job, v1::Back::RETRY)) continue;
    findings.push_back({Severity::kFault, About(job), "it cannot be restored" + Because(job.reason()),
                        absl::StrCat("bring back what is missing, then `sidingctl resume ", job.id(),
                                     "` (docs/admin/checkpoints.md)")});
  }
  return findings;
}

Findings BadCheckpoints(const Answers& answers) {
  Findings findings;
  for (const v1::CheckpointInfo& checkpoint : answers.checkpoints.checkpoints()) {
    const std::string about = "checkpoint " + checkpoint.id();
    if (checkpoint.state() == "damaged") {
      findings.push_back(
          {Severity::kFault, about,
           absl::StrCat("it is not what was written (", WhereItLies(checkpoint), ")",
                        Because(checkpoint.note())),
           absl::StrCat("look at the disk that it lies on; then `sidingctl checkpoints delete ",
                        checkpoint.id(), "` (docs/admin/checkpoints.md)")});
    } else if (const v1::Job* job = JobOf(answers, checkpoint);
               job != nullptr && checkpoint.state() == "refused") {
      findings.push_back({Severity::kWarning, about, "no restore takes it" + Because(checkpoint.note()),
                          MendOfRefused(checkpoint, *job)});
    }
  }
  return findings;
}

}  // namespace siding::cli

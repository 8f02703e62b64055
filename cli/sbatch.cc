#include "cli/sbatch.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/job_file.h"
#include "cli/render.h"
#include "common/status.h"
#include "common/units.h"

namespace siding::cli {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kSecond = 1'000'000;

int64_t RoundUp(int64_t value, int64_t unit) { return value / unit + (value % unit > 0 ? 1 : 0); }

absl::Status NotUnderSlurm(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": jobs are submitted to Slurm here, and ", why));
}

// Slurm's own words for what policies ask for.
bool IsSlurms(const std::string& label) {
  return label == "partition" || label == "qos" || label == "account";
}

absl::Status CheckHasCounterpart(const v1::JobSpec& job) {
  if (job.priority() != 0) return NotUnderSlurm("priority", "Slurm orders its queue by its own rules");
  if (job.has_kill_grace_us())
    return NotUnderSlurm("kill_grace", "the KillWait of its configuration is every job's");
  if (job.start_by_earliest())
    return NotUnderSlurm("start_by",
                         "it cannot be 'earliest': expected a time, such as 'sidingctl plan' finds");
  if (job.auto_checkpoint_interval())
    return NotUnderSlurm("checkpoint_interval", "it cannot be 'auto': expected a duration such as 30m");
  if (job.keep_connections() && job.methods().empty())
    return NotUnderSlurm("connections",
                         "they are kept there of jobs that may be preempted: expected preemptible");
  if (!job.app().marker().empty())
    return NotUnderSlurm("app_marker", "a program that saves itself there ends when it has");
  if (!job.app().restart_command().empty())
    return NotUnderSlurm("restart_command", "it starts a job again with the command that it began with");
  if (job.on_node_failure() == v1::PARK && !job.methods().empty())
    return NotUnderSlurm("on_node_failure",
                         "it starts a job that may be preempted again after a failure, too");
  for (const auto& [name, value] : job.labels()) {
    if (!IsSlurms(name))
      return NotUnderSlurm(absl::StrCat("label ", name), "it knows partition, qos and account");
  }
  return absl::OkStatus();
}

// As one word of a shell.
std::string Quoted(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           std::string("-_./:=,+@%").find(static_cast<char>(c)) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
}

std::string Line(const Words& words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) { *out += Quoted(word); });
}

void Append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

// siding's %j is Slurm's, %r is what the caller says, %% is a %; Slurm has a meaning for many more.
std::string OutputPattern(const std::string& pattern, const std::string& rank) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'j' || next == 'r' || next == '%') ++i;
    if (next == 'j') {
      out += "%j";
    } else if (next == 'r') {
      out += rank;
    } else {
      out += pattern[i] == '%' ? "%%" : std::string(1, pattern[i]);
    }
  }
  return out;
}

// Exact, where FormatDuration is for people.
std::string DurationFlag(int64_t microseconds) {
  if (microseconds % kSecond == 0) return absl::StrCat(microseconds / kSecond, "s");
  return absl::StrCat(microseconds, "us");
}

Words Needs(const v1::JobSpec& job) {
  const v1::Resources& each = job.per_node();
  Words words = {absl::StrCat("--nodes=", job.nodes()), "--ntasks-per-node=1",
                 absl::StrCat("--cpus-per-task=", each.slots())};
  if (each.memory() > 0) words.push_back(absl::StrCat("--mem=", RoundUp(each.memory(), 1024), "K"));
  if (each.gpus() > 0) words.push_back(absl::StrCat("--gpus-per-node=", each.gpus()));
  return words;
}

// Slurm counts in whole minutes and seconds.
Words Times(const v1::JobSpec& job) {
  Words words;
  if (job.walltime_us() > 0)
    words.push_back(absl::StrCat("--time=", RoundUp(job.walltime_us(), 60 * kSecond)));
  if (job.not_before_us() > 0)
    words.push_back(absl::StrCat("--begin=uts", RoundUp(job.not_before_us(), kSecond)));
  if (job.on_demand())
    words.push_back(absl::StrCat("--siding-start-by=", FormatTime(FromMicros(job.start_by_us()))));
  return words;
}

// How its tasks may be preempted. Whether all this fits together is for siding's plugin to say.
Words Preemption(const v1::JobSpec& job) {
  Words words, methods;
  for (const int method : job.methods()) methods.push_back(MethodName(static_cast<v1::Method>(method)));
  if (!methods.empty()) words.push_back("--siding-preemptible=" + absl::StrJoin(methods, ","));
  if (job.app().signal() != 0)
    words.push_back(absl::StrCat("--siding-checkpoint-signal=", job.app().signal(), "@",
                                 DurationFlag(job.app().grace_us())));
  if (job.checkpoint_interval_us() > 0)
    words.push_back("--siding-checkpoint-interval=" + DurationFlag(job.checkpoint_interval_us()));
  if (job.notice_us() > 0) words.push_back("--siding-notice=" + DurationFlag(job.notice_us()));
  if (job.gpu_collectives() != v1::GPU_COLLECTIVES_UNSPECIFIED)
    words.push_back(absl::StrCat("--siding-gpu-collectives=", CollectivesName(job.gpu_collectives())));
  if (job.allow_io_uring()) words.push_back("--siding-allow-io-uring=yes");
  if (job.append_files()) words.push_back("--siding-files=append");
  if (job.keep_connections()) words.push_back("--siding-connections=keep");
  if (job.has_max_preemptions())
    words.push_back(absl::StrCat("--siding-max-preemptions=", job.max_preemptions()));
  return words;
}

Words Environment(const v1::JobSpec& job) {
  Words words;
  for (const auto& [name, value] : std::map<std::string, std::string>(job.env().begin(), job.env().end()))
    words.push_back(absl::StrCat(name, "=", value));
  return words;
}

// What a task finds in its environment wherever siding runs it, then the user's own and the command.
std::string TaskScript(int nodes, const std::string& rank, const std::string& rest) {
  return absl::StrCat("exec env SIDING_JOB_ID=\"$SLURM_JOB_ID\" SIDING_RANK=", rank, " SIDING_NODES=", nodes,
                      " ", rest);
}

// Only what srun starts has a network of its own.
bool IsScriptAlone(const v1::JobSpec& job) { return job.nodes() == 1 && !job.keep_connections(); }

// `exec`: a shell in between would get the signals that are meant for the command.
std::string Script(const v1::JobSpec& job) {
  Words task = Environment(job);
  Append(task, {job.command().begin(), job.command().end()});
  if (IsScriptAlone(job)) return TaskScript(1, "0", Line(task));
  // What sbatch is told of CPUs does not reach srun. A script that waits for srun cannot be dumped; its tasks
  // can.
  Words srun = {"exec", "srun", absl::StrCat("--cpus-per-task=", job.per_node().slots())};
  if (job.output().find("%r") != std::string::npos)
    Append(srun, {"--open-mode=append", "--output=" + OutputPattern(job.output(), "%t")});
  Append(srun, Preemption(job));
  Append(srun, {"sh", "-c", TaskScript(job.nodes(), "\"$SLURM_PROCID\"", "\"$@\""), "sh"});
  return absl::StrCat(Line(srun), " ", Line(task));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SbatchCommand(const v1::JobSpec& job) {
  SIDING_RETURN_IF_ERROR(CheckHasCounterpart(job));
  if (job.output().find('\\') != std::string::npos)
    return NotUnderSlurm("output", "sbatch does not replace %j in a path with \\: expected a path without");
  const bool alone = IsScriptAlone(job);
  Words words = {"sbatch", "--parsable", "--job-name=" + job.name()};
  Append(words, Needs(job));
  Append(words, {"--chdir=" + job.workdir(), "--open-mode=append",
                 "--output=" + OutputPattern(job.output(), alone ? "0" : "srun")});
  for (const auto& [name, value] :
       std::map<std::string, std::string>(job.labels().begin(), job.labels().end()))
    words.push_back(absl::StrCat("--", name, "=", value));
  Append(words, Times(job));
  if (alone) Append(words, Preemption(job));
  // A site may have Slurm requeue only jobs that ask for it.
  if (!job.methods().empty() || job.on_node_failure() == v1::REQUEUE) words.push_back("--requeue");
  if (job.on_node_failure() == v1::PARK) words.push_back("--no-requeue");
  words.push_back("--wrap=" + Script(job));
  return words;
}

}  // namespace siding::cli

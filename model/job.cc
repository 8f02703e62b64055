#include "model/job.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

constexpr char kCut[] = "...";

// At most so many bytes of it, and no part of a character.
std::string Beginning(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

// With a zero behind each word, as execve(2) counts, and no more than kKeptWords, as each takes more than its
// bytes. What is cut ends with kCut, which is counted as well.
std::vector<std::string> BeginningOf(const std::vector<std::string>& command) {
  std::vector<std::string> kept;
  size_t left = kKeptCommand;
  for (const std::string& word : command) {
    if (kept.size() == kKeptWords - 1 && &word != &command.back()) {
      kept.push_back(kCut);
      break;
    }
    if (word.size() + 1 + sizeof kCut > left) {
      const bool is_last = &word == &command.back() && word.size() + 1 <= left;
      kept.push_back(is_last ? word : Beginning(word, left - sizeof kCut) + kCut);
      break;
    }
    kept.push_back(word);
    left -= word.size() + 1;
  }
  return kept;
}

}  // namespace

std::string ToString(Method method) {
  switch (method) {
    case Method::kSuspend:
      return "suspend";
    case Method::kCheckpoint:
      return "checkpoint";
    case Method::kApp:
      return "app";
    case Method::kKill:
      return "kill";
  }
  return "?";
}

absl::StatusOr<Method> ParseMethod(const std::string& name) {
  for (Method m : kAllMethods) {
    if (ToString(m) == name) return m;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("method '", name, "': expected suspend, checkpoint, app or kill"));
}

std::string ToString(Tier tier) { return tier == Tier::kLocal ? "local" : "shared"; }

absl::StatusOr<Tier> ParseTier(const std::string& name) {
  for (Tier t : {Tier::kLocal, Tier::kShared}) {
    if (ToString(t) == name) return t;
  }
  return absl::InvalidArgumentError(absl::StrCat("tier '", name, "': expected local or shared"));
}

namespace {

std::string WhyFull(const std::string& where, Bytes free, Bytes needed, const std::string& beside) {
  if (needed <= free) return "";
  return absl::StrCat(where, " is full: ", FormatBytes(free), " free", beside.empty() ? "" : " beside ",
                      beside, ", ", FormatBytes(needed), " needed");
}

}  // namespace

std::string WhyNoRoom(Tier tier, const NodeId& node, Bytes free, Bytes needed, const std::string& problem) {
  const std::string where = absl::StrCat("tier ", ToString(tier), " on node ", node.value());
  if (!problem.empty()) return absl::StrCat(where, ": ", problem);
  return WhyFull(where, free, needed, "");
}

std::string WhyNoSharedRoom(Bytes free, Bytes needed, const std::string& beside) {
  return WhyFull(absl::StrCat("tier ", ToString(Tier::kShared)), free, needed, beside);
}

std::string ToString(GpuCollectives collectives) {
  switch (collectives) {
    case GpuCollectives::kUnsaid:
      return "unsaid";
    case GpuCollectives::kAsIs:
      return "as-is";
    case GpuCollectives::kDrainable:
      return "drainable";
  }
  return "?";
}

absl::StatusOr<GpuCollectives> ParseGpuCollectives(const std::string& name) {
  for (GpuCollectives c : {GpuCollectives::kAsIs, GpuCollectives::kDrainable}) {
    if (ToString(c) == name) return c;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected as-is or drainable"));
}

std::string ToString(OnNodeFailure what) {
  switch (what) {
    case OnNodeFailure::kUnsaid:
      return "unsaid";
    case OnNodeFailure::kRequeue:
      return "requeue";
    case OnNodeFailure::kPark:
      return "park";
  }
  return "?";
}

absl::StatusOr<OnNodeFailure> ParseOnNodeFailure(const std::string& name) {
  for (OnNodeFailure what : {OnNodeFailure::kRequeue, OnNodeFailure::kPark}) {
    if (ToString(what) == name) return what;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': expected requeue or park"));
}

std::string ToString(JobKind kind) { return kind == JobKind::kBatch ? "batch" : "on-demand"; }

void DropContents(JobSpec& spec) {
  std::vector<std::string>().swap(spec.command);
  spec.env.clear();
  if (spec.app) std::vector<std::string>().swap(spec.app->restart_command);
}

void DropAllButCommand(JobSpec& spec) {
  std::vector<std::string> command = BeginningOf(spec.command);
  DropContents(spec);
  spec.command = std::move(command);
}

}  // namespace siding

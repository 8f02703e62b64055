#include "agent/pods/messages.h"

#include <chrono>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/packets.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kVersion = 1;
constexpr char kContainer[] = "siding-container";
constexpr char kStart[] = "siding-start";
constexpr char kMade[] = "siding-made";
constexpr size_t kMostReason = 2048;
constexpr int kMostPatience = 24 * 3600;  // seconds

using Lines = std::map<std::string, std::string>;

absl::StatusOr<Lines> LinesOf(const std::string& text, const std::string& kind) {
  SIDING_ASSIGN_OR_RETURN(const KeysAndValues all, ParsePacket(text, kind, kVersion));
  return Lines(all.begin(), all.end());
}

std::string Head(const char* kind) { return absl::StrCat(kind, " ", kVersion, "\n"); }

}  // namespace

std::string ToText(const StartingContainer& starting) {
  return absl::StrCat(Head(kContainer), "pod ", starting.pod_uid, "\nname ", starting.name, "\nroot ",
                      starting.container.root, "\nid ", starting.container.id, "\nbundle ",
                      starting.container.bundle, "\npatience ",
                      std::chrono::duration_cast<std::chrono::seconds>(starting.patience).count(), "\n");
}

absl::StatusOr<StartingContainer> ParseStarting(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(const Lines lines, LinesOf(text, kContainer));
  StartingContainer starting;
  for (const auto& [key, value] : {std::pair{"pod", &starting.pod_uid},
                                   {"name", &starting.name},
                                   {"root", &starting.container.root},
                                   {"id", &starting.container.id},
                                   {"bundle", &starting.container.bundle}}) {
    const auto line = lines.find(key);
    if (line == lines.end() || line->second.empty())
      return absl::InvalidArgumentError(absl::StrCat(kContainer, ": expected a line '", key, "'"));
    *value = line->second;
  }
  if (const auto line = lines.find("patience"); line != lines.end()) {
    int seconds = 0;
    if (!absl::SimpleAtoi(line->second, &seconds) || seconds < 0 || seconds > kMostPatience)
      return absl::InvalidArgumentError(
          absl::StrCat(kContainer, ": patience: expected seconds, at most ", kMostPatience));
    starting.patience = std::chrono::seconds(seconds);
  }
  return starting;
}

std::string ToText(const absl::StatusOr<ContainerStart>& start) {
  if (!start.ok()) return absl::StrCat(Head(kStart), "refused ", OneLine(start.status(), kMostReason), "\n");
  if (start->image_folder.empty()) return absl::StrCat(Head(kStart), "from beginning\n");
  return absl::StrCat(Head(kStart), "image ", start->image_folder, "\n");
}

absl::StatusOr<ContainerStart> ParseStart(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(const Lines lines, LinesOf(text, kStart));
  if (const auto why = lines.find("refused"); why != lines.end())
    return absl::FailedPreconditionError(why->second);
  if (const auto image = lines.find("image"); image != lines.end() && !image->second.empty())
    return ContainerStart{image->second};
  if (lines.contains("from")) return ContainerStart{};
  return absl::InvalidArgumentError(absl::StrCat(kStart, ": expected a line 'refused', 'image' or 'from'"));
}

std::string ToText(const absl::StatusOr<pid_t>& made) {
  if (made.ok()) return absl::StrCat(Head(kMade), "pid ", *made, "\n");
  return absl::StrCat(Head(kMade), "failed ", OneLine(made.status(), kMostReason), "\n");
}

absl::StatusOr<pid_t> ParseMade(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(const Lines lines, LinesOf(text, kMade));
  if (const auto why = lines.find("failed"); why != lines.end()) return absl::AbortedError(why->second);
  pid_t pid = 0;
  const auto line = lines.find("pid");
  if (line == lines.end() || !absl::SimpleAtoi(line->second, &pid) || pid <= 0)
    return absl::InvalidArgumentError(absl::StrCat(kMade, ": expected a line 'pid' or 'failed'"));
  return pid;
}

}  // namespace siding

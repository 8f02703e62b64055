#include "controller/platform/slurm/submit/question.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/packets.h"
#include "common/status.h"
#include "spank/messages.h"

namespace siding::slurm {
namespace {

absl::StatusOr<Time> ParseMicros(const std::string& key, const std::string& value) {
  int64_t micros = 0;
  if (!absl::SimpleAtoi(value, &micros) || micros <= 0 || micros > ToMicros(kLatestTime)) {
    return absl::InvalidArgumentError(absl::StrCat("the question's line '", key, " ", value,
                                                   "': expected a time in microseconds since 1970"));
  }
  return FromMicros(micros);
}

absl::Status TakeOption(const std::string& line, Question& question) {
  const std::pair<std::string, std::string> option = absl::StrSplit(line, absl::MaxSplits(' ', 1));
  if (option.first.empty() || option.second.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the question's line 'option ", line, "': expected the option's name and its value"));
  }
  if (!question.options.insert(option).second)
    return absl::InvalidArgumentError("the question has the option '" + option.first + "' twice");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Question> ParseQuestion(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(const KeysAndValues lines, ParsePacket(text, "siding-question", spank::kVersion));
  Question question;
  bool has_deadline = false;
  for (const auto& [key, value] : lines) {
    if (key == "start-by-us") {
      SIDING_ASSIGN_OR_RETURN(question.start_by, ParseMicros(key, value));
      has_deadline = true;
    } else if (key == "not-before-us") {
      SIDING_ASSIGN_OR_RETURN(question.not_before, ParseMicros(key, value));
    } else if (key == "option") {
      SIDING_RETURN_IF_ERROR(TakeOption(value, question));
    }
  }
  if (!has_deadline) return absl::InvalidArgumentError("the question lacks the line 'start-by-us'");
  return question;
}

std::string AnswerText(const absl::StatusOr<Time>& starts) {
  if (starts.ok())
    return absl::StrCat("siding-promised ", spank::kVersion, "\nstarts-us ", ToMicros(*starts), "\n");
  const char* const kind = absl::IsUnavailable(starts.status()) ? "siding-undecided " : "siding-refused ";
  return absl::StrCat(kind, spank::kVersion, "\nreason ", OneLine(starts.status(), spank::kMaxPath), "\n");
}

}  // namespace siding::slurm

#include "controller/wire/spec_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/utf8.h"

namespace siding {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Shown to people on one line. A path may have any characters, and is escaped where it is shown.
absl::Status CheckOneLine(const std::string& field, const std::string& text, size_t longest) {
  if (text.size() > longest)
    return BadField(field, absl::StrCat("at most ", longest, " bytes, got ", text.size()));
  if (std::any_of(text.begin(), text.end(), IsControl)) return BadField(field, "no control characters");
  return absl::OkStatus();
}

// Shown to people, who are to see what it is.
absl::Status CheckName(const std::string& field, const std::string& name, size_t longest) {
  SIDING_RETURN_IF_ERROR(CheckOneLine(field, name, longest));
  const auto unseen = FindUnseen(name);
  if (!unseen) return absl::OkStatus();
  return BadField(
      field, absl::StrCat("only characters that are seen, got ", NameOf(*unseen), " at byte ", unseen->at));
}

// Handed to execve(2), for which a zero is the end. Counts what it takes in `total`.
absl::Status CheckArgument(const std::string& field, const std::string& text, size_t& total) {
  if (text.find('\0') != std::string::npos) return BadField(field, "no zero bytes");
  if (text.size() >= kLongestArgument)
    return BadField(field,
                    absl::StrCat("strings of less than ", kLongestArgument, " bytes, got ", text.size()));
  total += text.size() + 1;
  return absl::OkStatus();
}

template <class Words>
absl::Status CheckCommand(const std::string& field, const Words& words, size_t& total) {
  if (static_cast<size_t>(words.size()) > kMostArguments)
    return BadField(field, absl::StrCat("at most ", kMostArguments, " words, got ", words.size()));
  for (const std::string& word : words) SIDING_RETURN_IF_ERROR(CheckArgument(field, word, total));
  return absl::OkStatus();
}

absl::Status CheckEnvironment(const v1::JobSpec& spec, size_t& total) {
  if (spec.env().size() > kMostArguments)
    return BadField("env", absl::StrCat("at most ", kMostArguments, " variables, got ", spec.env().size()));
  for (const auto& [name, value] : spec.env()) {
    SIDING_RETURN_IF_ERROR(CheckName("env", name, kLongestPath));
    SIDING_RETURN_IF_ERROR(CheckArgument(absl::StrCat("env: ", name), absl::StrCat(name, "=", value), total));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const v1::JobSpec& spec) {
  if (spec.labels_size() > kMostLabels)
    return BadField("labels", absl::StrCat("at most ", kMostLabels, ", got ", spec.labels_size()));
  for (const auto& [name, value] : spec.labels()) {
    SIDING_RETURN_IF_ERROR(CheckName("labels", name, kLongestName));
    SIDING_RETURN_IF_ERROR(CheckName("labels", value, kLongestName));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BadField(const std::string& field, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected ", expected));
}

absl::Status CheckLimits(const v1::JobSpec& spec) {
  SIDING_RETURN_IF_ERROR(CheckName("name", spec.name(), kLongestName));
  SIDING_RETURN_IF_ERROR(CheckOneLine("workdir", spec.workdir(), kLongestPath));
  SIDING_RETURN_IF_ERROR(CheckOneLine("output", spec.output(), kLongestPath));
  SIDING_RETURN_IF_ERROR(CheckOneLine("app.marker", spec.app().marker(), kLongestPath));
  SIDING_RETURN_IF_ERROR(CheckLabels(spec));
  size_t total = 0;
  SIDING_RETURN_IF_ERROR(CheckCommand("command", spec.command(), total));
  SIDING_RETURN_IF_ERROR(CheckEnvironment(spec, total));
  SIDING_RETURN_IF_ERROR(CheckCommand("app.restart_command", spec.app().restart_command(), total));
  if (total > kMostText) {
    return BadField("command, env, app.restart_command",
                    absl::StrCat("at most ", kMostText, " bytes together, got ", total));
  }
  // The rest has limits of its own: this one holds for fields to come.
  if (spec.ByteSizeLong() > kMostSpec)
    return BadField("spec", absl::StrCat("at most ", kMostSpec, " bytes, got ", spec.ByteSizeLong()));
  return absl::OkStatus();
}

}  // namespace siding

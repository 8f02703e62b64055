#include "controller/platform/slurm/client/marks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siding::slurm {
namespace {

constexpr char kOpen[] = "[siding";

// Behind the mark's ']'; 0: there is no mark.
size_t EndOfMark(const std::string& comment) {
  const size_t word = sizeof(kOpen) - 1;
  if (comment.compare(0, word, kOpen) != 0 || comment.size() == word) return 0;
  if (comment[word] != ':' && comment[word] != ' ') return 0;
  const size_t close = comment.find(']');
  return close == std::string::npos ? 0 : close + 1;
}

struct Parts {
  std::vector<std::string> words;
  std::string why;
};
std::optional<Parts> PartsOfMark(const std::string& comment) {
  const size_t end = EndOfMark(comment);
  if (end == 0) return {};
  const size_t begin = sizeof(kOpen) - 1;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(comment.substr(begin, end - 1 - begin), absl::MaxSplits(": ", 1));
  return Parts{absl::StrSplit(parts.first, ' ', absl::SkipEmpty()), parts.second};
}

// "0/-1": from, to.
std::optional<Mark::Nice> NiceOf(absl::string_view values) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(values, absl::MaxSplits('/', 1));
  Mark::Nice nice;
  if (!absl::SimpleAtoi(ends.first, &nice.from) || !absl::SimpleAtoi(ends.second, &nice.to)) return {};
  return nice;
}

}  // namespace

std::optional<Mark> MarkOf(const std::string& admin_comment) {
  const auto parts = PartsOfMark(admin_comment);
  if (!parts) return {};
  Mark mark;
  mark.why = parts->why;
  for (const std::string& word : parts->words) {
    if (word == "pinned") mark.pinned = true;
    if (word == "suspended") mark.suspended = true;
    absl::string_view values = word;
    if (absl::ConsumePrefix(&values, "nice=")) mark.nice = NiceOf(values);
  }
  return mark;
}

std::string WithMark(const std::string& admin_comment, const std::optional<Mark>& mark) {
  std::string rest = admin_comment.substr(EndOfMark(admin_comment));
  if (rest.size() < admin_comment.size() && !rest.empty() && rest.front() == ' ') rest.erase(0, 1);
  if (!mark) return rest;
  std::string why = mark->why;
  std::replace(why.begin(), why.end(), ']', ')');  // it would end the mark
  const std::string nice = mark->nice ? absl::StrCat(" nice=", mark->nice->from, "/", mark->nice->to) : "";
  return absl::StrCat(kOpen, mark->pinned ? " pinned" : "", mark->suspended ? " suspended" : "", nice, ": ",
                      why, "]", rest.empty() ? "" : " ", rest);
}

std::optional<Time> StartByOf(const std::string& comment) {
  const auto parts = PartsOfMark(comment);
  if (!parts) return {};
  for (const std::string& word : parts->words) {
    absl::string_view time = word;
    if (!absl::ConsumePrefix(&time, "start-by=") || absl::StartsWith(time, "+")) continue;
    const auto start_by = ParseTime(time, Time{});
    if (start_by.ok()) return *start_by;
  }
  return {};
}

}  // namespace siding::slurm

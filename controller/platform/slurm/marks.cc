#include "controller/platform/slurm/marks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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

}  // namespace

std::optional<Mark> MarkOf(const std::string& admin_comment) {
  const size_t end = EndOfMark(admin_comment);
  if (end == 0) return {};
  const size_t begin = sizeof(kOpen) - 1;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(admin_comment.substr(begin, end - 1 - begin), absl::MaxSplits(": ", 1));
  Mark mark;
  mark.why = parts.second;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(parts.first, ' ', absl::SkipEmpty()))) {
    if (word == "held") mark.held = true;
    if (word == "pinned") mark.pinned = true;
    if (word == "suspended") mark.suspended = true;
  }
  return mark;
}

std::optional<Time> StartByOf(const std::string& comment) {
  constexpr char kBegin[] = "[siding start-by=";
  const size_t begin = sizeof(kBegin) - 1;
  const size_t end = comment.find(']');
  if (comment.compare(0, begin, kBegin) != 0 || end == std::string::npos) return {};
  const auto time = ParseTime(comment.substr(begin, end - begin), Time());
  return time.ok() ? std::optional(*time) : std::nullopt;
}

std::string WithMark(const std::string& admin_comment, const std::optional<Mark>& mark) {
  std::string rest = admin_comment.substr(EndOfMark(admin_comment));
  if (rest.size() < admin_comment.size() && !rest.empty() && rest.front() == ' ') rest.erase(0, 1);
  if (!mark) return rest;
  std::string why = mark->why;
  std::replace(why.begin(), why.end(), ']', ')');  // it would end the mark
  return absl::StrCat(kOpen, mark->held ? " held" : "", mark->pinned ? " pinned" : "",
                      mark->suspended ? " suspended" : "", ": ", why, "]", rest.empty() ? "" : " ", rest);
}

}  // namespace siding::slurm

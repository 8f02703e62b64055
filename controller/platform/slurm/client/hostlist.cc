#include "controller/platform/slurm/client/hostlist.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding::slurm {
namespace {

// Any user may send a list, and a short one can stand for a long one.
constexpr size_t kMostNames = 100'000;
constexpr size_t kLongestName = 255;
constexpr size_t kMostDigits = 18;

using Names = std::vector<std::string>;

// At commas outside of brackets.
absl::StatusOr<Names> SplitList(const std::string& text) {
  Names parts(1);
  bool inside = false;
  for (char c : text) {
    if ((c == '[' && inside) || (c == ']' && !inside))
      return absl::InvalidArgumentError(absl::StrCat("node list '", text, "': brackets do not match"));
    if (c == '[' || c == ']') inside = c == '[';
    if (c == ',' && !inside)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (inside)
    return absl::InvalidArgumentError(absl::StrCat("node list '", text, "': a bracket is not closed"));
  return parts;
}

// "7", "07" or "07-10" to the numbers as they are written, with as many digits as the first has.
absl::Status AddRange(const std::string& range, Names& numbers) {
  const std::pair<std::string, std::string> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  const bool single = range.find('-') == std::string::npos;
  int64_t first = 0, last = 0;
  if (ends.first.size() > kMostDigits || !absl::SimpleAtoi(ends.first, &first) || first < 0 ||
      (!single && (!absl::SimpleAtoi(ends.second, &last) || last < first))) {
    return absl::InvalidArgumentError(absl::StrCat("node list: '", range, "' is no range of numbers"));
  }
  if (single) last = first;
  if (last - first >= static_cast<int64_t>(kMostNames - numbers.size()))
    return absl::InvalidArgumentError(absl::StrCat("node list: '", range, "' is too long"));
  for (int64_t number = first; number <= last; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < ends.first.size()) digits.insert(0, ends.first.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
  return absl::OkStatus();
}

absl::StatusOr<Names> ExpandOne(const std::string& part) {
  Names names = {""};
  std::string rest = part;
  while (!rest.empty()) {
    const size_t open = std::min(rest.find('['), rest.size());
    if (names.front().size() + open > kLongestName)
      return absl::InvalidArgumentError(absl::StrCat("node list: '", part, "' has too long a name"));
    for (std::string& name : names) name += rest.substr(0, open);
    if (open == rest.size()) break;
    const size_t close = rest.find(']', open);
    Names numbers;
    for (const std::string& range :
         std::vector<std::string>(absl::StrSplit(rest.substr(open + 1, close - open - 1), ',')))
      SIDING_RETURN_IF_ERROR(AddRange(range, numbers));
    if (names.size() * numbers.size() > kMostNames)
      return absl::InvalidArgumentError(absl::StrCat("node list: '", part, "' is too long"));
    Names longer;
    longer.reserve(names.size() * numbers.size());
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    rest = rest.substr(close + 1);
  }
  if (names.front().empty()) return absl::InvalidArgumentError("node list: a name is empty");
  return names;
}

}  // namespace

absl::StatusOr<std::vector<NodeId>> ExpandHostlist(const std::string& text) {
  std::vector<NodeId> nodes;
  if (text.empty() || text == "(null)") return nodes;
  SIDING_ASSIGN_OR_RETURN(const Names parts, SplitList(text));
  for (const std::string& part : parts) {
    SIDING_ASSIGN_OR_RETURN(const Names names, ExpandOne(part));
    if (nodes.size() + names.size() > kMostNames)
      return absl::InvalidArgumentError(
          absl::StrCat("node list: there are more than ", kMostNames, " names"));
    for (const std::string& name : names) nodes.emplace_back(name);
  }
  return nodes;
}

std::string JoinHostlist(const std::vector<NodeId>& nodes) {
  std::string text;
  for (const NodeId& node : nodes) absl::StrAppend(&text, text.empty() ? "" : ",", node.value());
  return text;
}

}  // namespace siding::slurm

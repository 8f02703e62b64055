#include "page/server/changing_list.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siding::page {
namespace {

std::string NewName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

void AppendEach(const std::vector<const std::string*>& texts, std::string& json) {
  const char* before = "";
  for (const std::string* text : texts) absl::StrAppend(&json, std::exchange(before, ","), *text);
}

}  // namespace

ChangingList::ChangingList() : name_(NewName()) {}

std::string ChangingList::NameOf(int64_t number) const { return absl::StrCat(name_, "-", number); }

std::optional<int64_t> ChangingList::NumberOf(const std::string& version) const {
  int64_t number = 0;
  const std::string name = name_ + "-";
  if (!absl::StartsWith(version, name) || !absl::SimpleAtoi(version.substr(name.size()), &number))
    return std::nullopt;
  return number >= oldest_ && number <= number_ ? std::optional(number) : std::nullopt;
}

void ChangingList::Update(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });
  const int64_t next = number_ + 1;
  bool is_different = false;
  std::vector<Kept> kept;
  kept.reserve(entries.size());
  bytes_ = 0;
  auto before = kept_.begin();
  const auto pass = [&](auto is_gone) {
    for (; before != kept_.end() && is_gone(before->entry.id); ++before) {
      gone_.push_back({before->entry.id, next});
      is_different = true;
    }
  };
  for (Entry& entry : entries) {
    pass([&](int64_t id) { return id < entry.id; });
    bytes_ += entry.json.size();
    const bool was_there = before != kept_.end() && before->entry.id == entry.id;
    if (was_there && before->entry.json == entry.json) {
      kept.push_back(std::move(*before));
    } else {
      kept.push_back({std::move(entry), next});
      is_different = true;
    }
    if (was_there) ++before;
  }
  pass([](int64_t) { return true; });
  kept_ = std::move(kept);
  if (is_different) version_ = NameOf(number_ = next);
  for (; gone_.size() > kMostGone; gone_.pop_front()) oldest_ = gone_.front().when;
}

std::string ChangingList::Text(bool whole, int64_t since) const {
  std::vector<const std::string*> changed;
  for (const Kept& kept : kept_) {
    if (whole || kept.changed > since) changed.push_back(&kept.entry.json);
  }
  std::string json =
      absl::StrCat("{\"version\":\"", version_, "\",\"whole\":", whole ? "true" : "false", ",\"jobs\":[");
  json.reserve(json.size() + (whole ? bytes_ + kept_.size() : 0) + 16);
  AppendEach(changed, json);
  json += "],\"gone\":[";
  const char* before = "\"";
  for (const Gone& each : gone_) {
    if (!whole && each.when > since) absl::StrAppend(&json, std::exchange(before, ",\""), each.id, "\"");
  }
  json += "]}";
  return json;
}

std::string ChangingList::Whole() const { return Text(true, 0); }

std::optional<std::string> ChangingList::Changes(const std::string& since) const {
  const std::optional<int64_t> number = NumberOf(since);
  if (!number) return std::nullopt;
  size_t changed = 0;
  for (const Kept& kept : kept_) changed += kept.changed > *number ? kept.entry.json.size() : 0;
  if (2 * changed > bytes_) return std::nullopt;
  return Text(false, *number);
}

}  // namespace siding::page

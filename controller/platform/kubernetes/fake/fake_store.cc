#include "controller/platform/kubernetes/fake/fake_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace siding::kubernetes {

FakeStore::Value FakeStore::Find(const std::string& plural, const ObjectName& name) {
  const Objects& objects = objects_[plural];
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : found->second;
}

FakeStore::Value FakeStore::Put(const std::string& plural, const ObjectName& name, Json object) {
  Value& place = objects_[plural][name];
  Json& metadata = object["metadata"];
  metadata["name"] = name.name;
  if (!name.space.empty()) metadata["namespace"] = name.space;
  if (place != nullptr) {
    metadata["uid"] = (*place)["metadata"]["uid"];
  } else if (TextAt(metadata, {"uid"}).empty()) {
    metadata["uid"] = "uid-" + std::to_string(++uids_);
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  const Value before = std::exchange(place, std::make_shared<const Json>(std::move(object)));
  history_.push_back({version_, plural, name, before, place});
  return place;
}

void FakeStore::Remove(const std::string& plural, const ObjectName& name) {
  auto node = objects_[plural].extract(name);
  if (node.empty()) return;
  Json last = *node.mapped();
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_.push_back({version_, plural, name, std::make_shared<const Json>(std::move(last)), nullptr});
}

std::optional<FakeStore::Part> FakeStore::Since(int64_t version) const {
  if (version < oldest_) return std::nullopt;
  const auto from = std::upper_bound(history_.begin(), history_.end(), version,
                                     [](int64_t v, const Event& event) { return v < event.version; });
  return Part{from, history_.end()};
}

void FakeStore::Compact() {
  history_.clear();
  oldest_ = version_;
}

}  // namespace siding::kubernetes

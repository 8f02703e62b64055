// What the fake API server keeps: objects with versions, and the history from which watches are served. Time
// is not known here. Deterministic; not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

class FakeStore {
 public:
  using Value = std::shared_ptr<const Json>;
  using Objects = std::map<ObjectName, Value>;
  struct Event {
    int64_t version = 0;
    std::string plural;
    ObjectName name;
    Value before;  // null: added
    Value after;   // null: deleted; then `before` has the deletion's version
  };

  int64_t version() const { return version_; }
  const Objects& All(const std::string& plural) { return objects_[plural]; }
  // Null: there is none.
  Value Find(const std::string& plural, const ObjectName& name);
  // Adds or replaces. Sets namespace, name and the next version; a new one gets a uid unless it has one.
  Value Put(const std::string& plural, const ObjectName& name, Json object);
  void Remove(const std::string& plural, const ObjectName& name);

  // What happened after `version`, in order; nothing if that is no longer known. Until the next change.
  struct Part {
    std::deque<Event>::const_iterator from, to;
    auto begin() const { return from; }
    auto end() const { return to; }
  };
  std::optional<Part> Since(int64_t version) const;
  // Forgets all history, as etcd's compaction does.
  void Compact();

 private:
  int64_t version_ = 1;
  int64_t oldest_ = 1;  // watches may begin here or later
  int uids_ = 0;
  std::map<std::string, Objects> objects_;
  std::deque<Event> history_;
};

}  // namespace siding::kubernetes

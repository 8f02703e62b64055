// What is known of one resource, and what is to be asked next to know more: lists, then watches from where
// the list was taken, as long as that goes well. Pure: no thread, no clock, no connection.
//
// An object's changes come in their order, each once. What was deleted while no watch was there is found by
// comparing lists; an object that was replaced by another of its name is a deletion and an addition. A server
// is never asked in a busy loop, whatever it answers: each pause is in Step::not_before.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/backoff.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

// No `before`: it is new. No `after`: it is gone. Never neither.
struct ObjectChange {
  std::optional<Object> before;
  std::optional<Object> after;
};
using Objects = std::map<ObjectName, Object>;

struct InformerRules {
  int page = 500;                                  // objects of one answer
  Duration lasts = std::chrono::minutes(5);        // of a watch, before another is begun where it ended
  Duration least_apart = std::chrono::seconds(1);  // between the beginnings of watches
  Duration first = std::chrono::seconds(1);        // pauses after failures
  Duration most = std::chrono::seconds(30);
  uint64_t seed = 1;
};

class InformerState {
 public:
  explicit InformerState(InformerRules rules = {});

  struct Step {
    bool list = true;     // else: watch
    std::string token;    // of a list's next page
    int limit = 0;        // of a page; 0: none
    std::string version;  // of a watch: it begins after this
    Time not_before{};
  };
  Step Next() const;

  // What came of that step: a page, or a watch's beginning, its events, and its end.
  void OnPage(ListPage page);
  void OnListFailed(const absl::Status& error, Time now);
  void OnWatchBegun(Time now);
  void OnEvent(WatchEvent event);
  // OK: it was over. An error: the connection's, the server's (an ERROR event), or that a line was no event.
  void OnWatchEnded(const absl::Status& status, Time now);

  // As of one moment, until the next call above.
  const Objects& objects() const { return objects_; }
  // All objects were there once. Before that there are none here.
  bool synced() const { return synced_; }
  // What has changed since the last call.
  std::vector<ObjectChange> TakeChanges();
  // The last failure; OK again as soon as something is heard of the server. A watch that broke after it had
  // told something is no failure.
  const absl::Status& health() const { return health_; }

 private:
  struct Listing {
    Objects objects;
    std::string token;
    bool whole = false;  // without pages: a token has expired
  };
  void Adopt(Objects objects);
  void ListAgain();

  const InformerRules rules_;
  Backoff backoff_;
  std::optional<Listing> listing_;  // one is under way; none: watching
  Objects objects_;
  std::string version_;  // the watch goes on from here
  std::vector<ObjectChange> changes_;
  absl::Status health_;
  Time not_before_{};
  bool heard_ = false;  // this watch has told something
  bool synced_ = false;
};

}  // namespace siding::kubernetes

// A kind of siding's own that a server may have or not: it is watched as soon as it is there, since its
// definition may be installed later.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/watch/informer.h"

namespace siding::kubernetes {

// Not thread-safe.
class OptionalKind {
 public:
  struct Words {
    std::string name;  // "requests"
    std::string done;  // "served": what is done with them
  };
  struct Sources {
    std::function<void()> wake;  // what there is has changed; called on another thread
    // Something was done to this, or not. False: it has to be tried again.
    std::function<bool(const std::string& target, const std::string& action, const absl::Status&)> log;
  };
  // References must outlive it.
  OptionalKind(Transport& transport, Pacer& pacer, const Clock& clock, Resource resource, Words words,
               Sources sources);
  ~OptionalKind();

  // All objects of it; nothing: there is no such kind, or they are not known at the moment.
  std::optional<Objects> Look(ApiClient& client);

 private:
  class Listener;

  Transport& transport_;
  Pacer& pacer_;
  const Clock& clock_;
  const Resource resource_;
  const Words words_;
  const Sources sources_;
  std::optional<Time> looked_;  // for its definition, when last
  bool said_missing_ = false;
  std::unique_ptr<Listener> listener_;
  std::optional<Informer> informer_;  // last: ends first
};

}  // namespace siding::kubernetes

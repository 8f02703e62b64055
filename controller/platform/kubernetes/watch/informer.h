// Knows the objects of one resource at all times, by a thread of its own, and tells a listener of changes.
#pragma once

#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/client/pacer.h"
#include "controller/platform/kubernetes/client/transport.h"
#include "controller/platform/kubernetes/watch/informer_state.h"

namespace siding::kubernetes {

// Called on the informer's thread, one call at a time, and without a lock.
class InformerListener {
 public:
  virtual ~InformerListener() = default;
  virtual void OnChanges(const std::vector<ObjectChange>& changes) = 0;  // never of none
  // Once, after the first whole list and OnChanges() of what was in it.
  virtual void OnSynced() = 0;
  // The server cannot be watched (the error), or can again (OK). Not called while the code stays the same; at
  // first it is taken to be fine.
  virtual void OnHealth(const absl::Status& health) = 0;
};

// What an informer does, turn by turn, by whoever calls it. One call at a time, but for Snapshot().
class InformerTurns {
 public:
  // References must outlive it.
  InformerTurns(Transport& transport, Pacer& pacer, InformerListener& listener, Resource resource,
                Selection selection = {}, InformerRules rules = {});

  // The next turn is not to be taken earlier.
  Time NotBefore() const;
  // Asks for one page of a list, or watches until the watch ends, and tells the listener of what has changed.
  void Take(const std::stop_token& stop);
  Objects Snapshot() const;

 private:
  void List(ApiClient& client, const InformerState::Step& step);
  void Watch(ApiClient& client, const InformerState::Step& step);
  void Tell();

  Transport& transport_;
  Pacer& pacer_;
  InformerListener& listener_;
  const Resource resource_;
  const Selection selection_;
  const InformerRules rules_;
  mutable Mutex mutex_;
  InformerState state_ ABSL_GUARDED_BY(mutex_);
  // What the listener was told.
  struct Told {
    bool synced = false;
    absl::StatusCode health = absl::StatusCode::kOk;
  } told_;
};

// Works from construction to destruction, which ends a call that is under way, and waits for the listener.
class Informer {
 public:
  // As InformerTurns.
  Informer(Transport& transport, Pacer& pacer, InformerListener& listener, Resource resource,
           Selection selection = {}, InformerRules rules = {});
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // All objects as of one moment; it may be later than what the listener was told. Nothing before the first
  // list. Costs a copy of the names, not of the objects. Thread-safe.
  Objects Snapshot() const { return turns_.Snapshot(); }

 private:
  InformerTurns turns_;
  std::jthread thread_;
};

}  // namespace siding::kubernetes

// The way to a fake API server, with faults on demand. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/transport.h"
#include "controller/platform/kubernetes/fake/fake_api_server.h"

namespace siding::kubernetes {

struct Fault {
  enum class Kind : uint8_t {
    kAnswer,       // the server says `code` and `reason`, and does nothing
    kUnreachable,  // nothing is done
    kAnswerLost,   // it is done, and the connection breaks before the answer
    kSlow,         // it is done, and takes `takes`: kDeadlineExceeded if that is beyond the request's limit
    kCut,          // a watch breaks after `lines` lines
    kExpired,      // a watch ends with an ERROR event of code 410
    kTwice,        // each line of a watch comes twice
    kSilent,       // nothing comes for so long that a watch is given up
  };
  Kind kind = Kind::kUnreachable;
  std::string path;                  // of what it happens to: has this in its path
  std::optional<HttpMethod> method;  // nothing: whatever is done
  int times = 1;
  int code = 500;
  std::string reason;
  std::optional<Duration> retry_after;  // whole seconds
  Duration takes{0};
  int lines = 0;
};

class FakeTransport final : public Transport {
 public:
  enum class Watching : uint8_t {
    kWhatIsThere,  // a watch ends as soon as there is nothing more: for one thread, and simulations
    kOn,           // it lasts until a stop is requested, or EndWatches()
  };
  // Both must outlive it.
  FakeTransport(FakeApiServer& server, FakeClock& clock, Watching watching = Watching::kWhatIsThere)
      : server_(server), clock_(clock), watching_(watching) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                      std::stop_token stop) override;
  // The same one, for who wants to own its transport. This must outlive what is returned.
  std::unique_ptr<Transport> Borrow();

  // The first one that fits a request happens to it.
  void Add(Fault fault);
  // From now on this is answered with 403, as by a role that is too small.
  void Forbid(HttpMethod method, const std::string& plural);
  // Watches of this resource show nothing until they may again: what is seen of two resources need not be in
  // the order in which it happened.
  void Hold(const std::string& plural, bool held);
  // Changes the server under the lock, and wakes watches.
  void Do(const std::function<void(FakeApiServer&)>& change);
  // Watches that last end now, as if their time was over.
  void EndWatches();
  // "GET /api/v1/pods?limit=5", in order.
  std::vector<std::string> asked() const;
  // Returns when so much has been asked. False: it has not been.
  [[nodiscard]] bool AwaitAsked(size_t count) const;

 private:
  std::optional<Fault> TakeFault(const HttpRequest& request, bool stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What is said instead of asking the server; nothing: it is asked.
  std::optional<absl::StatusOr<HttpResponse>> Instead(const HttpRequest& request,
                                                      const std::optional<Fault>& fault) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Held(const HttpRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Note(const HttpRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  FakeApiServer& server_;  // by the lock
  FakeClock& clock_;
  const Watching watching_;
  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::list<Fault> faults_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<HttpMethod, std::string>> forbidden_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> held_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> asked_ ABSL_GUARDED_BY(mutex_);
  int ended_ ABSL_GUARDED_BY(mutex_) = 0;  // how often EndWatches() was called
};

}  // namespace siding::kubernetes

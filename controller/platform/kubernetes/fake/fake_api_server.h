// A Kubernetes API server for tests and simulations: a function of what it was asked so far, and of the time
// that it is given. It behaves as a real one (1.20 was looked at) in what siding relies on:
//   - versions, uids, pages of one moment whose tokens expire, history that is forgotten (410)
//   - preconditions of deletions, merge patches and JSON patches with tests; a uid in a patch that is
//     another's is 422, not 409
//   - eviction by budgets, which count ready pods, and say nothing about one that is not ready; 500 for a pod
//   of two budgets
//   - a Binding's uid is not looked at
//   - a pod on a node ends when its grace is over; one that is on none is gone at once
// Selectors are of the forms a=b and a, joined by commas. What else it is asked it refuses with 400 or 404.
// It knows no finalizers, no admission, no garbage collection. Not thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/client/transport.h"
#include "controller/platform/kubernetes/fake/fake_store.h"

namespace siding::kubernetes {

class FakeApiServer {
 public:
  struct Settings {
    std::string version = "v1.20.2";
    std::string eviction = "v1beta1";
    std::vector<Resource> resources = {Pods(),
                                       Nodes(),
                                       {"policy", "v1", "poddisruptionbudgets", true},
                                       {"coordination.k8s.io", "v1", "leases", true}};
    // Pods whose grace is over are gone. Otherwise somebody plays the kubelets, and deletes them with none.
    bool kubelets = true;
  };
  FakeApiServer() : FakeApiServer(Settings()) {}
  explicit FakeApiServer(Settings settings) : settings_(std::move(settings)) {}

  // Anything but a watch.
  HttpResponse Handle(const HttpRequest& request, Time now);

  // The part of a watch that is there by now.
  struct Watched {
    HttpResponse response;           // not 200: the watch is refused
    std::vector<std::string> lines;  // an ERROR event is the last one
    int64_t version = 0;             // go on from here
    bool ended = false;              // by an ERROR
  };
  // Events after `version`; 0: after the one in the request.
  Watched Watch(const HttpRequest& request, int64_t version);
  std::string Bookmark(const HttpRequest& request) const;

  // Pods whose grace is over by then are gone.
  void Advance(Time now);
  // When Advance() has something to do next; kLatestTime: nothing.
  Time NextEnd() const;
  // Everything that was told so far is forgotten: watches from then, and tokens of lists, have expired.
  void Compact();
  // For what others do: kubelet, users, other controllers.
  FakeStore& store() { return store_; }

 private:
  struct Target;
  absl::StatusOr<Target> TargetOf(const std::string& path) const;
  HttpResponse Discover(const std::string& path) const;
  // What is in a group's version. 404 if there is none of this path.
  HttpResponse DiscoverGroup(const std::string& path) const;
  HttpResponse List(const HttpRequest& request, const Target& target);
  HttpResponse Create(const HttpRequest& request, const Target& target);
  HttpResponse Patch(const HttpRequest& request, const Target& target);
  HttpResponse Replace(const HttpRequest& request, const Target& target);
  HttpResponse Delete(const Target& target, const Json& options, Time now);
  HttpResponse Evict(const HttpRequest& request, const Target& target, Time now);
  HttpResponse Bind(const HttpRequest& request, const Target& target);
  HttpResponse Store(const Target& target, const FakeStore::Value& before, Json after);

  const Settings settings_;
  FakeStore store_;
  std::map<ObjectName, Time> ends_;                  // of pods that are being deleted
  std::map<std::string, FakeStore::Objects> pages_;  // by token prefix: what the list was
};

}  // namespace siding::kubernetes

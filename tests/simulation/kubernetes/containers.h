// The containers of pods of siding's runtime class on all nodes of a simulated cluster: what the kubelet, the
// runtime and siding-runc do to make one (agent/pods/siding_runc.cc), and how far its program is.
//
// A container waits until the agent of its node says how it starts. An agent that dies meanwhile is not told
// what became of it. Who is told nothing in time asks again later, as a kubelet does.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tests/simulation/kubernetes/cluster.h"

namespace siding::simulation::pods {

// An agent, as siding-runc knows it.
class ContainerOwner {
 public:
  virtual ~ContainerOwner() = default;
  // Nothing: from its beginning. kUnavailable: it is not known yet how.
  virtual absl::StatusOr<std::optional<ImageName>> OnStarting(const std::string& uid,
                                                              const std::string& id) = 0;
  // Its first process, or kAborted: it was not made.
  virtual void OnMade(const std::string& uid, const std::string& id, const absl::StatusOr<int>& made) = 0;
};

struct Container {
  ObjectName pod;
  std::string uid, node;
  std::string id;             // of the try to make it
  int pid = 0;                // of the container; 0: it is not made
  bool exited = false;        // its processes are gone
  Duration work{0};           // that there is to do
  Duration done{0};           // by `since`
  std::optional<Time> since;  // it makes progress
  int lineage = 0;            // of all that go on from each other's images
  std::optional<ImageName> from;

  // Of who makes it.
  Time patience_ends;
  bool making = false, restore_failed = false, asks_later = false;
  int generation = 0;  // of what is to happen when its work is done
};

// Not thread-safe.
class Containers {
 public:
  explicit Containers(Lab& lab) : lab_(lab) {}

  // ---- The kubelet's. ----
  // One that is there already stays.
  void Begin(const ObjectName& pod, const std::string& uid, const std::string& node, Duration work);
  void End(const std::string& uid);
  void EndAllOn(const std::string& node);
  // Told by uid.
  std::function<void(const Container&)> on_made = [](const Container&) {};
  std::function<void(const Container&)> on_done = [](const Container&) {};
  std::function<void(const Container&)> on_killed = [](const Container&) {};

  // ---- An agent's. ----
  // Null: there is none any more.
  void Attach(const std::string& node, ContainerOwner* owner);
  // What it says may be something else now.
  void Ring(const std::string& node);
  // As the runtime knows it: while its processes are there.
  const Container* Running(const std::string& uid, const std::string& id) const;
  void Freeze(const std::string& uid);
  void Thaw(const std::string& uid);
  // Its frozen rest is ended, or all of it.
  void Kill(const std::string& uid);

  // ---- Who looks. ----
  const std::map<std::string, Container>& all() const { return all_; }
  const Container* Find(const std::string& uid) const;
  Duration Done(const Container& container) const;
  // It begins to make progress, or goes on.
  std::function<void(const Container&)> on_runs = [](const Container&) {};
  int LineageOf(const ImageName& image) const;
  void OnImage(const ImageName& image, int lineage) { lineages_[image] = lineage; }

 private:
  void Try(const std::string& uid);
  void Ask(const std::string& uid, const std::string& id);
  void Make(const std::string& uid, const std::string& id, const std::optional<ImageName>& image, int owner);
  void GiveUp(Container& container);
  void Run(Container& container);
  void Stop(Container& container);
  // The try is still under way.
  Container* Look(const std::string& uid, const std::string& id);

  struct Owner {
    ContainerOwner* it = nullptr;
    int life = 0;
  };
  Lab& lab_;
  std::map<std::string, Container> all_;  // by uid
  std::map<std::string, Owner> owners_;   // by node
  std::map<ImageName, int> lineages_;
  int made_ = 0, tries_ = 0;
};

}  // namespace siding::simulation::pods

// A simulated cluster's API server, and what others than siding ask of it. Whoever plays a part there
// (kubelets, the scheduler, controllers of jobs) hears of every change, and does its part in its own time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/fake/fake_api_server.h"
#include "tests/simulation/lab.h"

namespace siding::simulation::pods {

using kubernetes::FakeStore;
using kubernetes::HttpMethod;
using kubernetes::HttpRequest;
using kubernetes::HttpResponse;
using kubernetes::Json;
using kubernetes::ObjectName;

const kubernetes::Resource& Budgets();
const kubernetes::Resource& Jobs();
const kubernetes::Resource& StatefulSets();

// Whether two pods are the same one, and not only of one name.
std::string UidOf(const Json& object);
std::string NodeOf(const Json& pod);
bool IsDeleting(const Json& pod);
bool IsOver(const Json& pod);
bool Succeeded(const Json& pod);
// What its user asks of siding; "": nothing of this kind.
std::string Asked(const Json& pod, const std::string& what);
// Its containers are made by siding-runc.
bool IsOfRuntimeClass(const Json& pod);
// Thousandths of a CPU.
int64_t CpuOf(const Json& pod);

// Not thread-safe.
class Cluster {
 public:
  explicit Cluster(Lab& lab) : lab_(lab) {}

  HttpResponse Ask(const HttpRequest& request);
  // Null: there is none.
  FakeStore::Value Find(const std::string& plural, const ObjectName& name) {
    return server_.store().Find(plural, name);
  }
  const FakeStore::Objects& All(const std::string& plural) { return server_.store().All(plural); }
  kubernetes::FakeApiServer::Watched Watch(const HttpRequest& request) { return server_.Watch(request, 0); }
  std::string Bookmark(const HttpRequest& request) const { return server_.Bookmark(request); }

  // ---- As others ask it. ----
  bool Create(const kubernetes::Resource& resource, const std::string& space, const Json& object);
  // A merge patch. `uid`: of the object that is meant; "": whichever has this name.
  bool Patch(const kubernetes::Resource& resource, const ObjectName& name, const std::string& uid, Json patch,
             const std::string& subresource = "");
  // No `grace`: what the object says.
  bool Delete(const kubernetes::Resource& resource, const ObjectName& name, const std::string& uid,
              std::optional<int> grace = {});
  bool Bind(const ObjectName& pod, const std::string& node);
  // etcd forgets what was.
  void Compact();

  // After each change, in the order in which they were added.
  std::vector<std::function<void(const FakeStore::Event&)>> on_change;

 private:
  void Tell();

  Lab& lab_;
  kubernetes::FakeApiServer server_{
      {.resources = {kubernetes::Pods(), kubernetes::Nodes(), kubernetes::ConfigMaps(), kubernetes::Secrets(),
                     kubernetes::Events(), Budgets(), Jobs(), StatefulSets(), kubernetes::OnDemandRequests()},
       .kubelets = false}};
  int64_t told_ = 1;
  bool telling_ = false;
};

}  // namespace siding::simulation::pods

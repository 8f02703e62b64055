// Kubernetes as siding's controller sees it, for tests: one call of the client, its answer as JSON.
//
//   siding-test-kubernetes SERVER discover
//   siding-test-kubernetes SERVER get|create|delete|evict|bind|patch|list ...
//     get pods|nodes NAME
//     list pods|nodes LIMIT                 names, and the version
//     create pods JSON                      in the namespace `default`, as all of these
//     patch pods NAME JSON                  a merge patch
//     delete NAME UID                       a pod, at once
//     evict NAME UID VERSION                of group policy
//     bind NAME UID NODE
//   siding-test-kubernetes SERVER watch pods|nodes LIMIT SECONDS
//     until its standard input ends: a line for each thing that an informer tells,
//     {"added": "default/a"}, {"changed": ...}, {"deleted": ...}, {"synced": 3}, {"health": "NOT_FOUND: ..."}
//     (of the last: "OK" when all is well again). LIMIT: objects a page; SECONDS: how long a watch lasts.
//
// SERVER: a kubeconfig's path, or FOLDER,HOST,PORT of a service account.
// Errors: the code and the message on stderr, exit 1.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/mutex.h"
#include "common/signals.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/curl_transport.h"
#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/watch/informer.h"

namespace siding::kubernetes {
namespace {

using Words = std::vector<std::string>;

constexpr char kUsage[] = "see the head of tests/harness/kubernetes_client.cc";

absl::StatusOr<std::unique_ptr<Transport>> Connect(const std::string& server) {
  const Words account = absl::StrSplit(server, ',');
  SIDING_ASSIGN_OR_RETURN(
      const ServerSettings settings,
      account.size() == 3 ? FromServiceAccount(account[0], account[1], account[2]) : FromKubeconfig(server));
  return NewCurlTransport(settings);
}

absl::StatusOr<Resource> ResourceOf(const std::string& plural) {
  if (plural == "pods") return Pods();
  if (plural == "nodes") return Nodes();
  return absl::InvalidArgumentError(kUsage);
}

ObjectName In(const Resource& resource, const std::string& name) {
  return {resource.namespaced ? "default" : "", name};
}

void Print(const Json& value) { std::cout << WriteJson(value) << std::endl; }

absl::Status PrintObject(const absl::StatusOr<Object>& object) {
  if (object.ok()) Print(*object->json);
  return object.status();
}

class Teller final : public InformerListener {
 public:
  void OnChanges(const std::vector<ObjectChange>& changes) override {
    for (const ObjectChange& change : changes) {
      const char* what = !change.before ? "added" : !change.after ? "deleted" : "changed";
      known_ += (change.after ? 1 : 0) - (change.before ? 1 : 0);
      Print({{what, ToString((change.after ? change.after : change.before)->name)}});
    }
  }
  void OnSynced() override { Print({{"synced", known_}}); }
  void OnHealth(const absl::Status& health) override { Print({{"health", health.ToString()}}); }

 private:
  int known_ = 0;
};

absl::Status WatchUntilEnd(Transport& transport, const Words& words) {
  InformerRules rules;
  int seconds = 0;
  if (words.size() != 4 || !absl::SimpleAtoi(words[2], &rules.page) || !absl::SimpleAtoi(words[3], &seconds))
    return absl::InvalidArgumentError(kUsage);
  SIDING_ASSIGN_OR_RETURN(const Resource resource, ResourceOf(words[1]));
  rules.lasts = std::chrono::seconds(seconds);
  Teller teller;
  const Informer informer(transport, RealPacer(), teller, resource, {}, rules);
  for (std::string line; std::getline(std::cin, line);) {
  }
  return absl::OkStatus();
}

absl::Status PrintDiscovery(ApiClient& client) {
  SIDING_ASSIGN_OR_RETURN(const Discovery found, Discover(client));
  Print({{"server", found.server}, {"eviction", found.eviction}, {"groups", found.groups}});
  return absl::OkStatus();
}

absl::Status PrintList(ApiClient& client, const Words& words) {
  int limit = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[2], &limit)) return absl::InvalidArgumentError(kUsage);
  SIDING_ASSIGN_OR_RETURN(const Resource resource, ResourceOf(words[1]));
  SIDING_ASSIGN_OR_RETURN(const ListPage all, client.List(resource, {}, limit));
  Json names = Json::array();
  for (const Object& object : all.items) names.push_back(ToString(object.name));
  Print({{"names", names}, {"version", all.version}});
  return absl::OkStatus();
}

absl::Status Run(const Words& words) {
  if (words.size() < 2) return absl::InvalidArgumentError(kUsage);
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Transport> transport, Connect(words[0]));
  const Words rest(words.begin() + 1, words.end());
  const std::string& verb = rest[0];
  if (verb == "watch") return WatchUntilEnd(*transport, rest);
  ApiClient client(*transport, RealPacer());
  if (verb == "discover") return PrintDiscovery(client);
  if (verb == "list") return PrintList(client, rest);
  if (rest.size() < 3) return absl::InvalidArgumentError(kUsage);
  const ObjectName pod{"default", rest[1]};
  if (verb == "delete") return client.Delete(Pods(), pod, {.uid = rest[2]}, Duration(0));
  if (verb == "evict" && rest.size() == 4) return client.Evict(pod, {.uid = rest[2]}, {}, rest[3]);
  if (verb == "bind" && rest.size() == 4) return PrintObject(client.Bind(pod, rest[2], rest[3]));
  SIDING_ASSIGN_OR_RETURN(const Resource resource, ResourceOf(rest[1]));
  if (verb == "get") return PrintObject(client.Get(resource, In(resource, rest[2])));
  SIDING_ASSIGN_OR_RETURN(const Json body, ParseJson(rest.back()));
  if (verb == "create") return PrintObject(client.Create(resource, "default", body));
  if (verb == "patch" && rest.size() == 4) {
    return PrintObject(client.MergePatch(resource, In(resource, rest[2]), body));
  }
  return absl::InvalidArgumentError(kUsage);
}

}  // namespace
}  // namespace siding::kubernetes

int main(int argc, char** argv) {
  siding::BlockServiceSignals();
  const absl::Status status = siding::kubernetes::Run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::cerr << absl::StatusCodeToString(status.code()) << " " << status.message() << "\n";
  return 1;
}

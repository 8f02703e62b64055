// The calls of the Kubernetes API that siding needs, on any Transport.
//
// Objects are never written back whole: changes are patches, so that fields which this version does not know
// stay as they are. A call blocks, and ends at once when a stop is requested. What only looks is tried again
// after a pause while the server cannot be reached or is busy; a change is tried again only where the server
// said that it has not done it. After any other failure of a change its object must be read again: it may be
// done. Errors are those of errors.h and transport.h; they name the verb and the resource.
// Not thread-safe; clients on one transport may be used side by side.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/client/pacer.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

struct RetryRules {
  int attempts = 4;  // of one call, with the first
  Duration first = std::chrono::milliseconds(200);
  Duration most = std::chrono::seconds(5);
  uint64_t seed = 1;  // of the pauses
};

// Which objects of a resource.
struct Selection {
  std::string space;   // "": of all namespaces
  std::string labels;  // as kubectl's --selector
  std::string fields;  // as kubectl's --field-selector
};

// What must hold for a deletion or an eviction to be done; "" says nothing.
struct Preconditions {
  std::string uid;
  std::string version;
};

class ApiClient {
 public:
  // Transport and pacer must outlive it.
  ApiClient(Transport& transport, Pacer& pacer, std::stop_token stop = {}, RetryRules rules = {});

  absl::StatusOr<Object> Get(const Resource& resource, const ObjectName& name);
  // One page; `token` is ListPage::next of the one before, or "". kOutOfRange: the token has expired. No
  // limit, 0, means all at once.
  absl::StatusOr<ListPage> GetPage(const Resource& resource, const Selection& selection, int limit,
                                   const std::string& token);
  // All pages. Begins again, without pages, when a token expires meanwhile.
  absl::StatusOr<ListPage> List(const Resource& resource, const Selection& selection, int limit = 500);
  // Changes after `version`, until the server ends the watch after `lasts` (OK) or the reader wants no more.
  absl::Status Watch(const Resource& resource, const Selection& selection, const std::string& version,
                     Duration lasts, const LineReader& reader);

  // The name is in the object. Returns what the server made of it: fields that it does not know are gone.
  absl::StatusOr<Object> Create(const Resource& resource, const std::string& space, const Json& object);
  // With metadata.resourceVersion in the patch it is refused (kAborted) if the object has changed; with a uid
  // that is another's, by kInvalidArgument.
  absl::StatusOr<Object> MergePatch(const Resource& resource, const ObjectName& name, const Json& patch,
                                    absl::string_view subresource = "");
  // RFC 6902. If a `test` in it does not hold: kInvalidArgument.
  absl::StatusOr<Object> JsonPatch(const Resource& resource, const ObjectName& name, const Json& operations,
                                   absl::string_view subresource = "");
  // `object` must have the version that was read; kAborted if another came before. For leases.
  absl::StatusOr<Object> Replace(const Resource& resource, const ObjectName& name, const Json& object,
                                 absl::string_view subresource = "");
  // OK means accepted: it is gone when a watch says so. No `grace`: what the object says.
  absl::Status Delete(const Resource& resource, const ObjectName& name, const Preconditions& only,
                      std::optional<Duration> grace = {});
  // As Delete(), by the leave of disruption budgets: kFailedPrecondition says that one is in the way. The
  // server does not ask them about pods that are not ready. `version` is of policy: Discovery::eviction.
  absl::Status Evict(const ObjectName& pod, const Preconditions& only, std::optional<Duration> grace,
                     const std::string& version);
  // Whether Evict() would be OK now; nothing is done.
  absl::Status MayEvict(const ObjectName& pod, const Preconditions& only, const std::string& version);
  // Gives a pod its node, and returns the pod as it is then. Servers do not look at the uid of a binding, so
  // the pod is read again: kAborted if another pod has come in its place, or it is on another node. The same
  // binding again is OK, and so is one whose answer was lost.
  absl::StatusOr<Object> Bind(const ObjectName& pod, const std::string& uid, const std::string& node);

  // GET of any path, for discovery. `what` is named in errors.
  absl::StatusOr<Json> GetJson(const std::string& path, absl::string_view what);
  // POST to any path of something that is answered and not kept, such as a review of rights.
  absl::StatusOr<Json> PostJson(const std::string& path, const Json& body, absl::string_view what);

 private:
  absl::Status PostEviction(const ObjectName& pod, Json options, const std::string& version);
  // `stands`: the answer to it is the same however often it is asked.
  absl::StatusOr<HttpResponse> Ask(const HttpRequest& request, const std::string& what, bool stands);
  absl::StatusOr<Object> AskForObject(const HttpRequest& request, const std::string& what, bool stands);
  absl::StatusOr<Json> AskForJson(const HttpRequest& request, const std::string& what);
  absl::StatusOr<Object> Change(HttpMethod method, const Resource& resource, const ObjectName& name,
                                absl::string_view subresource, const char* content_type, const Json& body);

  Transport& transport_;
  Pacer& pacer_;
  const std::stop_token stop_;
  const RetryRules rules_;
};

}  // namespace siding::kubernetes

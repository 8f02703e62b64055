// Who reads the controller's page: by the certificate that the browser shows, or as a proxy says that he has
// found him to be, such as one with OpenID Connect. What he may is then the service's business, as for all
// other ways in.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/limited_log.h"
#include "common/mutex.h"
#include "common/units.h"
#include "controller/api/limits.h"
#include "controller/api/service.h"
#include "controller/identity/user.h"
#include "page/server/secret.h"
#include "page/server/sessions.h"

namespace siding::page {

// A proxy is believed that comes from its address and knows the secret: from the same address come others of
// its machine, on the loopback every user of it.
struct PageProxy {
  std::set<std::string> addresses;  // none: there is no proxy
  std::string user_header = "X-Forwarded-User";
  std::string secret;
  // What it says is good for orders as well. A certificate is, on the page as elsewhere; the proxy's word is
  // good nowhere else.
  bool orders = false;
};
constexpr char kProxySecretHeader[] = "Siding-Proxy-Secret";

// Whom the machine's accounts say that somebody is, for a moment: where they are a directory's that is slow,
// all readers wait for each question, for one thread asks them. Thread-safe.
class KnownUsers {
 public:
  static constexpr Duration kGoodFor = std::chrono::seconds(30);

  explicit KnownUsers(const Clock& clock) : clock_(clock) {}  // which must outlive it
  // `look_up` is called if it is not known. Errors are not kept.
  absl::StatusOr<UserIdentity> Of(const std::string& key,
                                  const std::function<absl::StatusOr<UserIdentity>()>& look_up);

 private:
  struct Known {
    UserIdentity user;
    Time until;
  };
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
};

struct PageReader {
  UserIdentity user;
  bool may_order = false;  // as far as the service lets this user
};
// Who says by this request that he reads; nothing: nobody, it is a stranger's. kUnauthenticated,
// kPermissionDenied: what it says is not to be believed, or he has no account here. `certificates`: they say
// who users are.
absl::StatusOr<std::optional<PageReader>> ReaderOf(const HttpRequest& request, const PageProxy& proxy,
                                                   bool certificates, KnownUsers& known);

// Thread-safe.
class ServiceSessions final : public Sessions {
 public:
  // `api` and `clock` must outlive it.
  ServiceSessions(ApiService& api, const ServiceLimits& limits, PageProxy proxy, bool certificates,
                  const Clock& clock)
      : api_(api),
        most_streams_(static_cast<size_t>(limits.waiting_calls_per_user)),
        proxy_(std::move(proxy)),
        certificates_(certificates),
        known_(clock) {}

  absl::StatusOr<std::optional<Session>> Of(const HttpRequest& request) override;

 private:
  ApiService& api_;
  const size_t most_streams_;
  const PageProxy proxy_;
  const bool certificates_;
  KnownUsers known_;
  // Of which the tokens are made: who reads sees his own, and it tells him nothing of others'.
  const std::string tokens_ = DrawSecret();
  LimitedLog refusals_;
};

}  // namespace siding::page

#include "page/server/service_sessions.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/tls/names.h"
#include "controller/identity/accounts.h"
#include "controller/identity/certificate_user.h"
#include "page/server/service_source.h"

namespace siding::page {
namespace {

// Whichever letters are small.
std::vector<std::string> AllOf(const HttpRequest& request, const std::string& header) {
  std::vector<std::string> values;
  for (const auto& [name, value] : request.headers) {
    if (absl::EqualsIgnoreCase(name, header)) values.push_back(value);
  }
  return values;
}

// As for a certificate; but who may name root is the certificate authority's to say, and no directory's.
absl::StatusOr<UserIdentity> UserNamed(const std::string& name) {
  SIDING_RETURN_IF_ERROR(CheckName(name));
  SIDING_ASSIGN_OR_RETURN(UserIdentity user, AccountOf(name));
  if (user.uid == 0) return absl::PermissionDeniedError("root is not known by a proxy's word");
  return user;
}

absl::StatusOr<UserIdentity> ProxiedUser(const HttpRequest& request, const PageProxy& proxy,
                                         const std::vector<std::string>& users,
                                         const std::vector<std::string>& secrets, KnownUsers& known) {
  const std::string believed = absl::StrCat(proxy.user_header, " is believed from the page's proxy alone: ");
  if (!proxy.addresses.contains(request.peer.address)) {
    return absl::PermissionDeniedError(
        absl::StrCat(believed, request.peer.address, " is none of its addresses (page_proxy.addresses)"));
  }
  if (secrets.size() != 1 || !SameSecret(secrets[0], proxy.secret)) {
    return absl::PermissionDeniedError(
        absl::StrCat(believed, kProxySecretHeader, " is not what page_proxy.secret has"));
  }
  if (users.size() != 1 || users[0].empty()) {
    return absl::UnauthenticatedError(absl::StrCat("the page's proxy names ",
                                                   users.size() > 1 ? "several users" : "no user",
                                                   "; expected one, in ", proxy.user_header));
  }
  const auto user = known.Of(absl::StrCat("proxy ", users[0]), [&] { return UserNamed(users[0]); });
  if (absl::IsInvalidArgument(user.status()))
    return absl::PermissionDeniedError(absl::StrCat(proxy.user_header, ": ", user.status().message()));
  return user;
}

}  // namespace

absl::StatusOr<UserIdentity> KnownUsers::Of(const std::string& key,
                                            const std::function<absl::StatusOr<UserIdentity>()>& look_up) {
  const Time now = clock_.Now();
  {
    MutexLock lock(mutex_);
    std::erase_if(known_, [&](const auto& known) { return now >= known.second.until; });
    if (const auto found = known_.find(key); found != known_.end()) return found->second.user;
  }
  auto user = look_up();
  if (!user.ok()) return user;
  MutexLock lock(mutex_);
  known_[key] = {*user, now + kGoodFor};
  return user;
}

absl::StatusOr<std::optional<PageReader>> ReaderOf(const HttpRequest& request, const PageProxy& proxy,
                                                   bool certificates, KnownUsers& known) {
  const bool from_proxy = proxy.addresses.contains(request.peer.address);
  if (!proxy.addresses.empty()) {
    const auto users = AllOf(request, proxy.user_header), secrets = AllOf(request, kProxySecretHeader);
    if (!users.empty() || !secrets.empty()) {
      SIDING_ASSIGN_OR_RETURN(UserIdentity user, ProxiedUser(request, proxy, users, secrets, known));
      return PageReader{std::move(user), proxy.orders};
    }
  }
  // The proxy's own says nothing of whom it has before it.
  if (!certificates || !request.peer.certificate || from_proxy) return std::nullopt;
  const std::vector<std::string>& uris = *request.peer.certificate;
  std::string key = "certificate";
  for (const std::string& uri : uris) absl::StrAppend(&key, " ", uri.size(), ":", uri);
  SIDING_ASSIGN_OR_RETURN(UserIdentity user, known.Of(key, [&] { return UserOfCertificate(uris); }));
  return PageReader{std::move(user), true};
}

absl::StatusOr<std::optional<Session>> ServiceSessions::Of(const HttpRequest& request) {
  auto reader = ReaderOf(request, proxy_, certificates_, known_);
  if (!reader.ok()) {
    refusals_.Warn(request.peer.address, absl::StrCat("page: a reader from ", request.peer.address,
                                                      " is refused: ", reader.status().message()));
    return reader.status();
  }
  if (!*reader) return std::nullopt;
  const bool may_order = (*reader)->may_order;
  UserIdentity& user = (*reader)->user;
  Session session{.of = absl::StrCat(user.uid, may_order ? " orders " : " reads ", user.user),
                  .most_streams = most_streams_};
  const auto service = std::make_shared<ServiceSource>(api_, std::move(user));
  session.source = service;
  if (!may_order) return session;
  session.orders = service;
  session.order_token = DeriveSecret(tokens_, absl::StrCat("orders of ", session.of));
  return session;
}

}  // namespace siding::page

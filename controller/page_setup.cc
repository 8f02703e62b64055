#include "controller/page_setup.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/logging.h"
#include "common/status.h"
#include "common/tls/certificates.h"

namespace siding {
namespace {

// As it stands in page_names: one of IPv6 in brackets.
bool IsIpAddress(const std::string& name) {
  in_addr address{};
  return absl::StartsWith(name, "[") || inet_pton(AF_INET, name.c_str(), &address) == 1;
}

bool HasTlsFiles(const TlsFiles& tls) {
  return !tls.ca.empty() && !tls.certificate.empty() && !tls.key.empty();
}

absl::StatusOr<page::PageProxy> ProxyOf(const PageProxyConfig& config) {
  if (config.addresses.empty()) return page::PageProxy();
  if (absl::EqualsIgnoreCase(config.user_header, page::kProxySecretHeader))
    return absl::InvalidArgumentError("page_proxy.user_header: expected another one than the secret's");
  SIDING_ASSIGN_OR_RETURN(std::string secret, ReadSecretWord("page_proxy.secret", config.secret));
  return page::PageProxy{config.addresses, config.user_header, std::move(secret), config.orders};
}

std::string WhoOrders(const ControllerConfig& config) {
  std::vector<std::string> who;
  if (PageHasTls(config) && config.identity == IdentityBy::kCertificate) who.emplace_back("by certificate");
  if (config.page_proxy.orders) who.emplace_back("by the proxy's word");
  return who.empty() ? "it is read only" : absl::StrCat("orders are taken ", absl::StrJoin(who, ", and "));
}

page::HttpOptions OptionsOf(const ControllerConfig& config) {
  page::HttpOptions options{.address = config.page,
                            .ask_for_certificates = config.identity == IdentityBy::kCertificate,
                            .names = config.page_names,
                            .connections = config.limits.page_connections,
                            .connections_per_host = config.limits.page_connections_per_host};
  if (PageHasTls(config)) options.tls = config.tls;
  return options;
}

}  // namespace

bool PageHasTls(const ControllerConfig& config) {
  return !config.page.empty() && !page::IsLoopback(config.page);
}

absl::Status CheckPage(const ControllerConfig& config) {
  if (config.page.empty()) {
    if (config.page_names.empty() && config.page_proxy.addresses.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("page_names or page_proxy is given, but page is not");
  }
  const TlsFiles& tls = config.tls;
  if (const std::string problem = page::ProblemOfAddress(config.page, HasTlsFiles(tls)); !problem.empty())
    return absl::InvalidArgumentError(absl::StrCat("page: ", problem));
  if (PageHasTls(config)) {
    if (config.page_names.empty()) {
      return absl::InvalidArgumentError(
          "page_names: expected the names by which browsers know the page, as it is not on the loopback "
          "alone");
    }
    if (const auto files = LoadTlsFiles(tls, Purpose::kServer, SystemClock().Now()); !files.ok())
      return Annotate(files.status(), "tls");
  } else if (config.listen.empty() && !(tls.ca.empty() && tls.certificate.empty() && tls.key.empty())) {
    return absl::InvalidArgumentError("tls is given, but listen is not, and the page is on the loopback");
  }
  return ProxyOf(config.page_proxy).status();
}

std::string PageForBrowsers(const ControllerConfig& config) {
  const std::string address = page::AddressForBrowsers(config.page);
  if (address.empty() || !PageHasTls(config) || config.page_names.empty()) return address;
  // A certificate rather has a name than an address.
  const auto named = std::find_if_not(config.page_names.begin(), config.page_names.end(), IsIpAddress);
  const std::string& name = named == config.page_names.end() ? *config.page_names.begin() : *named;
  return absl::StrCat("https://", name, address.substr(address.rfind(':')));
}

void StandbyPage::Show(page::ActiveController active) {
  // Both may have the same address, which is the active one's.
  const bool is_its = active.is_here && active.page == PageForBrowsers(config_);
  source_.SetActive(std::move(active));
  if (is_its) {
    server_.reset();
  } else if (server_ == nullptr && !config_.page.empty()) {
    Open();
  }
}

void StandbyPage::Open() {
  page::HttpOptions options = OptionsOf(config_);
  options.ask_for_certificates = false;
  auto server = page::PageServer::Start(options, source_, clock_);
  if (!server.ok()) {
    spdlog::warn("while this controller stands by it has no page: {}",
                 std::string(server.status().message()));
    return;
  }
  server_ = *std::move(server);
  spdlog::info("the page is served at {}, read only", server_->address());
}

ServedPage::ServedPage(const ControllerConfig& config, ApiService& api, page::PageProxy proxy,
                       const Clock& clock)
    : strangers_(api),
      sessions_(api, config.limits, std::move(proxy), config.identity == IdentityBy::kCertificate, clock) {}

absl::StatusOr<std::unique_ptr<ServedPage>> ServedPage::Serve(const ControllerConfig& config, ApiService& api,
                                                              const Clock& clock) {
  if (config.page.empty()) return nullptr;
  SIDING_ASSIGN_OR_RETURN(page::PageProxy proxy, ProxyOf(config.page_proxy));
  std::unique_ptr<ServedPage> served(new ServedPage(config, api, std::move(proxy), clock));
  SIDING_ASSIGN_OR_RETURN(served->server_, page::PageServer::Start(OptionsOf(config), served->sessions_,
                                                                   served->strangers_, clock));
  spdlog::info(
      "the page is served at {}{}; {}", served->server_->address(),
      config.page_names.empty() ? "" : absl::StrCat(", known as ", absl::StrJoin(config.page_names, ", ")),
      WhoOrders(config));
  return served;
}

absl::Status ActivePage::Start(bool has_taken_over) {
  auto page = open_();
  if (page.ok()) {
    page_ = *std::move(page);
    return absl::OkStatus();
  }
  if (!has_taken_over) return page.status();
  spdlog::warn("this controller acts without its page, and tries again to serve it: {}",
               std::string(page.status().message()));
  again_ = clock_.Now() + kBetweenTries;
  return absl::OkStatus();
}

void ActivePage::Look() {
  if (!again_ || clock_.Now() < *again_) return;
  auto page = open_();
  if (page.ok()) {
    page_ = *std::move(page);
    again_.reset();
  } else {
    again_ = clock_.Now() + kBetweenTries;
  }
}

}  // namespace siding

// The operators' page as the configuration has it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/units.h"
#include "controller/api/service.h"
#include "controller/config.h"
#include "page/server/page.h"
#include "page/server/service_sessions.h"
#include "page/server/service_source.h"
#include "page/server/standby_source.h"

namespace siding {

// What is wrong with it, once file and flags are one; the certificate and the proxy's secret are read, too.
absl::Status CheckPage(const ControllerConfig& config);
// It is served with TLS, and so the controller's certificate is in use.
bool PageHasTls(const ControllerConfig& config);

// What a browser is to be given for it: by a name of the page where it is on the network, else good on this
// machine alone. "": there is none, or it has any port, which is known only when it is open.
std::string PageForBrowsers(const ControllerConfig& config);
// The page of a controller that stands by, at the same address: it says which one is active, and nobody is
// asked who he is. `config` must outlive it.
class StandbyPage {
 public:
  explicit StandbyPage(const ControllerConfig& config) : config_(config) {}
  // Served from now on, if it can be; else that is in the log.
  void Show(page::ActiveController active);

 private:
  void Open();

  const ControllerConfig& config_;
  const SteadyClock clock_;
  page::StandbySource source_;
  std::unique_ptr<page::PageServer> server_;
};

// The page, and what it is served from. Everything passed in must outlive it.
class ServedPage {
 public:
  // nullptr if none is wanted.
  static absl::StatusOr<std::unique_ptr<ServedPage>> Serve(const ControllerConfig& config, ApiService& api,
                                                           const Clock& clock);

 private:
  ServedPage(const ControllerConfig& config, ApiService& api, page::PageProxy proxy, const Clock& clock);

  page::ServiceSource strangers_;
  page::ServiceSessions sessions_;
  std::unique_ptr<page::PageServer> server_;
};

// The page of the active controller. Who has taken over acts also without it: another controller of this
// machine, with the same address for its page, may not have ended yet, or its certificate cannot be read.
class ActivePage {
 public:
  static constexpr Duration kBetweenTries = std::chrono::seconds(1);
  using Open = std::function<absl::StatusOr<std::unique_ptr<ServedPage>>()>;

  // `clock` must outlive it.
  ActivePage(Open open, const Clock& clock) : open_(std::move(open)), clock_(clock) {}
  // An error is the start's, or, `has_taken_over`, is warned of, and Look() tries again.
  absl::Status Start(bool has_taken_over);
  void Look();  // to be called again and again
  void Close() { page_.reset(); }

 private:
  const Open open_;
  const Clock& clock_;
  std::unique_ptr<ServedPage> page_;
  std::optional<Time> again_;  // when it is tried; nothing: it is served, or none is wanted
};

}  // namespace siding

// The operators' page as the configuration has it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "controller/api/service.h"
#include "controller/config.h"
#include "page/server/page.h"
#include "page/server/service_sessions.h"
#include "page/server/service_source.h"

namespace siding {

// What is wrong with it, once file and flags are one; the certificate and the proxy's secret are read, too.
absl::Status CheckPage(const ControllerConfig& config);
// It is served with TLS, and so the controller's certificate is in use.
bool PageHasTls(const ControllerConfig& config);

// What a browser is to be given for it: by a name of the page where it is on the network, else good on this
// machine alone. "": there is none, or it has any port, which is known only when it is open.
std::string PageForBrowsers(const ControllerConfig& config);
// The page of a controller that stands by: the same place, and nobody is asked who he is. Everything passed
// in must outlive it. nullptr if none is wanted.
absl::StatusOr<std::unique_ptr<page::PageServer>> ServeStandbyPage(const ControllerConfig& config,
                                                                   page::Source& source, const Clock& clock);

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

}  // namespace siding

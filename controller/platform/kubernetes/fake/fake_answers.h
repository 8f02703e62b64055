// The answers of the fake API server.
#pragma once

#include <string>
#include <vector>

#include "controller/platform/kubernetes/client/errors.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

// A Status object, as a server sends it.
Json FakeStatus(int code, const std::string& reason, const std::string& message,
                const std::vector<ErrorCause>& causes = {});
HttpResponse Refuse(int code, const std::string& reason, const std::string& message,
                    const std::vector<ErrorCause>& causes = {});
HttpResponse Answer(int code, const Json& body);

}  // namespace siding::kubernetes

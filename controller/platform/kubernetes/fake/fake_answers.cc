#include "controller/platform/kubernetes/fake/fake_answers.h"

#include <nlohmann/json.hpp>

namespace siding::kubernetes {

Json FakeStatus(int code, const std::string& reason, const std::string& message,
                const std::vector<ErrorCause>& causes) {
  Json status = {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                 {"message", message}, {"reason", reason},   {"code", code}};
  for (const ErrorCause& cause : causes) {
    status["details"]["causes"].push_back(
        {{"reason", cause.reason}, {"field", cause.field}, {"message", cause.message}});
  }
  return status;
}

HttpResponse Refuse(int code, const std::string& reason, const std::string& message,
                    const std::vector<ErrorCause>& causes) {
  return Answer(code, FakeStatus(code, reason, message, causes));
}

HttpResponse Answer(int code, const Json& body) { return {code, {}, WriteJson(body)}; }

}  // namespace siding::kubernetes

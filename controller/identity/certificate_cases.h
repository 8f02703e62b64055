// Who shows which certificate, and who he is by it: the same by every way in which one can be shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/tls/tls_fixture.h"

namespace siding {

struct CertificateCase {
  std::string what;
  TlsFiles files;
  std::optional<uint32_t> uid;  // whose calls are his; none: he is refused
  std::string refusal;          // words of it; "": in the handshake
};

class CertificateCases : public TlsTest {
 protected:
  std::vector<CertificateCase> Cases() const {
    const auto at = [this](const std::string& name, const absl::StatusOr<Issued>& issued) {
      return Keep(name, issued);
    };
    const auto long_ago = now_ - std::chrono::hours(48);
    const CertificateName root{Kind::kUser, "root"};
    return {
        {"a user", at("user", Issue(Kind::kUser, "daemon")), 1, ""},
        {"root", at("root", Issue(Kind::kUser, "root")), 0, ""},
        {"no account", at("none", Issue(Kind::kUser, "no-such-user")), {}, "no account on the controller's"},
        {"a node", at("node", Issue(Kind::kNode, "n1")), {}, "node n1 may not act as a user"},
        {"a node called root", at("node-root", Issue(Kind::kNode, "root")), {}, "node root may not act as a"},
        {"expired", at("expired", IssueFor(root, authority_, kHour, long_ago)), {}, ""},
        {"another authority's", at("other", IssueFor(root, other_authority_, kHour, now_)), {}, ""},
        {"a server's", at("server", IssueServer()), {}, ""},
    };
  }
};

}  // namespace siding

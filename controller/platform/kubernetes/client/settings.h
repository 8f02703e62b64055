// Where the API server is, whom to believe, and who we are: from a pod's service account or a kubeconfig
// file.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace siding::kubernetes {

// A file, or what would be in it. Both empty: nothing.
struct Secret {
  std::string path;
  std::string text;
  bool empty() const { return path.empty() && text.empty(); }
};

struct ServerSettings {
  std::string url;        // "https://10.0.0.1:6443", no "/" at its end
  std::string authority;  // certificates in PEM; "": those that the machine believes
  // A certificate and its key in PEM, or a token; a token's file is read again when it changes.
  std::string certificate;
  std::string key;
  Secret token;
  std::string space;  // the namespace that is meant where none is named
};

// As of a pod: `folder` has token, ca.crt and namespace; `host` and `port` are what the environment says
// (KUBERNETES_SERVICE_HOST and _PORT). Errors name the file, and never have any of its content.
inline constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";
absl::StatusOr<ServerSettings> FromServiceAccount(const std::string& folder, const std::string& host,
                                                  const std::string& port);

// The current context of a kubeconfig file. Files named in it are relative to its folder; all but the token's
// are read now. kInvalidArgument names the file, the field and what was expected. Refused are programs that
// make credentials (exec, auth-provider), passwords, and servers that nobody vouches for
// (insecure-skip-tls-verify): siding would have to hold, run or believe something that it cannot check.
absl::StatusOr<ServerSettings> FromKubeconfig(const std::string& path);
// The same of a text. `path` is for errors and for relative names.
absl::StatusOr<ServerSettings> ParseKubeconfig(const std::string& text, const std::string& path);

}  // namespace siding::kubernetes

#include "controller/platform/kubernetes/client/settings.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/small_file.h"

namespace siding::kubernetes {
namespace {

// An address that credentials may be sent to, and nothing behind the port.
bool IsServer(absl::string_view url) {
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "https://") || rest.empty()) return false;
  for (const char c : rest) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains(".-_:[]/", c)) return false;
  }
  return rest.front() != '/' && rest.front() != ':';
}

// Reads one kubeconfig. Its getters never throw.
class Kubeconfig {
 public:
  Kubeconfig(std::string path, const YAML::Node& root) : path_(std::move(path)), root_(root) {}

  absl::StatusOr<ServerSettings> Read() const {
    ServerSettings settings;
    SIDING_ASSIGN_OR_RETURN(const std::string current, Text(root_, "", "current-context"));
    if (current.empty()) return Bad("current-context", "the name of a context");
    SIDING_ASSIGN_OR_RETURN(const YAML::Node context, Named("contexts", "context", current));
    SIDING_ASSIGN_OR_RETURN(const std::string cluster, Text(context, "context.", "cluster"));
    SIDING_ASSIGN_OR_RETURN(const std::string user, Text(context, "context.", "user"));
    SIDING_ASSIGN_OR_RETURN(settings.space, Text(context, "context.", "namespace"));
    SIDING_ASSIGN_OR_RETURN(const YAML::Node server, Named("clusters", "cluster", cluster));
    SIDING_RETURN_IF_ERROR(ReadCluster(server, settings));
    SIDING_ASSIGN_OR_RETURN(const YAML::Node credentials, Named("users", "user", user));
    SIDING_RETURN_IF_ERROR(ReadUser(credentials, settings));
    return settings;
  }

 private:
  absl::Status ReadCluster(const YAML::Node& cluster, ServerSettings& settings) const {
    SIDING_ASSIGN_OR_RETURN(settings.url, Text(cluster, "cluster.", "server"));
    while (absl::EndsWith(settings.url, "/")) settings.url.pop_back();
    if (!IsServer(settings.url)) return Bad("cluster.server", "https://HOST:PORT");
    SIDING_ASSIGN_OR_RETURN(const std::string insecure,
                            Text(cluster, "cluster.", "insecure-skip-tls-verify"));
    if (!insecure.empty() && insecure != "false") {
      return Bad("cluster.insecure-skip-tls-verify", "false, and a certificate-authority");
    }
    for (const char* field : {"proxy-url", "tls-server-name"}) {
      if (cluster[field]) return Bad(absl::StrCat("cluster.", field), "nothing: it is not supported");
    }
    SIDING_ASSIGN_OR_RETURN(settings.authority, Pem(cluster, "cluster.", "certificate-authority"));
    return absl::OkStatus();
  }

  absl::Status ReadUser(const YAML::Node& user, ServerSettings& settings) const {
    for (const char* field : {"exec", "auth-provider", "username", "password", "as"}) {
      if (user[field]) {
        return Bad(absl::StrCat("user.", field), "nothing: a token or a client certificate is supported");
      }
    }
    SIDING_ASSIGN_OR_RETURN(settings.certificate, Pem(user, "user.", "client-certificate"));
    SIDING_ASSIGN_OR_RETURN(settings.key, Pem(user, "user.", "client-key"));
    if (settings.certificate.empty() != settings.key.empty()) {
      return Bad(settings.key.empty() ? "user.client-key" : "user.client-certificate",
                 "both a client-certificate and a client-key");
    }
    SIDING_ASSIGN_OR_RETURN(settings.token.text, Text(user, "user.", "token"));
    SIDING_ASSIGN_OR_RETURN(const std::string file, Text(user, "user.", "tokenFile"));
    if (!file.empty()) settings.token = {.path = Relative(file)};
    if (settings.token.empty() && settings.key.empty()) {
      return Bad("user", "a token, a tokenFile or a client-certificate");
    }
    return absl::OkStatus();
  }

  absl::Status Bad(const std::string& field, const std::string& expected) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", field, ": expected ", expected));
  }
  std::string Relative(const std::string& file) const {
    return (std::filesystem::path(path_).parent_path() / file).string();
  }

  // "" if it is not there.
  absl::StatusOr<std::string> Text(const YAML::Node& map, const std::string& where, const char* field) const {
    const YAML::Node value = map[field];
    if (!value || value.IsNull()) return "";
    if (!value.IsScalar()) return Bad(where + field, "a text");
    return value.Scalar();
  }

  // FIELD-data, or else the content of the file FIELD.
  absl::StatusOr<std::string> Pem(const YAML::Node& map, const std::string& where,
                                  const std::string& field) const {
    const std::string data_field = field + "-data";
    SIDING_ASSIGN_OR_RETURN(const std::string data, Text(map, where, data_field.c_str()));
    std::string pem;
    if (!data.empty()) {
      if (!absl::Base64Unescape(data, &pem) || !absl::StrContains(pem, "-----BEGIN ")) {
        return Bad(where + data_field, "PEM in base64");
      }
      return pem;
    }
    SIDING_ASSIGN_OR_RETURN(const std::string file, Text(map, where, field.c_str()));
    if (file.empty()) return "";
    absl::StatusOr<std::string> read = ReadSmallFile(Relative(file));
    if (!read.ok()) return Annotate(read.status(), absl::StrCat(path_, ": ", where, field));
    if (!absl::StrContains(*read, "-----BEGIN ")) return Bad(where + field, "a file in PEM");
    return read;
  }

  // The element of a list that has this name.
  absl::StatusOr<YAML::Node> Named(const char* list, const char* inside, const std::string& name) const {
    const YAML::Node all = root_[list];
    if (!all || !all.IsSequence()) return Bad(list, "a list");
    for (const YAML::Node& one : all) {
      if (!one.IsMap()) return Bad(list, "a list of maps with name and " + std::string(inside));
      SIDING_ASSIGN_OR_RETURN(const std::string its_name, Text(one, absl::StrCat(list, "[]."), "name"));
      if (its_name != name) continue;
      const YAML::Node found = one[inside];
      if (!found || !found.IsMap()) return Bad(absl::StrCat(list, "[].", inside), "a map");
      return found;
    }
    return Bad(list, absl::StrCat("one that is named \"", absl::CHexEscape(name.substr(0, 100)), "\""));
  }

  const std::string path_;
  const YAML::Node root_;
};

}  // namespace

absl::StatusOr<ServerSettings> FromServiceAccount(const std::string& folder, const std::string& host,
                                                  const std::string& port) {
  int number = 0;
  if (host.empty()) {
    return absl::InvalidArgumentError("KUBERNETES_SERVICE_HOST: expected an address: is this a pod?");
  }
  if (!absl::SimpleAtoi(port, &number) || number < 1 || number > 65535) {
    return absl::InvalidArgumentError("KUBERNETES_SERVICE_PORT: expected a port");
  }
  ServerSettings settings;
  const bool is_v6 = absl::StrContains(host, ':');
  settings.url = absl::StrCat("https://", is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", number);
  if (!IsServer(settings.url)) {
    return absl::InvalidArgumentError("KUBERNETES_SERVICE_HOST: expected an address");
  }
  SIDING_ASSIGN_OR_RETURN(settings.authority, ReadSmallFile(folder + "/ca.crt"));
  if (!absl::StrContains(settings.authority, "-----BEGIN ")) {
    return absl::InvalidArgumentError(folder + "/ca.crt: expected certificates in PEM");
  }
  settings.token.path = folder + "/token";
  SIDING_RETURN_IF_ERROR(ReadSmallFile(settings.token.path).status());
  SIDING_ASSIGN_OR_RETURN(std::string space, ReadSmallFile(folder + "/namespace"));
  settings.space = std::string(absl::StripAsciiWhitespace(space));
  return settings;
}

absl::StatusOr<ServerSettings> FromKubeconfig(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  return ParseKubeconfig(text, path);
}

absl::StatusOr<ServerSettings> ParseKubeconfig(const std::string& text, const std::string& path) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) return absl::InvalidArgumentError(path + ": expected a map, as kubectl writes it");
    return Kubeconfig(path, root).Read();
  } catch (const YAML::Exception& e) {
    // Its text may repeat what is in the file; the place does not.
    return absl::InvalidArgumentError(absl::StrCat(path, ":", e.mark.line + 1, ": expected YAML"));
  }
}

}  // namespace siding::kubernetes

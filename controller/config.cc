#include "controller/config.h"

#include <arpa/inet.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "common/tls/endpoint.h"
#include "common/yaml/fields.h"
#include "model/event.h"

namespace siding {

namespace {

constexpr int kMost = 1'000'000;

Fields LimitFields(ServiceLimits& limits) {
  return {{"connections", Whole(limits.connections, 1, kMost)},
          {"connections_per_user", Whole(limits.connections_per_user, 1, kMost)},
          {"remote_connections", Whole(limits.remote_connections, 1, kMost)},
          {"connections_per_host", Whole(limits.connections_per_host, 1, kMost)},
          {"waiting_calls", Whole(limits.waiting_calls, 1, kMost)},
          {"waiting_calls_per_user", Whole(limits.waiting_calls_per_user, 1, kMost)},
          {"arriving_calls", Whole(limits.arriving_calls, 1, kMost)},
          {"arriving_calls_per_user", Whole(limits.arriving_calls_per_user, 1, kMost)},
          {"calls", Whole(limits.calls, 1, kMost)},
          {"calls_per_user", Whole(limits.calls_per_user, 1, kMost)},
          {"planning_calls_per_user", Whole(limits.planning_calls_per_user, 1, kMost)},
          {"calls_per_connection", Whole(limits.calls_per_connection, 1, kMost)},
          {"page_connections", Whole(limits.page_connections, 1, kMost)},
          {"page_connections_per_host", Whole(limits.page_connections_per_host, 1, kMost)},
          {"threads", Whole(limits.threads, 2, kMost)}};
}

absl::StatusOr<std::string> ParseAddress(const std::string& text) {
  unsigned char address[sizeof(in6_addr)];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), address) == 1) return text;
  }
  return absl::InvalidArgumentError("expected an IP address, such as 127.0.0.1, or 0.0.0.0 for all of IPv4");
}
// Written as that HTTP server wants it before a port: an address of IPv6 in brackets.
absl::StatusOr<std::string> ParseMetricsAddress(const std::string& text) {
  SIDING_ASSIGN_OR_RETURN(std::string address, ParseAddress(text));
  return address.find(':') == std::string::npos ? address : absl::StrCat("[", address, "]");
}

absl::StatusOr<SlurmMode> ParseSlurmMode(const std::string& name) {
  if (name == "steering") return SlurmMode::kSteering;
  if (name == "assisting") return SlurmMode::kAssisting;
  return absl::InvalidArgumentError("expected steering or assisting");
}

template <class T>
Setter ParsedInto(T& out, absl::StatusOr<T> (*parse)(const std::string&)) {
  return Parsed([&out, parse](const std::string& text) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(out, parse(text));
    return absl::OkStatus();
  });
}

// As the page's server writes them.
absl::StatusOr<std::string> PlainAddress(const std::string& text) {
  unsigned char address[sizeof(in6_addr)];
  char plain[INET6_ADDRSTRLEN] = "";
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), address) == 1) return inet_ntop(family, address, plain, sizeof plain);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "'; expected IP addresses, such as 10.0.0.5"));
}

Setter EachInto(std::set<std::string>& out, absl::StatusOr<std::string> (*parse)(const std::string&)) {
  return NamesOf([&out, parse](const std::vector<std::string>& texts) -> absl::Status {
    out.clear();
    for (const std::string& text : texts) {
      SIDING_ASSIGN_OR_RETURN(std::string parsed, parse(text));
      out.insert(std::move(parsed));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> ParseHeaderName(const std::string& text) {
  const auto usual = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), usual)) return text;
  return absl::InvalidArgumentError(
      "expected the name of a header, of letters, digits and '-', such as X-Forwarded-User");
}

Fields PageProxyFields(PageProxyConfig& proxy) {
  return {{"addresses", EachInto(proxy.addresses, PlainAddress)},
          {"user_header", ParsedInto(proxy.user_header, ParseHeaderName)},
          {"secret", Text(proxy.secret)},
          {"orders", Flag(proxy.orders)}};
}

Fields SlurmFields(SlurmConfig& slurm) {
  return {{"mode", ParsedInto(slurm.mode, ParseSlurmMode)},
          {"backend", ParsedInto(slurm.backend, slurm::ParseBackend)},
          {"interval", Span(slurm.interval)},
          {"suspend", Flag(slurm.suspend)},
          {"ask_socket", Text(slurm.ask_socket)}};
}

Fields WebhookFields(WebhookConfig& webhook) {
  return {{"port", Whole(webhook.port, 0, 65535)},
          {"address", ParsedInto(webhook.address, ParseAddress)},
          {"certificate", Text(webhook.certificate)},
          {"key", Text(webhook.key)}};
}

absl::StatusOr<EventLogKind> ParseEventLog(const std::string& name) {
  if (name == "journald") return EventLogKind::kJournald;
  if (name == "syslog") return EventLogKind::kSyslog;
  return absl::InvalidArgumentError("expected journald or syslog");
}

Setter EventKinds(std::set<std::string>& out) {
  return NamesOf([&out](const std::vector<std::string>& names) -> absl::Status {
    const std::set<std::string> known = AllEventKinds();
    out = {names.begin(), names.end()};
    if (out.empty())
      return absl::InvalidArgumentError("expected one kind of events or more; of all, nothing is said");
    for (const std::string& name : out) {
      if (!known.contains(name))
        return absl::InvalidArgumentError(absl::StrCat("expected another kind of events than '", name,
                                                       "', one of ", absl::StrJoin(known, ", ")));
    }
    return absl::OkStatus();
  });
}

Fields ReceiverFields(ReceiverSettings& receiver) {
  return {{"name", Text(receiver.name)},
          {"url", Text(receiver.url)},
          {"secret", Text(receiver.secret)},
          {"ca", Text(receiver.authority)},
          {"log", ParsedInto(receiver.log, ParseEventLog)},
          {"kinds", EventKinds(receiver.kinds)}};
}

// "" if all is well.
std::string ProblemOf(const std::vector<ReceiverSettings>& receivers) {
  std::set<std::string> names;
  for (size_t i = 0; i < receivers.size(); ++i) {
    const std::string at = absl::StrCat("events_to[", i + 1, "]: ");
    if (const absl::Status good = Check(receivers[i]); !good.ok()) return absl::StrCat(at, good.message());
    if (!names.insert(receivers[i].name).second)
      return absl::StrCat(at, receivers[i].name, ": expected another name for each");
  }
  return "";
}

Setter HostFolders(std::vector<std::string>& out) {
  return NamesOf([&out](const std::vector<std::string>& paths) -> absl::Status {
    out.clear();
    for (const std::string& path : paths) {
      SIDING_ASSIGN_OR_RETURN(std::string plain, kubernetes::PlainHostPath(path));
      out.push_back(std::move(plain));
    }
    return absl::OkStatus();
  });
}

Fields HostPathFields(kubernetes::HostPaths& paths) {
  return {{"read_only", HostFolders(paths.read_only)}, {"read_write", HostFolders(paths.read_write)}};
}

Fields KubernetesFields(FieldReader& reader, KubernetesConfig& kubernetes) {
  return {{"mode", Parsed([&kubernetes](const std::string& text) {
             kubernetes.saves = text == "checkpointing";
             kubernetes.on = kubernetes.saves || text == "evicting";
             return kubernetes.on ? absl::OkStatus()
                                  : absl::InvalidArgumentError("expected evicting or checkpointing");
           })},
          {"kubeconfig", Text(kubernetes.kubeconfig)},
          {"namespace", Text(kubernetes.space)},
          {"leave_alone", Names(kubernetes.leave_alone)},
          {"host_paths", reader.Map(HostPathFields(kubernetes.host_paths))},
          {"webhook", reader.Map(WebhookFields(kubernetes.webhook))}};
}

Fields TlsFields(TlsFiles& tls) {
  return {{"ca", Text(tls.ca)},
          {"certificate", Text(tls.certificate)},
          {"key", Text(tls.key)},
          {"revoked", Text(tls.revoked)}};
}

// What no field says by itself; "" if all is well.
std::string ProblemOf(const ControllerConfig& config) {
  const ServiceLimits& limits = config.limits;
  if (config.heartbeat < std::chrono::milliseconds(100)) return "heartbeat: expected 100ms or more";
  if (config.kubernetes.on && config.slurm.mode != SlurmMode::kOff)
    return "kubernetes.mode: expected nothing beside slurm.mode: a cluster has one queue";
  const WebhookConfig& webhook = config.kubernetes.webhook;
  if (webhook.port != 0 && (webhook.certificate.empty() || webhook.key.empty()))
    return "kubernetes.webhook: expected certificate and key with port: the API server asks with TLS alone";
  const PageProxyConfig& proxy = config.page_proxy;
  if (proxy.addresses.empty() != proxy.secret.empty())
    return "page_proxy: expected addresses and secret together: by an address alone all of its machine are";
  if (proxy.orders && proxy.addresses.empty())
    return "page_proxy.orders: expected addresses and secret with it, of the proxy whose word is taken";
  if (const std::string problem = ProblemOf(config.events_to); !problem.empty()) return problem;
  if (limits.arriving_calls >= limits.threads) {
    return absl::StrCat("limits.arriving_calls: ", limits.arriving_calls,
                        "; expected fewer than limits.threads (", limits.threads, "), for each holds one");
  }
  if (limits.calls >= limits.threads) {
    return absl::StrCat("limits.calls: ", limits.calls, "; expected fewer than limits.threads (",
                        limits.threads, "), for each holds one");
  }
  if (limits.waiting_calls >= limits.threads) {
    return absl::StrCat("limits.waiting_calls: ", limits.waiting_calls,
                        "; expected fewer than limits.threads (", limits.threads, "), for each holds one");
  }
  if (limits.page_connections_per_host > limits.page_connections) {
    return absl::StrCat("limits.page_connections_per_host: ", limits.page_connections_per_host,
                        "; expected no more than limits.page_connections (", limits.page_connections, ")");
  }
  return "";
}

}  // namespace

absl::StatusOr<ControllerConfig> ParseControllerConfig(const std::string& text, const std::string& name) {
  ControllerConfig config;
  std::deque<ReceiverSettings> receivers;  // each stays where it is while it is read
  FieldReader reader(name);
  SIDING_RETURN_IF_ERROR(reader.Read(
      text, {{"socket", Text(config.socket)},
             {"state_dir", Text(config.state_dir)},
             {"shared_state", Flag(config.shared_state)},
             {"standby", Flag(config.standby)},
             {"policy", Text(config.policy)},
             {"heartbeat", Span(config.heartbeat)},
             {"metrics_port", Whole(config.metrics_port, 0, 65535)},
             {"metrics_address", ParsedInto(config.metrics_address, ParseMetricsAddress)},
             {"page", Text(config.page)},
             {"page_names", EachInto(config.page_names, ParsePageName)},
             {"page_proxy", reader.Map(PageProxyFields(config.page_proxy))},
             {"keep_ended", Span(config.retention.keep_ended)},
             {"keep_ended_jobs", Whole(config.retention.keep_ended_jobs, 0, kMost)},
             {"log_level", Text(config.log_level)},
             {"log_format", Text(config.log_format)},
             {"events_to", reader.MapList([&] { return ReceiverFields(receivers.emplace_back()); })},
             {"slurm", reader.Map(SlurmFields(config.slurm))},
             {"kubernetes", reader.Map(KubernetesFields(reader, config.kubernetes))},
             {"limits", reader.Map(LimitFields(config.limits))},
             {"listen", Text(config.listen)},
             {"tls", reader.Map(TlsFields(config.tls))},
             {"identity",
              Parsed([&config](const std::string& text) { return ParseIdentityBy(text, config.identity); })},
             {"munge_socket", Text(config.munge_socket)}}));
  config.events_to.assign(receivers.begin(), receivers.end());
  if (const std::string problem = ProblemOf(config); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", problem));
  }
  return config;
}

absl::StatusOr<ControllerConfig> LoadControllerConfig(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  return ParseControllerConfig(text, path);
}

absl::StatusOr<std::string> ParsePageName(const std::string& text) {
  std::string name = absl::AsciiStrToLower(text);
  const bool bracketed = name.size() > 2 && name.front() == '[' && name.back() == ']';
  const auto usual = [bracketed](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' ||
           (bracketed && (c == ':' || c == '[' || c == ']'));
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), usual)) return name;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "'; expected names of hosts without a port, such as siding.example.org, or [fd00::1]"));
}

absl::Status ParseIdentityBy(const std::string& text, IdentityBy& identity) {
  if (text != "certificate" && text != "munge") {
    return absl::InvalidArgumentError("expected certificate or munge");
  }
  identity = text == "munge" ? IdentityBy::kMunge : IdentityBy::kCertificate;
  return absl::OkStatus();
}

absl::Status CheckListening(const ControllerConfig& config) {
  const TlsFiles& tls = config.tls;
  const bool any = !tls.ca.empty() || !tls.certificate.empty() || !tls.key.empty() || !tls.revoked.empty();
  const bool all = !tls.ca.empty() && !tls.certificate.empty() && !tls.key.empty();
  if (config.listen.empty()) {
    return any && config.page.empty() ? absl::InvalidArgumentError("tls is given, but listen is not")
                                      : absl::OkStatus();
  }
  if (!ParseEndpoint(config.listen).remote) {
    return absl::InvalidArgumentError(
        absl::StrCat("listen: '", config.listen,
                     "'; expected ADDRESS:PORT, such as 0.0.0.0:7433, [::]:7433 or 10.0.0.1:7433"));
  }
  if (!all) {
    return absl::InvalidArgumentError(
        "listen: tls.ca, tls.certificate and tls.key are needed with it; nothing goes over a network without "
        "TLS");
  }
  return absl::OkStatus();
}

}  // namespace siding

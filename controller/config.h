// What sidingd is told: a YAML file, then flags over it. docs/admin/sidingd.md says what each field means.
// Every error names file, line and what was expected; an unknown key is an error.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tls/certificates.h"
#include "common/units.h"
#include "controller/api/limits.h"
#include "controller/engine/state/retention.h"
#include "controller/notify/settings.h"
#include "controller/platform/kubernetes/objects/host_paths.h"
#include "controller/platform/slurm/client/open.h"

namespace siding {

// Off: siding has the queue. Otherwise Slurm has it, and siding chooses the victims (steering), or saves what
// it can of those that Slurm chooses (assisting).
enum class SlurmMode : uint8_t { kOff, kSteering, kAssisting };

struct SlurmConfig {
  SlurmMode mode = SlurmMode::kOff;
  slurm::Backend backend = slurm::Backend::kAny;
  Duration interval = std::chrono::milliseconds(200);  // between two polls of it
  bool suspend = true;                                 // victims may be suspended, which frees their CPUs
  std::string ask_socket = "/run/siding/ask.sock";     // for the plugin's questions at submission
};

// Where the API server asks before it stores what users write (docs/admin/kubernetes.md).
struct WebhookConfig {
  std::string address = "0.0.0.0";  // as metrics_address
  int port = 0;                     // 0: nowhere
  std::string certificate;          // PEM files
  std::string key;
};

// Kubernetes has the queue.
struct KubernetesConfig {
  bool on = false;                                   // there is a mode
  bool saves = false;                                // checkpointing: by an agent on each node; else evicting
  std::string kubeconfig;                            // empty: as the pod that it runs in
  std::string space = "siding";                      // where it keeps its own objects
  std::set<std::string> leave_alone{"kube-system"};  // namespaces
  kubernetes::HostPaths host_paths;                  // of nodes, that are the same on each of them
  WebhookConfig webhook;
};

// How remote users say who they are. Agents always have certificates.
enum class IdentityBy { kCertificate, kMunge };

// Before the operators' page, who says by a header who its readers are (docs/admin/page.md).
struct PageProxyConfig {
  std::set<std::string> addresses;  // IP; none: there is no proxy
  std::string user_header = "X-Forwarded-User";
  std::string secret;   // file
  bool orders = false;  // readers that it names may also give orders
};

struct ControllerConfig {
  std::string socket = "/run/siding/siding.sock";
  std::string state_dir = "/var/lib/siding/controller";
  bool shared_state = false;  // state_dir is on storage that controllers on other hosts see
  bool standby = false;       // waits while another controller has the journal, instead of failing
  std::string policy;         // file; empty: the defaults of model/policy.h
  Duration heartbeat = std::chrono::seconds(5);
  int metrics_port = 0;                       // 0: none
  std::string metrics_address = "127.0.0.1";  // of an interface, or all: 0.0.0.0, ::
  std::string page;                           // "ADDRESS:PORT" for the operators' page; empty: none
  std::string log_level = "info";
  std::string log_format = "text";
  ServiceLimits limits;
  Retention retention;
  std::string listen;  // "ADDRESS:PORT" for remote agents and users; empty: none
  TlsFiles tls;        // all of them, if it listens, or has its page beyond the loopback
  IdentityBy identity = IdentityBy::kCertificate;
  std::string munge_socket;  // empty: where libmunge looks
  SlurmConfig slurm;
  KubernetesConfig kubernetes;       // not with slurm
  std::set<std::string> page_names;  // by which browsers know the page, in small letters
  PageProxyConfig page_proxy;
  std::vector<ReceiverSettings> events_to;
};

// Its journal's file.
inline std::string JournalOf(const ControllerConfig& config) { return config.state_dir + "/journal.db"; }

absl::StatusOr<ControllerConfig> LoadControllerConfig(const std::string& path);
// The same, from text; `name` stands for the file in errors.
absl::StatusOr<ControllerConfig> ParseControllerConfig(const std::string& text, const std::string& name);
// A name by which browsers know the page, in small letters: a host's, or an IP address, of IPv6 in brackets.
absl::StatusOr<std::string> ParsePageName(const std::string& text);
// "certificate" or "munge".
absl::Status ParseIdentityBy(const std::string& text, IdentityBy& identity);
// What of `listen` and `tls` does not go together, once file and flags are one.
absl::Status CheckListening(const ControllerConfig& config);

}  // namespace siding

// sidingctl's connection to the controller. Only its implementation knows gRPC.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tls/certificates.h"
#include "common/units.h"
#include "siding/v1/api.pb.h"

namespace siding::cli {

// Where the controller is and how to say who one is.
struct Connection {
  std::string controller;    // unix socket or HOST:PORT; with commas, of those that may be the active one
  TlsFiles tls;              // with HOST:PORT; with MUNGE as well, only `ca` is needed
  bool munge = false;        // with HOST:PORT: a MUNGE credential with each call
  std::string munge_socket;  // empty: where libmunge looks
};

// One call each; not thread-safe. kUnavailable, naming the controller, if none answers there. What is wrong
// with the connection's files is every call's error.
//
// Where there are several controllers, a call goes to the one that is active, and waits for up to half a
// minute for there to be one. A question, and a submission, are asked again if the controller went away
// before it answered: a submission carries a key, so that it is not made twice. For other calls that is
// kAborted: it is not known whether they were carried out.
class Client {
 public:
  explicit Client(const Connection& connection);
  ~Client();

  // Once a controller has answered: from now on calls outlast it when none does for a while, such as one that
  // is restarted. They wait for up to `absence`, and `away` is told once each time. kUnavailable: none
  // answers.
  absl::Status Outlast(Duration absence, std::function<void(const absl::Status&)> away);

  absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request);
  absl::StatusOr<v1::Plan> Plan(const v1::SubmitRequest& request);
  absl::StatusOr<v1::ExplainResponse> Explain(int64_t job, bool all_kept);
  absl::StatusOr<v1::ListJobsResponse> Jobs(const v1::ListJobsRequest& request);
  absl::StatusOr<v1::Job> Job(int64_t id);
  absl::StatusOr<v1::ListNodesResponse> Nodes();
  // Until the stream ends or `visit` returns false. Each event is seen once, also after a take-over.
  absl::Status Events(const v1::EventsRequest& request, const std::function<bool(const v1::Event&)>& visit);
  absl::StatusOr<v1::ListCheckpointsResponse> Checkpoints(int64_t job);
  absl::StatusOr<v1::TrendsResponse> Trends();
  absl::StatusOr<v1::VerifyResponse> Verify(const std::string& checkpoint);
  absl::Status Delete(const std::string& checkpoint);
  absl::StatusOr<v1::ActionPlan> PlanAction(const v1::ActionRequest& request);
  // `if_unchanged`, here and below: the sequence of a plan that the order rests on; 0: of none.
  absl::Status Suspend(int64_t job, int64_t if_unchanged = 0);
  absl::Status Resume(int64_t job);
  absl::StatusOr<std::string> Checkpoint(int64_t job, v1::Tier tier, int64_t if_unchanged = 0);
  absl::Status Vacate(int64_t job, v1::Tier tier, int64_t if_unchanged = 0);
  absl::Status Migrate(const v1::MigrateRequest& request);
  absl::Status Restart(const v1::RestartRequest& request);
  absl::Status Hold(int64_t job);
  absl::Status Release(int64_t job);
  absl::Status Update(const v1::UpdateRequest& request);
  absl::Status Kill(int64_t job, int64_t if_unchanged = 0);
  absl::Status Cordon(const std::string& node, bool cordon, int64_t if_unchanged = 0);
  absl::Status Lose(const std::string& node);
  absl::StatusOr<v1::SiteInfo> Site();
  // Of each controller, by its address, whether it answers: the active one, or one that stands by. Else why
  // not.
  std::map<std::string, absl::Status> LookAtEach();
  absl::StatusOr<v1::PolicyInForce> Policy();
  absl::StatusOr<v1::PolicyReloaded> ReloadPolicy();
  // Part after part, until the last or until `visit` returns false.
  absl::Status Backup(const std::function<bool(const v1::BackupPart&)>& visit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace siding::cli

// Users and operators at work: calls at fixed rates, whether or not the earlier ones have been answered.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/load_bench/latencies.h"
#include "bench/load_bench/tally.h"
#include "bench/simulated/fleet.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {

// Calls a second, of all users together.
struct CallRates {
  double submit = 20;
  double own_jobs = 5;  // a user's list
  double one_job = 10;
  double explain = 2;
  double nodes = 1;
  double all_jobs = 0.1;  // an operator's list of everybody's
  double plan = 0.2;      // a dry run
  double request = 0.1;   // a job with a deadline, which takes whole nodes
};

// Not thread-safe, but for numbers. Its end waits for the answers that are outstanding.
class Callers {
 public:
  Callers(const Fleet& fleet, Tally& tally, Latencies& latencies)
      : fleet_(fleet), tally_(tally), latencies_(latencies) {}
  ~Callers();

  // Root and `users` others, each with a connection.
  absl::Status Connect(const std::string& socket, int users);
  // Submits so many batch jobs as fast as they are taken; returns when they are, or when it is stopped.
  void Fill(int jobs, const std::atomic<bool>& stop);
  void Begin(const CallRates& rates, int slots_per_node, Time now);
  // Makes the calls that are due. About a hundred times a second.
  void CallWhatIsDue(Time now);

  // Seen in the lists of nodes: connected ones that the controller took for lost, and ones whose last
  // heartbeat was older than two intervals.
  int64_t taken_for_lost() const { return taken_for_lost_; }
  int64_t missed_heartbeats() const { return missed_; }

  static uint32_t UidOf(int user);  // 0: root

 private:
  struct Activity {
    Duration every;
    Time next;
    std::function<void()> act;
  };
  // `what`: under which its latency is kept; null: it is not.
  template <class Request, class Response, class Done>
  void Call(const char* what, int user,
            void (v1::Siding::StubInterface::async_interface::*method)(grpc::ClientContext*, const Request*,
                                                                       Response*,
                                                                       std::function<void(grpc::Status)>),
            Request request, Done done);
  void Submit();
  void ListOwn();
  void ShowOne();
  void Explain();
  void ListNodes();
  void ListAll();
  void Plan();
  void AskForNodes();
  void LookAtNodes(const v1::ListNodesResponse& nodes, Time asked);
  v1::JobSpec Batch();
  v1::JobSpec OnDemand(Time now);
  v1::SubmitRequest Keyed(v1::JobSpec spec);
  int AnyUser();

  const Fleet& fleet_;
  Tally& tally_;
  Latencies& latencies_;
  int slots_per_node_ = 0;
  std::vector<std::unique_ptr<v1::Siding::Stub>> stubs_;  // by user
  std::vector<Activity> activities_;
  std::mt19937 random_{7};
  int64_t keys_ = 0;                          // that were given to submissions
  std::vector<std::atomic<int64_t>> newest_;  // job of each user
  std::atomic<int64_t> newest_request_{0};
  std::atomic<int64_t> taken_for_lost_{0}, missed_{0};
  std::atomic<int> outstanding_{0};
};

}  // namespace siding

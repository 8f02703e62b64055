#include "bench/load_bench/callers.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>

#include "bench/load_bench/dial.h"
#include "common/clock.h"
#include "common/since.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr uint32_t kFirstUser = 20001;
constexpr int64_t kGiB = 1LL << 30;
constexpr int kFillAtOnce = 32;
constexpr auto kMoment = std::chrono::milliseconds(1);
// A heartbeat that is due has not arrived yet, and the next one has not either.
constexpr Duration kTwoHeartbeats = std::chrono::seconds(10);

using Rpc = v1::Siding::StubInterface::async_interface;

bool IsAnswer(const grpc::Status& status) {
  return status.ok() || status.error_code() == grpc::StatusCode::FAILED_PRECONDITION;
}

}  // namespace

uint32_t Callers::UidOf(int user) { return user == 0 ? 0 : kFirstUser + user; }

Callers::~Callers() {
  while (outstanding_ > 0) std::this_thread::sleep_for(kMoment);
}

absl::Status Callers::Connect(const std::string& socket, int users) {
  newest_ = std::vector<std::atomic<int64_t>>(users + 1);
  for (int user = 0; user <= users; ++user) {
    SIDING_ASSIGN_OR_RETURN(const auto channel, DialAs(UidOf(user), socket));
    stubs_.push_back(v1::Siding::NewStub(channel));
  }
  return absl::OkStatus();
}

template <class Request, class Response, class Done>
void Callers::Call(const char* what, int user,
                   void (Rpc::*method)(grpc::ClientContext*, const Request*, Response*,
                                       std::function<void(grpc::Status)>),
                   Request request, Done done) {
  struct Pending {
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  auto pending = std::make_shared<Pending>();
  pending->request = std::move(request);
  ++outstanding_;
  const auto began = std::chrono::steady_clock::now();
  (stubs_[user]->async()->*method)(&pending->context, &pending->request, &pending->response,
                                   [this, what, pending, began, done](const grpc::Status& status) {
                                     if (what != nullptr)
                                       latencies_.Add(what, Since(began), IsAnswer(status));
                                     done(status, pending->response);
                                     --outstanding_;
                                   });
}

int Callers::AnyUser() {
  return stubs_.size() == 1 ? 0 : 1 + static_cast<int>(random_() % (stubs_.size() - 1));
}

// One in ten is a gang of two.
v1::JobSpec Callers::Batch() {
  v1::JobSpec spec;
  spec.set_name("batch");
  spec.set_nodes(random_() % 10 == 0 ? 2 : 1);
  spec.mutable_per_node()->set_slots(1);
  spec.mutable_per_node()->set_memory(4 * kGiB);
  for (const char* word : {"/usr/bin/python3", "train.py", "--epochs", "90", "--data", "/data/set"})
    spec.add_command(word);
  (*spec.mutable_env())["OMP_NUM_THREADS"] = "1";
  (*spec.mutable_labels())["account"] = "physics";
  spec.set_workdir("/tmp");
  spec.set_output("/tmp/%j.%r.out");
  if (random_() % 2 == 0) spec.add_methods(v1::SUSPEND);
  spec.add_methods(v1::CHECKPOINT);
  spec.set_kill_grace_us(10'000'000);
  return spec;
}

// Some nodes, whole, within a minute, for half a minute. One in five wants them in a second, too soon
// for a victim that has to be dumped.
v1::JobSpec Callers::OnDemand(Time now) {
  v1::JobSpec spec = Batch();
  spec.set_name("express");
  spec.set_on_demand(true);
  spec.set_nodes(1 + static_cast<int>(random_() % 8));
  spec.mutable_per_node()->set_slots(slots_per_node_);
  spec.clear_methods();
  spec.set_hold_us(30'000'000);
  const bool hasty = random_() % 5 == 0;
  spec.set_start_by_us(ToMicros(now) + (hasty ? 1'000'000 : 60'000'000));
  return spec;
}

// As sidingctl does, so that it may ask again.
v1::SubmitRequest Callers::Keyed(v1::JobSpec spec) {
  v1::SubmitRequest request;
  *request.mutable_spec() = std::move(spec);
  request.set_request_key(std::to_string(++keys_));
  return request;
}

void Callers::Fill(int jobs, const std::atomic<bool>& stop) {
  for (int i = 0; i < jobs && !stop; ++i) {
    while (outstanding_ >= kFillAtOnce) std::this_thread::sleep_for(kMoment);
    v1::SubmitRequest request = Keyed(Batch());
    const int user = AnyUser();
    Call(nullptr, user, &Rpc::Submit, std::move(request),
         [this, user](const grpc::Status&, const v1::SubmitResponse& response) {
           newest_[user] = response.id();
         });
  }
  while (outstanding_ > 0) std::this_thread::sleep_for(kMoment);
}

void Callers::Begin(const CallRates& rates, int slots_per_node, Time now) {
  slots_per_node_ = slots_per_node;
  const auto at = [&](double per_second, void (Callers::*act)()) {
    if (per_second > 0)
      activities_.push_back({FromSeconds(1 / per_second), now, [this, act] { (this->*act)(); }});
  };
  at(rates.submit, &Callers::Submit);
  at(rates.own_jobs, &Callers::ListOwn);
  at(rates.one_job, &Callers::ShowOne);
  at(rates.explain, &Callers::Explain);
  at(rates.nodes, &Callers::ListNodes);
  at(rates.all_jobs, &Callers::ListAll);
  at(rates.plan, &Callers::Plan);
  at(rates.request, &Callers::AskForNodes);
}

void Callers::CallWhatIsDue(Time now) {
  for (Activity& activity : activities_) {
    for (; activity.next <= now; activity.next += activity.every) activity.act();
  }
}

void Callers::Submit() {
  v1::SubmitRequest request = Keyed(Batch());
  const int user = AnyUser();
  Call("submit", user, &Rpc::Submit, std::move(request),
       [this, user](const grpc::Status&, const v1::SubmitResponse& response) {
         if (response.id() != 0) newest_[user] = response.id();
       });
}

void Callers::ListOwn() {
  Call("jobs (one's own)", AnyUser(), &Rpc::ListJobs, v1::ListJobsRequest(),
       [](const grpc::Status&, const v1::ListJobsResponse&) {});
}

void Callers::ShowOne() {
  const int user = AnyUser();
  v1::ListJobsRequest request;
  request.add_ids(newest_[user]);
  Call("jobs ID", user, &Rpc::ListJobs, std::move(request),
       [](const grpc::Status&, const v1::ListJobsResponse&) {});
}

void Callers::Explain() {
  v1::ExplainRequest request;
  request.set_compare(true);  // as sidingctl does
  request.set_id(newest_request_ != 0 ? newest_request_.load() : newest_[AnyUser()].load());
  Call("explain", 0, &Rpc::Explain, std::move(request),
       [](const grpc::Status&, const v1::ExplainResponse&) {});
}

void Callers::ListNodes() {
  const Time asked = SystemClock().Now();
  Call("nodes", AnyUser(), &Rpc::ListNodes, v1::ListNodesRequest(),
       [this, asked](const grpc::Status& status, const v1::ListNodesResponse& response) {
         if (status.ok()) LookAtNodes(response, asked);
       });
}

void Callers::LookAtNodes(const v1::ListNodesResponse& nodes, Time asked) {
  for (const v1::Node& node : nodes.nodes()) {
    const auto since = fleet_.ConnectedSince(node.name());
    if (!since || *since >= asked) continue;  // its connection has just broken, or has just been made
    taken_for_lost_ += node.state() == "down";
    missed_ += node.state() == "up" && FromMicros(node.last_heard_us()) < asked - kTwoHeartbeats;
  }
}

void Callers::ListAll() {
  Call("jobs (everybody's)", 0, &Rpc::ListJobs, v1::ListJobsRequest(),
       [](const grpc::Status&, const v1::ListJobsResponse&) {});
}

void Callers::Plan() {
  v1::SubmitRequest request;
  *request.mutable_spec() = OnDemand(SystemClock().Now());
  Call("plan", AnyUser(), &Rpc::PlanRequest, std::move(request), [](const grpc::Status&, const v1::Plan&) {});
}

void Callers::AskForNodes() {
  v1::SubmitRequest request = Keyed(OnDemand(SystemClock().Now()));
  const Time start_by = FromMicros(request.spec().start_by_us());
  Call("submit with a deadline", 0, &Rpc::Submit, std::move(request),
       [this, start_by](const grpc::Status& status, const v1::SubmitResponse& response) {
         if (!status.ok()) {
           tally_.AddRefusal();
           return;
         }
         newest_request_ = response.id();
         tally_.AddRequest(response.id(), start_by);
       });
}

}  // namespace siding

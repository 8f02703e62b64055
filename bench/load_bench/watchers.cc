#include "bench/load_bench/watchers.h"

#include <grpcpp/grpcpp.h>

#include "bench/load_bench/dial.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/status.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {

class Watchers::Watcher final : public grpc::ClientReadReactor<v1::Event> {
 public:
  Watcher(Watchers& all, uint32_t uid, Tally* tally, const std::shared_ptr<grpc::Channel>& channel)
      : uid(uid), all_(all), tally_(tally), stub_(v1::Siding::NewStub(channel)) {
    request_.set_follow(true);
    stub_->async()->Events(&context_, &request_, this);
    StartCall();
    StartRead(&event_);
  }
  ~Watcher() override {
    MutexLock lock(mutex_);
    leaving_ = true;
    context_.TryCancel();
    over_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++all_.received_;
    if (tally_ != nullptr) tally_->AddEvent(event_);
    const Time at = FromMicros(event_.at_us());
    if (at >= began_) all_.latencies_.Add("event, until a watcher has it", SystemClock().Now() - at, true);
    StartRead(&event_);
  }
  void OnDone(const grpc::Status&) override {
    MutexLock lock(mutex_);
    if (!leaving_) ++all_.lost_;
    done_ = true;
    over_.NotifyAll();
  }

  const uint32_t uid;

 private:
  Watchers& all_;
  Tally* const tally_;
  const Time began_ = SystemClock().Now();
  const std::unique_ptr<v1::Siding::Stub> stub_;
  v1::EventsRequest request_;
  grpc::ClientContext context_;
  v1::Event event_;
  Mutex mutex_;
  CondVar over_;
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

Watchers::Watchers(std::string socket, Tally& tally, Latencies& latencies)
    : socket_(std::move(socket)), tally_(tally), latencies_(latencies) {}
Watchers::~Watchers() = default;

absl::Status Watchers::Put(std::unique_ptr<Watcher>& place, uint32_t uid, Tally* tally) {
  SIDING_ASSIGN_OR_RETURN(const auto channel, DialAs(uid, socket_));
  place = std::make_unique<Watcher>(*this, uid, tally, channel);
  return absl::OkStatus();
}

absl::Status Watchers::Add(uint32_t uid) {
  Tally* tally = watchers_.empty() ? &tally_ : nullptr;
  return Put(watchers_.emplace_back(), uid, tally);
}

absl::Status Watchers::ReplaceOne() {
  if (watchers_.size() < 2) return absl::OkStatus();
  next_replaced_ = next_replaced_ % (watchers_.size() - 1) + 1;
  std::unique_ptr<Watcher>& place = watchers_[next_replaced_];
  const uint32_t uid = place->uid;
  place = nullptr;
  return Put(place, uid, nullptr);
}

}  // namespace siding

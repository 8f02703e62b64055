#include "bench/load_bench/tally.h"

namespace siding {

void Tally::AddRequest(int64_t job, Time start_by) {
  MutexLock lock(mutex_);
  requests_[job] = start_by;
}

void Tally::AddRefusal() {
  MutexLock lock(mutex_);
  ++numbers_.refused;
}

void Tally::AddEvent(const v1::Event& event) {
  MutexLock lock(mutex_);
  const std::string& kind = event.kind();
  ++numbers_.events;
  numbers_.submitted += kind == "submitted";
  numbers_.ended += kind == "succeeded" || kind == "failed" || kind == "cancelled";
  numbers_.preemptions += kind == "order-dump" || kind == "order-suspend" || kind == "order-kill";
  numbers_.checkpoints += kind == "commit";
  if (kind != "started") return;
  const auto request = requests_.find(event.job());
  if (request == requests_.end()) return;
  ++(FromMicros(event.at_us()) <= request->second ? numbers_.met : numbers_.late);
  requests_.erase(request);
}

Tally::Numbers Tally::At(Time now) const {
  MutexLock lock(mutex_);
  Numbers numbers = numbers_;
  for (const auto& [job, start_by] : requests_) numbers.late += start_by < now;
  return numbers;
}

}  // namespace siding

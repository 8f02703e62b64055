#include "bench/simulated/fleet.h"

#include <numeric>

#include "common/clock.h"

namespace siding {
namespace {

constexpr auto kGrain = std::chrono::milliseconds(5);  // finer than anything that is simulated
// Between the first connections: agents beat at different moments.
constexpr Duration kApart = std::chrono::milliseconds(2);

}  // namespace

Fleet::Fleet(FleetOptions options) : options_(std::move(options)) {
  const Time now = SystemClock().Now();
  next_break_ = now + options_.agents * kApart;
  for (int i = 0; i < options_.agents; ++i) {
    SimulatedNodeOptions node = options_.node;
    node.name = "node" + std::to_string(i);
    agents_.push_back(std::make_unique<SimulatedAgent>(
        options_.socket, std::move(node), [this, agent = agents_.size()](Time at) { Appoint(agent, at); }));
    Appoint(agents_.size() - 1, now + i * kApart);
  }
  timekeeper_ = std::thread([this] { KeepTime(); });
}

Fleet::~Fleet() {
  stop_ = true;
  timekeeper_.join();
  agents_.clear();
}

void Fleet::Appoint(size_t agent, Time at) {
  MutexLock lock(mutex_);
  appointments_.push({at, agent});
}

std::vector<size_t> Fleet::TakeDue(Time now) {
  MutexLock lock(mutex_);
  std::vector<size_t> due;
  while (!appointments_.empty() && appointments_.top().at <= now) {
    due.push_back(appointments_.top().agent);
    appointments_.pop();
  }
  return due;
}

void Fleet::KeepTime() {
  while (!stop_) {
    const Time now = SystemClock().Now();
    for (size_t agent : TakeDue(now)) agents_[agent]->Advance(now);
    BreakSome(now);
    std::this_thread::sleep_for(kGrain);
  }
}

void Fleet::BreakSome(Time now) {
  if (options_.reconnects_per_second <= 0) return;
  for (; next_break_ <= now; next_break_ += FromSeconds(1 / options_.reconnects_per_second)) {
    agents_[random_() % agents_.size()]->Break();
    ++reconnections_;
  }
}

int Fleet::Welcomed() const {
  return std::accumulate(agents_.begin(), agents_.end(), 0,
                         [](int n, const auto& agent) { return n + agent->ConnectedSince().has_value(); });
}

int Fleet::Tasks() const {
  return std::accumulate(agents_.begin(), agents_.end(), 0,
                         [](int n, const auto& agent) { return n + agent->Tasks(); });
}

int64_t Fleet::heartbeats() const {
  return std::accumulate(agents_.begin(), agents_.end(), int64_t{0},
                         [](int64_t n, const auto& agent) { return n + agent->heartbeats(); });
}

std::optional<Time> Fleet::ConnectedSince(const std::string& node) const {
  constexpr size_t kPrefix = 4;  // "node"
  const size_t number = std::stoul(node.substr(kPrefix));
  return number < agents_.size() ? agents_[number]->ConnectedSince() : std::nullopt;
}

}  // namespace siding

#include "agent/node/detached_work.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "spdlog/spdlog.h"

namespace siding {
namespace {
constexpr auto kFarewell = std::chrono::seconds(1);
}

struct DetachedWork::State {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Steady::time_point> since;  // guarded by mutex
};

DetachedWork::DetachedWork() : state_(std::make_shared<State>()) {}
DetachedWork::~DetachedWork() {
  // One that has been under way for longer hangs.
  if (const auto begun = since()) Wait(*begun + kFarewell);
}

bool DetachedWork::Begin(std::function<void()> work) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->since) return false;
    state_->since = Steady::now();
  }
  const auto end = [](State& state) {
    std::lock_guard lock(state.mutex);
    state.since.reset();
    state.ended.notify_all();
  };
  try {
    std::thread([state = state_, work = std::move(work), end]() mutable {
      work();
      work = nullptr;  // what it owns is gone before the end is reported
      end(*state);
    }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("no thread to look with: {}", error.what());
    end(*state_);
    return false;
  }
  return true;
}

bool DetachedWork::Wait(Steady::time_point until) const {
  std::unique_lock lock(state_->mutex);
  return state_->ended.wait_until(lock, until, [this] { return !state_->since; });
}

std::optional<DetachedWork::Steady::time_point> DetachedWork::since() const {
  std::lock_guard lock(state_->mutex);
  return state_->since;
}

}  // namespace siding

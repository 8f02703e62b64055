#include "agent/node/leftovers.h"

#include <chrono>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "common/mutex.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr auto kFarewell = std::chrono::seconds(1);

using Queue = std::deque<std::function<void()>>;

}  // namespace

struct Leftovers::State {
  Mutex mutex;
  CondVar ended;
  std::map<uid_t, Queue> waiting ABSL_GUARDED_BY(mutex);  // of who is here, a thread is at work
};

Leftovers::Leftovers() : state_(std::make_shared<State>()) {}
Leftovers::~Leftovers() {
  MutexLock lock(state_->mutex);
  for (auto& [user, queue] : state_->waiting) queue.clear();
  state_->ended.WaitFor(state_->mutex, kFarewell, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    return state_->waiting.empty();
  });
}

void Leftovers::Add(uid_t user, std::function<void()> removal) {
  {
    MutexLock lock(state_->mutex);
    const auto [entry, is_new] = state_->waiting.try_emplace(user);
    entry->second.push_back(std::move(removal));
    if (!is_new) return;
  }
  try {
    std::thread([state = state_, user] {
      MutexLock lock(state->mutex);
      for (Queue& queue = state->waiting.at(user); !queue.empty();) {
        std::function<void()> next = std::move(queue.front());
        queue.pop_front();
        lock.Unlock();
        next();
        next = nullptr;
        lock.Lock();
      }
      state->waiting.erase(user);
      state->ended.NotifyAll();
    }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("no thread to remove what user {} has left: {}", user, error.what());
    MutexLock lock(state_->mutex);
    state_->waiting.erase(user);
  }
}

}  // namespace siding

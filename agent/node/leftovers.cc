#include "agent/node/leftovers.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr auto kFarewell = std::chrono::seconds(1);

using Queue = std::deque<std::function<void()>>;

}  // namespace

struct Leftovers::State {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<uid_t, Queue> waiting;  // guarded by mutex; of who is here, a thread is at work
};

Leftovers::Leftovers() : state_(std::make_shared<State>()) {}
Leftovers::~Leftovers() {
  std::unique_lock lock(state_->mutex);
  for (auto& [user, queue] : state_->waiting) queue.clear();
  state_->ended.wait_for(lock, kFarewell, [this] { return state_->waiting.empty(); });
}

void Leftovers::Add(uid_t user, std::function<void()> removal) {
  {
    std::lock_guard lock(state_->mutex);
    const auto [entry, is_new] = state_->waiting.try_emplace(user);
    entry->second.push_back(std::move(removal));
    if (!is_new) return;
  }
  try {
    std::thread([state = state_, user] {
      std::unique_lock lock(state->mutex);
      for (Queue& queue = state->waiting.at(user); !queue.empty();) {
        std::function<void()> next = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        next();
        next = nullptr;
        lock.lock();
      }
      state->waiting.erase(user);
      state->ended.notify_all();
    }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("no thread to remove what user {} has left: {}", user, error.what());
    std::lock_guard lock(state_->mutex);
    state_->waiting.erase(user);
  }
}

}  // namespace siding

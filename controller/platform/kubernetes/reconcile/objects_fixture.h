// What tests start from whose objects are kept round by round, and watched in between.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/platform/kubernetes/fake/fake_transport.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {

class ObjectsTest : public testing::Test {
 protected:
  explicit ObjectsTest(FakeApiServer::Settings settings) : server_(std::move(settings)) {}

  // What is tested wakes its rounds by this. Any thread.
  void Wake() {
    MutexLock lock(mutex_);
    ++woken_;
    changed_.NotifyAll();
  }
  // The next one follows when something has been seen.
  void RoundsUntil(const std::function<void()>& round, const std::function<bool()>& is_done) {
    for (int before = woken();; before = woken()) {
      round();
      if (is_done()) return;
      ASSERT_TRUE(AwaitWoken(before));
    }
  }
  // A name that has not been used. A watch tells in order: what was before it has been seen when it has.
  ObjectName Last() { return {"z", "last" + std::to_string(++count_)}; }
  void Put(const std::string& plural, const ObjectName& name, const Json& object) {
    transport_.Do([&](FakeApiServer& server) { server.store().Put(plural, name, object); });
  }
  void Remove(const std::string& plural, const ObjectName& name) {
    transport_.Do([&](FakeApiServer& server) { server.store().Remove(plural, name); });
  }
  // Changes by their method, but those of Last().
  int64_t CountAsked(const std::string& method) {
    const std::vector<std::string> asked = transport_.asked();
    return std::count_if(asked.begin(), asked.end(), [&](const std::string& call) {
      return absl::StartsWith(call, method + " ") && !absl::StrContains(call, "/namespaces/z/");
    });
  }

  FakeClock clock_;
  FakePacer pacer_{clock_};
  FakeApiServer server_;
  FakeTransport transport_{server_, clock_, FakeTransport::Watching::kOn};
  ApiClient client_{transport_, pacer_};
  std::vector<std::string> log_;

 private:
  int woken() {
    MutexLock lock(mutex_);
    return woken_;
  }
  bool AwaitWoken(int before) {
    MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, kPatience,
                            [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_ > before; });
  }

  int count_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int woken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace siding::kubernetes

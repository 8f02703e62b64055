// The API's service, for calls by ada.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/clock.h"
#include "controller/api/service.h"
#include "controller/engine/fake_cluster.h"
#include "gtest/gtest.h"

namespace siding {

class CallsTest : public testing::Test {
 protected:
  CallsTest() : folder_(mkdtemp(name_)) { EXPECT_TRUE(engine_.Start().ok()); }
  ~CallsTest() override { std::filesystem::remove_all(folder_); }

  char name_[32] = "/tmp/siding-calls-XXXXXX";
  const std::string folder_;
  const std::string path_ = folder_ + "/p.yaml";  // of the policy
  ApiCall call_{{1000, 1000, "ada"}};
  FakeClock clock_{FromMicros(1)};
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  Engine engine_{Policy{.operators = {"ada"}}, *journal_, *platform_, cluster_, clock_};
  PolicyWatcher policy_{path_, engine_, clock_};
  ApiService service_{engine_, policy_, {}};
};

}  // namespace siding

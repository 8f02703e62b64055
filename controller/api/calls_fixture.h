// The API's service over a server in this process, for calls by ada.
#pragma once

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "common/clock.h"
#include "controller/api/grpc_api.h"
#include "controller/api/service.h"
#include "controller/engine/fake_cluster.h"
#include "controller/identity/fake_identities.h"
#include "gtest/gtest.h"

namespace siding {

class CallsTest : public testing::Test {
 protected:
  CallsTest() : folder_(mkdtemp(name_)) {
    EXPECT_TRUE(engine_.Start().ok());
    grpc::ServerBuilder builder;
    builder.RegisterService(&grpc_api_);
    server_ = builder.BuildAndStart();
    stub_ = v1::Siding::NewStub(server_->InProcessChannel({}));
  }
  ~CallsTest() override {
    server_->Shutdown();
    std::filesystem::remove_all(folder_);
  }

  char name_[32] = "/tmp/siding-calls-XXXXXX";
  const std::string folder_;
  const std::string path_ = folder_ + "/p.yaml";  // of the policy
  FakeIdentities identities_;                     // ada
  FakeClock clock_{FromMicros(1)};
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  Engine engine_{Policy{.operators = {"ada"}}, *journal_, *platform_, cluster_, clock_};
  PolicyWatcher policy_{path_, engine_, clock_};
  ApiService service_{engine_, policy_, {}};
  GrpcApi grpc_api_{service_, identities_, {}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Siding::Stub> stub_;
};

}  // namespace siding

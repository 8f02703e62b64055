#include "cli/client.h"

#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {
namespace {

// A controller with a queue that is too long for gRPC's limit of 4 MiB for a message.
class LongQueue final : public v1::Siding::Service {
 public:
  static constexpr int kJobs = 100'000;
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    for (int i = 0; i < kJobs; ++i) response->add_jobs()->mutable_spec()->set_name(std::string(100, 'x'));
    return grpc::Status::OK;
  }
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() : folder_(mkdtemp(name_)), socket_(folder_ + "/socket") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&controller_);
    server_ = builder.BuildAndStart();
  }
  ~ClientTest() override {
    server_->Shutdown();
    std::filesystem::remove_all(folder_);
  }

  char name_[32] = "/tmp/siding-client-XXXXXX";
  const std::string folder_;
  const std::string socket_;
  LongQueue controller_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ClientTest, ALongQueueCanBeListed) {
  const auto jobs = Client({.controller = socket_}).Jobs({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->jobs_size(), LongQueue::kJobs);
}

}  // namespace
}  // namespace siding::cli

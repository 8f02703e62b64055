// LocalIdentities tells whose a call is by the number of its connection's descriptor. That holds only if no
// later connection can have the number while a call of the earlier one is not done.
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "controller/identity/local_identity.h"
#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {
namespace {

constexpr uint32_t kAda = 1000, kRoot = 0;

// Answers when it is told to, and not before its caller has gone.
class Slow final : public v1::Siding::Service {
 public:
  explicit Slow(const LocalIdentities& identities) : identities_(identities) {}
  grpc::Status Site(grpc::ServerContext* context, const v1::Empty*, v1::SiteInfo*) override {
    std::unique_lock lock(mutex_);
    here_ = true;
    changed_.notify_all();
    while (!context->IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(10));
    cancelled_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return may_end_; });
    whose_ = identities_.UserOf({*context, "Site"})->uid;
    return grpc::Status::OK;
  }
  void AwaitCall() { Await(here_); }
  void AwaitEndOfConnection() { Await(cancelled_); }
  void End() {
    std::lock_guard lock(mutex_);
    may_end_ = true;
    changed_.notify_all();
  }
  uint32_t whose() {
    std::lock_guard lock(mutex_);
    return whose_;
  }

 private:
  void Await(const bool& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return condition; });
  }

  const LocalIdentities& identities_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool here_ = false, cancelled_ = false, may_end_ = false;  // guarded by mutex_
  uint32_t whose_ = kRoot;                                   // guarded by mutex_
};

TEST(ConnectionLife, ANumberIsNotFreeBeforeTheLastCallOfItsConnectionIsDone) {
  LocalIdentities identities{ServiceLimits{}};
  Slow service(identities);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const int number = ends[0];
  const uint64_t inode = InodeOfDescriptor(number);
  identities.Add(number, {kAda, kAda});
  grpc::AddInsecureChannelFromFd(server.get(), number);

  grpc::ClientContext context;
  std::thread caller([&] {
    v1::SiteInfo answer;
    v1::Siding::NewStub(grpc::CreateInsecureChannelFromFd("the server", ends[1]))
        ->Site(&context, {}, &answer);
  });
  service.AwaitCall();
  ASSERT_EQ(shutdown(ends[1], SHUT_RDWR), 0);
  service.AwaitEndOfConnection();
  caller.join();
  // The connection has ended, and its call has not: a new connection gets another number.
  EXPECT_EQ(InodeOfDescriptor(number), inode);
  const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_NE(next, number);
  close(next);
  service.End();
  while (InodeOfDescriptor(number) == inode) std::this_thread::yield();
  EXPECT_EQ(service.whose(), kAda);
  server->Shutdown();
}

}  // namespace
}  // namespace siding

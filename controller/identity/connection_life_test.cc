// LocalIdentities tells whose a call is by the number of its connection's descriptor. That holds only if no
// later connection can have the number while a call of the earlier one is not done.
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/identity/local_identity.h"
#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {
namespace {

constexpr uint32_t kCaller = 1000, kNotAsked = 0;

// Answers when it is told to, and not before its caller has gone.
class Slow final : public v1::Siding::Service {
 public:
  explicit Slow(const LocalIdentities& identities) : identities_(identities) {}
  grpc::Status Site(grpc::ServerContext* context, const v1::Empty*, v1::SiteInfo*) override {
    MutexLock lock(mutex_);
    here_ = true;
    changed_.NotifyAll();
    lock.Unlock();
    EXPECT_TRUE(Eventually([&] { return context->IsCancelled(); })) << "the call to be cancelled";
    lock.Lock();
    cancelled_ = true;
    changed_.NotifyAll();
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return may_end_;
    })) << "the test to let the call end";
    whose_ = identities_.UserOf({*context, "Site"})->uid;
    return grpc::Status::OK;
  }
  void AwaitCall() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return here_;
    })) << "the call";
  }
  void AwaitEndOfConnection() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return cancelled_;
    })) << "the end of the connection";
  }
  void End() {
    MutexLock lock(mutex_);
    may_end_ = true;
    changed_.NotifyAll();
  }
  uint32_t whose() {
    MutexLock lock(mutex_);
    return whose_;
  }

 private:
  const LocalIdentities& identities_;
  Mutex mutex_;
  CondVar changed_;
  bool here_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool may_end_ ABSL_GUARDED_BY(mutex_) = false;
  uint32_t whose_ ABSL_GUARDED_BY(mutex_) = kNotAsked;
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
  identities.Add(number, {kCaller, kCaller});
  grpc::AddInsecureChannelFromFd(server.get(), number);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
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
  EXPECT_TRUE(Eventually([&] { return InodeOfDescriptor(number) != inode; })) << "the number to be free";
  EXPECT_EQ(service.whose(), kCaller);
  server->Shutdown(std::chrono::system_clock::now() + kPatience);
}

}  // namespace
}  // namespace siding

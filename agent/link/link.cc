#include "agent/link/link.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/link/fit.h"
#include "common/fault.h"
#include "common/logging.h"
#include "common/message_limits.h"
#include "common/proto/utf8_fields.h"
#include "siding/v1/agent.grpc.pb.h"

namespace siding {
namespace {

using Stream = grpc::ClientReaderWriterInterface<v1::FromAgent, v1::ToAgent>;

std::string FreshName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

// A connected stream: this object's thread reads commands, the link's thread writes.
class Link::Session {
 public:
  Session(const LinkTarget& controller, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments = controller.arguments;
    // Each session dials by itself: the back-off is ours.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(kMostToAgent);
    channel_ = grpc::CreateCustomChannel(controller.target, credentials, arguments);
    stub_ = v1::AgentGateway::NewStub(channel_);
  }
  ~Session() {
    context_.TryCancel();
    if (reader_.joinable()) reader_.join();
  }

  // Blocks while it dials; before everything else. Cancel() ends that as well, and may come before.
  void Open() { stream_ = stub_->Connect(&context_); }
  bool Write(v1::FromAgent message) {
    MakeUtf8(message);  // it may tell of users' files and processes
    if (!Fit(message)) {
      spdlog::error("a message of {} bytes is not sent: a controller takes {}", message.ByteSizeLong(),
                    kMostToController);
      // Without a hello nothing comes of this connection; of the rest most is told again.
      return !message.has_hello();
    }
    MakeUtf8(message);  // a character may have been cut through
    return stream_->Write(message);
  }
  bool Read(v1::ToAgent& command) { return stream_->Read(&command); }
  grpc::Status Finish() { return stream_->Finish(); }
  void Cancel() { context_.TryCancel(); }
  void StartReading(std::function<void()> read) { reader_ = std::thread(std::move(read)); }
  void JoinReader() {
    if (reader_.joinable()) reader_.join();
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  std::thread reader_;
};

Link::Link(LinkOptions options) : options_(std::move(options)), agent_(FreshName()) {}

Link::~Link() { Stop(); }

void Link::Start(TaskHost& host) {
  host_ = &host;
  thread_ = std::thread([this] { Run(); });
}

void Link::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (session_ != nullptr) session_->Cancel();
  }
  wake_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Link::Send(v1::FromAgent message) {
  {
    MutexLock lock(mutex_);
    if (session_ == nullptr) return;  // all reports are sent again on connection
    if (outgoing_.size() == options_.most_waiting) {
      session_->Cancel();
      return;
    }
    outgoing_.push_back(std::move(message));
  }
  wake_.NotifyAll();
}

void Link::Run() {
  // A controller that has left or refused us is the last to be dialled again.
  for (size_t turn = 0;; turn = (turn + 1) % options_.controllers.size()) {
    const Duration pause = options_.pause(Serve(options_.controllers[turn]));
    MutexLock lock(mutex_);
    if (wake_.WaitFor(mutex_, pause, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; }))
      return;
  }
}

bool Link::Serve(const LinkTarget& controller) {
  const auto credentials = controller.credentials();
  if (!credentials.ok()) {
    spdlog::warn("no connection to the controller: {}: {}", controller.target,
                 std::string(credentials.status().message()));
    return false;
  }
  Session session(controller, *credentials);
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    outgoing_.clear();
    broken_ = false;
    session_ = &session;  // from here on Stop() can cancel, and reports queue up behind the Hello
  }
  const auto leave = [&](const grpc::Status& status) {
    {
      MutexLock lock(mutex_);
      session_ = nullptr;
      outgoing_.clear();
      if (stopping_) return;
    }
    spdlog::info("no connection to the controller: {}: {}", controller.target, status.error_message());
  };

  session.Open();
  v1::FromAgent hello;
  *hello.mutable_hello() = host_->Describe();
  hello.mutable_hello()->set_agent(agent_);
  hello.mutable_hello()->set_connection(++connections_);
  v1::ToAgent welcome;
  const bool answered = session.Write(std::move(hello)) && session.Read(welcome);
  if (!answered || !welcome.has_welcome()) {
    // A stream that the controller has ended carries its reason; cancelling it first would hide that.
    if (answered) session.Cancel();
    leave(session.Finish());
    return false;
  }
  if (absl::Status accepted = options_.accept(welcome.welcome().epoch()); !accepted.ok()) {
    spdlog::warn("the controller at {} is refused: {}", controller.target, std::string(accepted.message()));
    session.Cancel();
    leave(session.Finish());
    return false;
  }
  FaultHere<"agent.welcomed: the controller has taken the agent's list of tasks">();
  host_->Execute(welcome);
  spdlog::info("connected to the controller at {}", controller.target);
  session.StartReading([&] {
    v1::ToAgent command;
    while (session.Read(command)) host_->Execute(command);
    {
      MutexLock lock(mutex_);
      broken_ = true;
    }
    wake_.NotifyAll();
  });

  const auto interval =
      std::chrono::microseconds(std::max<int64_t>(100000, welcome.welcome().heartbeat_interval_us()));
  auto next_heartbeat = std::chrono::steady_clock::now();
  bool good = true;
  while (good) {
    std::deque<v1::FromAgent> batch;
    {
      MutexLock lock(mutex_);
      wake_.WaitUntil(mutex_, next_heartbeat, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || broken_ || !outgoing_.empty();
      });
      if (stopping_ || broken_) break;
      batch.swap(outgoing_);
    }
    for (v1::FromAgent& message : batch) good = good && session.Write(std::move(message));
    if (good && std::chrono::steady_clock::now() >= next_heartbeat) {
      v1::FromAgent heartbeat;
      *heartbeat.mutable_heartbeat() = host_->Measure();
      good = session.Write(std::move(heartbeat));
      next_heartbeat = std::chrono::steady_clock::now() + interval;
    }
  }
  session.Cancel();
  session.JoinReader();  // Finish() may only be called when no thread reads
  leave(session.Finish());
  return true;
}

}  // namespace siding

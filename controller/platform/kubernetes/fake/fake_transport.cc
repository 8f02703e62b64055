#include "controller/platform/kubernetes/fake/fake_transport.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/patience_for_test.h"
#include "controller/platform/kubernetes/fake/fake_answers.h"

namespace siding::kubernetes {
namespace {

using Kind = Fault::Kind;

bool ForStreams(Kind kind) {
  return kind == Kind::kCut || kind == Kind::kExpired || kind == Kind::kTwice || kind == Kind::kSilent;
}
bool ForCalls(Kind kind) { return kind == Kind::kAnswerLost || kind == Kind::kSlow; }

HttpResponse Said(const Fault& fault) {
  HttpResponse response = Refuse(fault.code, fault.reason, "as the test wants it");
  if (fault.retry_after) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*fault.retry_after);
    response.headers["retry-after"] = std::to_string(seconds.count());
  }
  return response;
}

// "pods" of "/api/v1/namespaces/default/pods/a/eviction"
bool IsOf(const std::string& path, const std::string& plural) {
  return absl::EndsWith(path, "/" + plural) || absl::StrContains(path, "/" + plural + "/");
}

class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport& transport) : transport_(transport) {}
  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    return transport_.Send(request, std::move(stop));
  }
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                      std::stop_token stop) override {
    return transport_.Stream(request, reader, std::move(stop));
  }

 private:
  Transport& transport_;
};

}  // namespace

std::optional<Fault> FakeTransport::TakeFault(const HttpRequest& request, bool stream) {
  for (auto fault = faults_.begin(); fault != faults_.end(); ++fault) {
    if (!absl::StrContains(request.path, fault->path)) continue;
    if (fault->method && *fault->method != request.method) continue;
    if (stream ? ForCalls(fault->kind) : ForStreams(fault->kind)) continue;
    const Fault taken = *fault;
    if (--fault->times <= 0) faults_.erase(fault);
    return taken;
  }
  return std::nullopt;
}

std::optional<absl::StatusOr<HttpResponse>> FakeTransport::Instead(const HttpRequest& request,
                                                                   const std::optional<Fault>& fault) const {
  if (fault && fault->kind == Kind::kUnreachable) return absl::UnavailableError("connection refused");
  if (fault && fault->kind == Kind::kAnswer) return Said(*fault);
  for (const auto& [method, plural] : forbidden_) {
    if (method == request.method && IsOf(request.path, plural)) {
      return Refuse(403, "Forbidden",
                    absl::StrCat("User \"siding\" cannot ", ToString(method), " resource \"", plural, "\""));
    }
  }
  return std::nullopt;
}

bool FakeTransport::Held(const HttpRequest& request) const {
  for (const std::string& plural : held_) {
    if (IsOf(request.path, plural)) return true;
  }
  return false;
}

void FakeTransport::Note(const HttpRequest& request) {
  asked_.push_back(absl::StrCat(ToString(request.method), " ", TargetOf(request)));
  changed_.NotifyAll();
}

absl::StatusOr<HttpResponse> FakeTransport::Send(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  MutexLock lock(mutex_);
  Note(request);
  const std::optional<Fault> fault = TakeFault(request, false);
  if (const auto instead = Instead(request, fault)) return *instead;
  const HttpResponse response = server_.Handle(request, clock_.Now());
  changed_.NotifyAll();
  if (fault && fault->kind == Kind::kAnswerLost) return absl::UnavailableError("connection reset");
  if (fault && fault->kind == Kind::kSlow) {
    clock_.Advance(std::min(fault->takes, request.limit));
    if (fault->takes > request.limit) return absl::DeadlineExceededError("no answer in time");
  }
  return response;
}

absl::StatusOr<HttpResponse> FakeTransport::Stream(const HttpRequest& request, const LineReader& reader,
                                                   std::stop_token stop) {
  std::stop_callback waker(stop, [this] {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  MutexLock lock(mutex_);
  Note(request);
  const int ended = ended_;
  const std::optional<Fault> fault = TakeFault(request, true);
  const auto has = [&](Kind kind) { return fault && fault->kind == kind; };
  if (const auto instead = Instead(request, fault)) return *instead;
  if (has(Kind::kSilent)) {
    clock_.Advance(request.silence);
    return absl::DeadlineExceededError("the stream is silent");
  }
  int64_t version = 0;
  int sent = 0;
  for (;;) {
    server_.Advance(clock_.Now());
    FakeApiServer::Watched watched;
    watched.response.code = 200;
    if (has(Kind::kExpired)) {
      watched.ended = true;
      watched.lines = {WriteJson({{"type", "ERROR"}, {"object", FakeStatus(410, "Expired", "too old")}})};
    } else if (!Held(request)) {
      watched = server_.Watch(request, version);
      if (watched.response.code != 200) return watched.response;
      version = watched.version;
      const std::string bookmark = server_.Bookmark(request);
      if (!watched.ended && !bookmark.empty() && watching_ == Watching::kWhatIsThere) {
        watched.lines.push_back(bookmark);
      }
    }
    lock.Unlock();
    for (const std::string& line : watched.lines) {
      if (has(Kind::kCut) && sent++ == fault->lines) return absl::UnavailableError("connection reset");
      for (int times = has(Kind::kTwice) ? 2 : 1; times > 0; --times) {
        if (!reader(line)) return HttpResponse{200, {}, ""};
      }
    }
    if (has(Kind::kCut) && sent == fault->lines) return absl::UnavailableError("connection reset");
    if (stop.stop_requested()) return absl::CancelledError("stopped");
    if (watched.ended || watching_ == Watching::kWhatIsThere) return HttpResponse{200, {}, ""};
    lock.Lock();
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop.stop_requested() || ended != ended_ ||
             (!Held(request) && version < server_.store().version());
    });
    if (ended != ended_) return HttpResponse{200, {}, ""};
  }
}

std::unique_ptr<Transport> FakeTransport::Borrow() { return std::make_unique<Borrowed>(*this); }

void FakeTransport::Add(Fault fault) {
  MutexLock lock(mutex_);
  faults_.push_back(std::move(fault));
}
void FakeTransport::Forbid(HttpMethod method, const std::string& plural) {
  MutexLock lock(mutex_);
  forbidden_.emplace(method, plural);
}
void FakeTransport::Hold(const std::string& plural, bool held) {
  MutexLock lock(mutex_);
  if (held) {
    held_.insert(plural);
  } else {
    held_.erase(plural);
  }
  changed_.NotifyAll();
}
void FakeTransport::Do(const std::function<void(FakeApiServer&)>& change) {
  MutexLock lock(mutex_);
  change(server_);
  changed_.NotifyAll();
}
void FakeTransport::EndWatches() {
  MutexLock lock(mutex_);
  ++ended_;
  changed_.NotifyAll();
}
std::vector<std::string> FakeTransport::asked() const {
  MutexLock lock(mutex_);
  return asked_;
}
bool FakeTransport::AwaitAsked(size_t count) const {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, kPatience,
                          [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_.size() >= count; });
}

}  // namespace siding::kubernetes

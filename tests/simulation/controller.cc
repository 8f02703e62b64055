#include "tests/simulation/controller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/state_text.h"
#include "tests/simulation/message_text.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kTick = 100ms;
constexpr Duration kLook = 1s;  // the engine looks at everything so often

std::string FirstDifference(const std::string& a, const std::string& b) {
  size_t line = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    if (a[i] == '\n') line = i + 1;
  }
  const auto at = [&](const std::string& text) {
    return line < text.size() ? text.substr(line, text.find('\n', line) - line) : "nothing";
  };
  return absl::StrCat("\n  engine:  ", at(a), "\n  journal: ", at(b));
}

}  // namespace

Controller::Controller(Lab& lab, Network& network, Policy policy)
    : lab_(lab), network_(network), policy_(std::move(policy)), journal_(lab) {
  network_.Attach(*this);
  journal_.on_crash = [this] { doomed_ = true; };
  journal_.on_error = [this] {
    if (!std::exchange(damaged_, true)) Restart(lab_.random.Between(1s, 30s));
  };
}

Controller::~Controller() = default;

void Controller::Start() {
  doomed_ = damaged_ = false;
  engine_ = std::make_unique<Engine>(policy_, journal_, *platform_, *this, lab_.timeline.clock());
  engine_->SetSilence(silent_after_);
  const absl::Status status = engine_->Start();
  if (absl::IsUnavailable(status)) {  // its first event could not be written
    engine_.reset();
    return StartAfter(lab_.random.Between(1s, 20s));
  }
  if (!status.ok())
    return lab_.trace.Violate(absl::StrCat("the journal cannot be replayed: ", status.ToString()));
  lab_.trace("controller", "starts");
  CompareWithJournal();
  Tick();
}

void Controller::Restart(Duration after) {
  lab_.timeline.After(after, [this, life = life_] {
    if (life == life_) Crash();
  });
}

void Controller::Crash() {
  if (!engine_) return;
  lab_.trace("controller", "dies");
  Stop();
  StartAfter(lab_.random.Between(100ms, 20s));
}

void Controller::StopFor(Duration time, const std::function<void()>& meanwhile) {
  lab_.trace("controller", "is stopped");
  Stop();
  meanwhile();
  StartAfter(time);
}

void Controller::Stop() {
  CompareWithJournal();
  engine_.reset();
  ++life_;
  for (const auto& [node, stream] : std::exchange(serving_, {})) network_.CloseByController(stream);
  network_.CloseAllByController();
}

void Controller::StartAfter(Duration time) {
  lab_.timeline.After(time, [this, life = life_] {
    if (life == life_) Start();
  });
}

void Controller::CompareWithJournal() {
  if (!engine_ || damaged_) return;
  engine_->Read([&](const ClusterState& state) {
    const std::string live = StateText(state), kept = StateText(journal_.state());
    if (live != kept)
      lab_.trace.Violate("the engine's state is not what its journal says:" + FirstDifference(live, kept));
  });
}

void Controller::Inside(const std::function<void(Engine&)>& call) {
  if (!engine_) return;
  call(*engine_);
  if (doomed_) Crash();
}

bool Controller::Call(const std::function<void(Engine&)>& call) {
  if (!engine_ || damaged_) return false;
  Inside(call);
  return true;
}

void Controller::Tick() {
  const int life = life_;
  Inside([this](Engine& engine) {
    engine.Tick();
    if (lab_.timeline.Now() - looked_ < kLook) return;
    looked_ = lab_.timeline.Now();
    if (!engine.IsConsistent())
      lab_.trace.Violate("what is kept of jobs and nodes is not what would be computed now");
  });
  lab_.timeline.After(kTick, [this, life] {
    if (life == life_) Tick();
  });
}

void Controller::Send(const NodeId& node, v1::ToAgent command) {
  doomed_ |= lab_.random.Chance(lab_.odds.crash_amid_sends);
  if (doomed_) return;
  const auto stream = serving_.find(node);
  if (stream == serving_.end()) return;
  lab_.trace("controller", "to ", node.value(), ": ", Words(command));
  const v1::TaskRef& task = command.task();
  if (command.has_launch() || command.has_restore())
    on_start_order({JobId(task.job()), task.incarnation(), task.rank()});
  network_.SendDown(stream->second, std::move(command));
}

void Controller::OnMessage(const StreamPtr& stream, const v1::FromAgent& message) {
  if (!engine_) return;
  const auto serving = serving_.find(stream->node);
  if (!message.has_hello() && (serving == serving_.end() || serving->second != stream)) return;
  lab_.trace(stream->node.value(), "says: ", Words(message));
  if (message.has_hello() || message.has_heartbeat()) heard_[stream->node] = lab_.timeline.Now();
  if (message.has_hello()) return Greet(stream, message.hello());
  Inside([&](Engine& engine) { engine.OnMessage(stream->node, message); });
}

bool Controller::IsSilent(const NodeId& node) const {
  const auto heard = heard_.find(node);
  return heard == heard_.end() || lab_.timeline.Now() - heard->second > silent_after_ + 2 * kLook;
}

void Controller::Greet(const StreamPtr& stream, const v1::Hello& hello) {
  if (const auto earlier = serving_.find(stream->node); earlier != serving_.end()) {
    const StreamPtr other = earlier->second;
    if (other->agent != stream->agent || other->number >= stream->number)
      return network_.CloseByController(stream);
    Leave(other);
    network_.CloseByController(other);
    if (!engine_) return;
  }
  v1::ToAgent welcome;
  welcome.mutable_welcome()->set_heartbeat_interval_us(1);
  serving_[stream->node] = stream;
  network_.SendDown(stream, welcome, true);
  Inside([&](Engine& engine) {
    if (engine.OnConnected(stream->node, hello).ok()) return;
    serving_.erase(stream->node);
    network_.CloseByController(stream);
  });
}

void Controller::OnClosed(const StreamPtr& stream) {
  const auto serving = serving_.find(stream->node);
  if (serving != serving_.end() && serving->second == stream) Leave(stream);
}

void Controller::Leave(const StreamPtr& stream) {
  serving_.erase(stream->node);
  lab_.trace(stream->node.value(), "is not connected any more");
  Inside([&](Engine& engine) { engine.OnDisconnected(stream->node); });
}

}  // namespace siding::simulation

#include "tests/simulation/kubernetes/controller.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/state_text.h"
#include "controller/manager/outlook.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "tests/simulation/message_text.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

namespace {

constexpr Duration kTick = 200ms;
constexpr Duration kRound = 1s;

}  // namespace

class Controller::Fenced final : public Journal {
 public:
  Fenced(JournalDisk& disk, const bool& acts) : disk_(disk), acts_(acts) {}
  absl::Status Append(const std::vector<Event>& events) override {
    return acts_ ? disk_.Append(events) : absl::UnavailableError("another controller writes");
  }
  absl::Status Replay(const std::function<void(const Event&)>& visit) override { return disk_.Replay(visit); }
  absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const override {
    return disk_.Read(after, limit);
  }
  int64_t restored() const override { return disk_.restored(); }

 private:
  JournalDisk& disk_;
  const bool& acts_;
};

class Controller::Ear final : public kubernetes::InformerListener {
 public:
  using Changes = std::vector<kubernetes::ObjectChange>;
  Ear(Controller& controller, Changes kubernetes::Mail::*where, bool kubernetes::Mail::*healthy)
      : controller_(controller), where_(where), healthy_(healthy) {}
  void OnChanges(const Changes& changes) override {
    Changes& all = controller_.mail_.*where_;
    all.insert(all.end(), changes.begin(), changes.end());
    controller_.Ring();
  }
  void OnSynced() override {
    controller_.mail_.synced = ++controller_.synced_ == 2;
    controller_.Ring();
  }
  void OnHealth(const absl::Status& health) override {
    controller_.lab_.trace(controller_.options_.name, "watches: ", health.ToString());
    controller_.mail_.*healthy_ = health.ok();
    controller_.Ring();
  }

 private:
  Controller& controller_;
  Changes kubernetes::Mail::*const where_;
  bool kubernetes::Mail::*const healthy_;
};

class Controller::BudgetEar final : public kubernetes::InformerListener {
 public:
  explicit BudgetEar(Controller& controller) : controller_(controller) {}
  void OnChanges(const std::vector<kubernetes::ObjectChange>& changes) override {
    std::vector<kubernetes::ObjectChange>& all = controller_.mail_.budgets;
    all.insert(all.end(), changes.begin(), changes.end());
    controller_.Ring();
  }
  void OnSynced() override {}
  void OnHealth(const absl::Status&) override {}

 private:
  Controller& controller_;
};

class Controller::RequestEar final : public kubernetes::InformerListener {
 public:
  explicit RequestEar(Controller& controller) : controller_(controller) {}
  void OnChanges(const std::vector<kubernetes::ObjectChange>&) override { controller_.Ring(); }
  void OnSynced() override {
    synced_ = true;
    controller_.Ring();
  }
  void OnHealth(const absl::Status& health) override {
    healthy_ = health.ok();
    controller_.Ring();
  }
  bool knows_all() const { return synced_ && healthy_; }

 private:
  Controller& controller_;
  bool synced_ = false, healthy_ = true;
};

Controller::Controller(const Wire::Ends& ends, JournalDisk& journal, simulation::Network& streams,
                       ControllerOptions options)
    : lab_(ends.lab),
      ends_{ends.lab, ends.cluster, ends.audit, ends.network, ends.pacer, ends.who, &told_},
      options_(std::move(options)),
      disk_(journal),
      journal_(std::make_unique<Fenced>(journal, acts_)),
      transport_(kubernetes::NewGuardedTransport(
          std::make_unique<Wire>(ends_, false, [this] { Die(); }),
          [this] { return acts_ ? absl::OkStatus() : absl::FailedPreconditionError("another acts"); })),
      looking_(std::make_unique<Wire>(ends_, true, [this] { Die(); })),
      client_(*transport_, ends.pacer, stop_.get_token(), {.seed = lab_.random.Next()}),
      rounds_(kubernetes::NewRounds(
          lab_.timeline.clock(),
          {.round = kRound, .saves = options_.saves, .seal_keeper = options_.seal_keeper})),
      budget_ear_(std::make_unique<BudgetEar>(*this)),
      request_ear_(std::make_unique<RequestEar>(*this)),
      streams_(streams),
      agents_(kubernetes::NewPodSpeaker(options_.saves, *this, options_.heartbeat)) {
  const auto watch = [&](kubernetes::InformerListener& ear, const kubernetes::Resource& resource) {
    kubernetes::InformerRules rules;
    rules.page = options_.page;
    rules.least_apart = options_.least_apart;
    rules.seed = lab_.random.Next();
    informers_.push_back(std::make_unique<kubernetes::InformerTurns>(*looking_, ends_.pacer, ear, resource,
                                                                     kubernetes::Selection(), rules));
  };
  const auto add = [&](std::vector<kubernetes::ObjectChange> kubernetes::Mail::*where,
                       bool kubernetes::Mail::*healthy, const kubernetes::Resource& resource) {
    ears_.push_back(std::make_unique<Ear>(*this, where, healthy));
    watch(*ears_.back(), resource);
  };
  add(&kubernetes::Mail::nodes, &kubernetes::Mail::nodes_healthy, kubernetes::Nodes());
  add(&kubernetes::Mail::pods, &kubernetes::Mail::pods_healthy, kubernetes::Pods());
  watch(*budget_ear_, kubernetes::PodDisruptionBudgets("v1"));
  watch(*request_ear_, kubernetes::OnDemandRequests());
  const kubernetes::InformerTurns& of_requests = *informers_.back();
  requests_ = std::make_unique<kubernetes::Requests>(
      *transport_, ends_.pacer, lab_.timeline.clock(), std::set<std::string>(),
      kubernetes::Requests::Sources{
          [this](const ObjectName& pod) { return rounds_->StandingOf(pod); },
          [this](JobId job) { return OutlookOf(job); }, [this] { Ring(); },
          [this](const std::string& target, const std::string& action, const absl::Status& status) {
            return rounds_->Log(target, action, status);
          },
          [this, &of_requests]() -> std::optional<kubernetes::Objects> {
            if (!request_ear_->knows_all()) return std::nullopt;
            return of_requests.Snapshot();
          }});
}

Controller::~Controller() = default;

bool Controller::Start() {
  engine_ = std::make_unique<Engine>(options_.policy, *journal_, *this, *agents_, lab_.timeline.clock());
  engine_->SetSilence(5 * options_.heartbeat);
  agents_->SetEngine(*engine_);
  const absl::Status status = engine_->Start();
  if (!status.ok() && !absl::IsUnavailable(status))
    lab_.trace.Violate(absl::StrCat("the journal cannot be replayed: ", status.ToString()));
  if (!status.ok() || doomed_) {
    Die();
    return false;
  }
  lab_.trace(options_.name, "starts");
  CompareWithJournal();
  engine_->Read([&](const ClusterState& state) { narrated_ = state.last_seq; });
  agents_->SetBell([this] { Ring(); });
  streams_.Attach(*this);
  Tick();
  for (const auto& informer : informers_) Watch(*informer);
  After(1ms, [this] { Begin(); });
  return true;
}

void Controller::Die() {
  if (dead_) return;
  lab_.trace(options_.name, "dies");
  if (acts_) CompareWithJournal();
  dead_ = true;
  CloseStreams();
  life_.reset();
  stop_.request_stop();
}

void Controller::Depose() {
  CloseStreams();  // agents have met a later one
  acts_ = false;
}

void Controller::OnDamage() {
  if (!std::exchange(damaged_, true)) After(lab_.random.Between(1s, 20s), [this] { Die(); });
}

void Controller::CompareWithJournal() const {
  if (!lives() || damaged_ || !acts_) return;
  engine_->Read([&](const ClusterState& state) {
    if (StateText(state) != StateText(disk_.state()))
      lab_.trace.Violate("the engine's state is not what its journal says");
  });
}

void Controller::After(Duration delay, std::function<void()> what) {
  lab_.timeline.After(delay, [life = std::weak_ptr<int>(life_), what = std::move(what)] {
    if (!life.expired()) what();
  });
}

void Controller::Inside(const std::function<void(Engine&)>& call) {
  if (!lives()) return;
  call(*engine_);
  if (doomed_) Die();
}

// As the platform's worker: the seal first, then rounds.
void Controller::Begin() {
  ++busy_;
  begun_ = rounds_->Begin(client_).ok();
  --busy_;
  if (!lives()) return;
  if (!begun_) return After(kRound, [this] { Begin(); });
  WorkOnce();
}

void Controller::Ring() {
  if (!std::exchange(rings_, true) && begun_ && !busy()) RoundAfter(lab_.random.Between(1ms, 5ms));
}

// In the place of any that was to come before.
void Controller::RoundAfter(Duration delay) {
  After(delay, [this, number = ++rounds_asked_] {
    if (number == rounds_asked_ && !busy()) WorkOnce();
  });
}

void Controller::WorkOnce() {
  rings_ = false;
  kubernetes::Mail next{
      .synced = mail_.synced, .nodes_healthy = mail_.nodes_healthy, .pods_healthy = mail_.pods_healthy};
  told_.Take(mail_);
  ++busy_;
  const bool pods_are_known = mail_.synced && mail_.pods_healthy;
  rounds_->Round(std::exchange(mail_, std::move(next)), *this, *this,
                 [this] { return std::exchange(mail_.desired, std::nullopt); });
  if (lives() && pods_are_known) requests_->Round(client_);
  SayEvents();
  --busy_;
  if (!lives()) return;
  Narrate();
  // What has come meanwhile is looked at at once.
  RoundAfter(rings_ ? Duration(1ms) : kRound);
}

// Of the platform's narrator, which is a thread of its own.
void Controller::SayEvents() {
  for (kubernetes::PodEvent& event : rounds_->TakeEvents()) events_.Add(std::move(event));
  while (lives()) {
    std::optional<kubernetes::PodEvent> event = events_.Take(lab_.timeline.Now());
    if (!event) return;
    const absl::Status said = kubernetes::Report(client_, *event, lab_.timeline.Now());
    events_.Done(*std::move(event), said, lab_.timeline.Now());
  }
}

void Controller::Narrate() {
  for (const Event& event : engine_->EventsAfter(narrated_, 100, Duration(0))) {
    narrated_ = event.seq;
    if (event.job == JobId()) continue;
    mail_.told.push_back(
        {event.job, {{}, "", false, KindOf(event), Describe(event), absl::StrCat(event.seq)}});
  }
}

void Controller::Tick() {
  Inside([this](Engine& engine) {
    engine.Tick();
    if (++ticks_ % 10 == 0 && !engine.IsConsistent())
      lab_.trace.Violate("what is kept of jobs and nodes is not what would be computed now");
  });
  After(kTick, [this] { Tick(); });
}

void Controller::Watch(kubernetes::InformerTurns& turns) {
  const Duration pause = turns.NotBefore() - lab_.timeline.Now();
  After(std::max<Duration>(pause, 1ms), [this, &turns] {
    turns.Take(stop_.get_token());
    if (lives()) Watch(turns);
  });
}

void Controller::OnChanges(ManagerChanges changes) {
  engine_was_told_ = told_;
  Inside([&](Engine& engine) { engine.OnManager(std::move(changes)); });
}

void Controller::Round(const kubernetes::ClusterNow& now, Time time) {
  Inside([&](Engine&) { agents_->Round(now, time); });
}

std::vector<kubernetes::Eviction> Controller::Unwanted(const kubernetes::ClusterNow& now, Time time) {
  std::vector<kubernetes::Eviction> evicted;
  Inside([&](Engine&) { evicted = agents_->Unwanted(now, time); });
  return lives() ? evicted : std::vector<kubernetes::Eviction>();
}

bool Controller::IsUnwanted(const kubernetes::Eviction& eviction) {
  bool is = false;
  Inside([&](Engine&) { is = agents_->IsUnwanted(eviction); });
  return is;
}

void Controller::OnAnswer(const kubernetes::Eviction& asked, const absl::Status& answer) {
  Inside([&](Engine&) { agents_->OnAnswer(asked, answer); });
}

// ---- Agents, as controller/gateway serves them. ----

void Controller::Send(const NodeId& node, v1::ToAgent command) {
  doomed_ |= lab_.random.Chance(lab_.odds.crash_amid_sends);
  const auto stream = serving_.find(node);
  if (doomed_ || dead_ || stream == serving_.end()) return;
  lab_.trace(options_.name, "to ", node.value(), ": ", Words(command));
  on_order(node, command);
  streams_.SendDown(stream->second, std::move(command));
}

void Controller::OnMessage(const StreamPtr& stream, const v1::FromAgent& message) {
  if (!IsUp()) return;
  const auto serving = serving_.find(stream->node);
  if (!message.has_hello() && (serving == serving_.end() || serving->second != stream)) return;
  lab_.trace(stream->node.value(), "says: ", Words(message));
  if (message.has_hello()) return Greet(stream, message.hello());
  Inside([&](Engine&) { agents_->OnMessage(stream->node, message); });
}

void Controller::Greet(const StreamPtr& stream, const v1::Hello& hello) {
  if (const auto earlier = serving_.find(stream->node); earlier != serving_.end()) {
    const StreamPtr other = earlier->second;
    if (other->agent != stream->agent || other->number >= stream->number)
      return streams_.CloseByController(stream);
    LeaveStream(other);
    streams_.CloseByController(other);
    if (!lives()) return;
  }
  v1::ToAgent welcome;
  welcome.mutable_welcome()->set_heartbeat_interval_us(1);
  serving_[stream->node] = stream;
  streams_.SendDown(stream, welcome, true);
  Inside([&](Engine&) {
    if (const absl::Status met = agents_->OnConnected(stream->node, hello); !met.ok()) {
      lab_.trace(options_.name, "does not welcome ", stream->node.value(), ": ", met.ToString());
      serving_.erase(stream->node);
      streams_.CloseByController(stream);
    }
  });
}

void Controller::OnClosed(const StreamPtr& stream) {
  const auto serving = serving_.find(stream->node);
  if (serving != serving_.end() && serving->second == stream) LeaveStream(stream);
}

void Controller::LeaveStream(const StreamPtr& stream) {
  serving_.erase(stream->node);
  lab_.trace(stream->node.value(), "is not connected any more");
  Inside([&](Engine&) { agents_->OnDisconnected(stream->node); });
}

void Controller::CloseStreams() {
  for (const auto& [node, stream] : std::exchange(serving_, {})) streams_.CloseByController(stream);
  if (acts_) streams_.CloseAllByController();
}

std::optional<kubernetes::Outlook> Controller::OutlookOf(JobId id) {
  std::optional<kubernetes::Outlook> outlook;
  Inside([&](Engine& engine) {
    engine.Read([&](const ClusterState& state) {
      if (const auto job = state.jobs.find(id); job != state.jobs.end())
        outlook = siding::OutlookOf(job->second);
    });
  });
  return outlook;
}

JobId Controller::HighestJob() {
  JobId highest{0};
  Inside([&](Engine& engine) {
    engine.Read([&](const ClusterState& state) {
      if (!state.jobs.empty()) highest = state.jobs.rbegin()->first;
    });
  });
  return highest;
}

void Controller::SetDesired(const DesiredState& desired) {
  mail_.desired = desired;
  Ring();
}

}  // namespace siding::simulation::pods

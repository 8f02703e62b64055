#include "controller/platform/kubernetes/kubernetes_platform.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/client/discovery.h"
#include "controller/platform/kubernetes/client/errors.h"
#include "controller/platform/kubernetes/objects/saving.h"
#include "controller/platform/kubernetes/reconcile/checkpoints.h"
#include "controller/platform/kubernetes/reconcile/event_queue.h"
#include "controller/platform/kubernetes/reconcile/events.h"
#include "controller/platform/kubernetes/reconcile/numbers.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"
#include "controller/platform/kubernetes/reconcile/requests.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/reconcile/steps.h"
#include "controller/platform/kubernetes/rounds.h"
#include "controller/platform/kubernetes/watch/informer.h"
#include "controller/platform/kubernetes/watch/job_table.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

// What the informers have told and nobody has looked at yet, and a bell.
class Mailbox {
 public:
  void AddNodes(const std::vector<ObjectChange>& changes) { Add(&Mail::nodes, changes); }
  void AddPods(const std::vector<ObjectChange>& changes) { Add(&Mail::pods, changes); }
  void AddBudgets(const std::vector<ObjectChange>& changes) { Add(&Mail::budgets, changes); }
  void Desire(DesiredState desired) {
    MutexLock lock(mutex_);
    mail_.desired = std::move(desired);
    Ring();
  }
  std::optional<DesiredState> TakeDesired() {
    MutexLock lock(mutex_);
    return std::exchange(mail_.desired, std::nullopt);
  }
  void Tell(JobId job, PodEvent event) {
    MutexLock lock(mutex_);
    mail_.told.emplace_back(job, std::move(event));
    Ring();
  }
  void Synced() {
    MutexLock lock(mutex_);
    mail_.synced = ++synced_ == 2;
    Ring();
  }
  // A watch has failed (or goes on again).
  void SetHealthy(bool Mail::*which, bool healthy) {
    MutexLock lock(mutex_);
    mail_.*which = healthy;
    Ring();
  }
  void Wake() {
    MutexLock lock(mutex_);
    Ring();
  }
  // Waits until there is something, or for so long. Nothing: a stop is requested.
  std::optional<Mail> Take(Duration at_most, const std::stop_token& stop) {
    const std::stop_callback wake(stop, [this] { Wake(); });
    MutexLock lock(mutex_);
    bell_.WaitFor(mutex_, at_most,
                  [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return there_ || stop.stop_requested(); });
    if (stop.stop_requested()) return std::nullopt;
    there_ = false;
    Mail next{
        .synced = mail_.synced, .nodes_healthy = mail_.nodes_healthy, .pods_healthy = mail_.pods_healthy};
    return std::exchange(mail_, std::move(next));
  }

 private:
  void Ring() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    there_ = true;
    bell_.NotifyAll();
  }
  void Add(std::vector<ObjectChange> Mail::*where, const std::vector<ObjectChange>& changes) {
    MutexLock lock(mutex_);
    (mail_.*where).insert((mail_.*where).end(), changes.begin(), changes.end());
    Ring();
  }

  Mutex mutex_;
  CondVar bell_;
  Mail mail_ ABSL_GUARDED_BY(mutex_);
  bool there_ ABSL_GUARDED_BY(mutex_) = false;
  int synced_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Puts what an informer tells into the mailbox.
class Listener final : public InformerListener {
 public:
  using Put = void (Mailbox::*)(const std::vector<ObjectChange>&);
  Listener(Mailbox& mailbox, Put put, bool Mail::*healthy, const char* what)
      : mailbox_(mailbox), put_(put), healthy_(healthy), what_(what) {}
  void OnChanges(const std::vector<ObjectChange>& changes) override { (mailbox_.*put_)(changes); }
  void OnSynced() override { mailbox_.Synced(); }
  void OnHealth(const absl::Status& health) override {
    if (health.ok()) {
      spdlog::info("kubernetes: {} are watched", what_);
    } else {
      spdlog::warn("kubernetes: {} cannot be watched: {}; nothing is taken to have changed", what_,
                   std::string(health.message()));
    }
    mailbox_.SetHealthy(healthy_, health.ok());
  }

 private:
  Mailbox& mailbox_;
  const Put put_;
  bool Mail::*const healthy_;
  const char* const what_;
};

// Budgets are a help to plans: each eviction asks the server, and nothing waits for them.
class BudgetListener final : public InformerListener {
 public:
  explicit BudgetListener(Mailbox& mailbox) : mailbox_(mailbox) {}
  void OnChanges(const std::vector<ObjectChange>& changes) override { mailbox_.AddBudgets(changes); }
  void OnSynced() override {}
  void OnHealth(const absl::Status& health) override {
    if (!health.ok())
      spdlog::warn("kubernetes: disruption budgets cannot be watched: {}; plans do not know of them",
                   std::string(health.message()));
  }

 private:
  Mailbox& mailbox_;
};

class RoundsOfWatched final : public Rounds {
 public:
  RoundsOfWatched(const Clock& clock, const PlatformOptions& options)
      : clock_(clock),
        options_(options),
        table_(
            options.left_alone, [this](const Pod& pod) { return seal_->HoldsOn(pod); }, options.saves,
            options.host_paths) {}

  absl::Status Begin(ApiClient& client) override {
    absl::StatusOr<Seal> seal = Seal::Load(client, {options_.space, "siding-seal"}, options_.seal_keeper);
    Log("the seal", "read", seal.status());
    if (!seal.ok()) return seal.status();
    seal_ = *std::move(seal);
    client_ = &client;
    numbers_.emplace(client, ObjectName{options_.space, "siding-numbers"});
    return absl::OkStatus();
  }

  void Round(Mail mail, PlatformListener& listener, NodeSpeaker& speaker, const Newest& newest) override {
    ApiClient& client = *client_;
    if (mail.desired) Desire(*std::move(mail.desired));
    Observe(mail);
    if (!mail.synced) return;
    LookForOwners(client);
    // Nodes first: a pod with a deadline is planned for as soon as it is heard of.
    std::optional<ClusterNow> now;
    if (mail.nodes_healthy && mail.pods_healthy) speaker.Round(now.emplace(Now()), clock_.Now());
    // Which jobs go on, though their pods be gone or have failed, is said there.
    if (desired_ || !options_.saves) TellChanges(listener);
    // Which pod goes on with which job is said there.
    if (desired_ || !options_.saves) NumberAll(client, *numbers_, listener);
    // Whoever is not needed any more, by what was told above, is not among them.
    const std::vector<Eviction> unwanted =
        now ? speaker.Unwanted(*now, clock_.Now()) : std::vector<Eviction>();
    // For whom nodes are kept is said there: also for whom those are to go that were just named.
    if (std::optional<DesiredState> desired = newest()) Desire(*std::move(desired));
    if (!desired_) return;
    std::vector<Step> tell;
    if (Reconcile(client, StepsNow(tell)) && EvictAll(client, unwanted, speaker)) Reconcile(client, tell);
  }

  std::vector<PodEvent> TakeEvents() override { return std::exchange(events_, {}); }

  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const override {
    MutexLock lock(mutex_);
    return table_.NodesFor(job);
  }
  std::optional<PodStanding> StandingOf(const ObjectName& pod) const override {
    MutexLock lock(mutex_);
    return table_.StandingOf(pod);
  }
  std::string WhoIs(JobId job) const override {
    MutexLock lock(mutex_);
    const std::vector<const Pod*> pods = table_.PodsThatCount(job);
    if (pods.empty()) return absl::StrCat("job ", job.value());
    const std::string first = absl::StrCat(ToString(pods[0]->name), " (UID ", pods[0]->uid, ")");
    return pods.size() == 1 ? first : absl::StrCat(first, " and ", pods.size() - 1, " more");
  }
  bool Log(const std::string& target, const std::string& action, const absl::Status& status) override {
    if (IsOverTaken(status)) return true;  // the change that was in the way will be told
    std::string& problem = problems_[target];
    if (status.ok()) {
      spdlog::info("kubernetes: {}: {}", target, action);
      problems_.erase(target);
    } else if (problem != status.message()) {
      problem = std::string(status.message());
      spdlog::warn("kubernetes: {}: {}: {}", target, action, problem);
    }
    return status.ok();
  }

 private:
  void Desire(DesiredState desired) {
    desired_ = std::move(desired);
    MutexLock lock(mutex_);
    table_.OnNext(desired_->next);
  }

  void Observe(const Mail& mail) {
    MutexLock lock(mutex_);
    table_.OnNodes(mail.nodes);
    table_.OnPods(mail.pods);
    table_.OnBudgets(mail.budgets);
    for (const Refusal& refusal : table_.TakeRefusals())
      events_.push_back({refusal.pod, refusal.uid, true, "SidingRefused", refusal.why, ""});
    for (const auto& [job, event] : mail.told) {
      for (const Pod* pod : table_.PodsThatCount(job)) {
        events_.push_back(event);
        events_.back().pod = pod->name;
        events_.back().uid = pod->uid;
      }
    }
  }

  // Not under the lock: the engine may ask where a pod may be.
  void TellChanges(PlatformListener& listener) {
    ManagerChanges changes;
    {
      MutexLock lock(mutex_);
      changes = table_.TakeChanges();
    }
    const bool any = !changes.jobs.empty() || !changes.gone_jobs.empty() || !changes.nodes.empty() ||
                     !changes.gone_nodes.empty();
    if (any || !std::exchange(told_, true)) listener.OnChanges(std::move(changes));
  }

  ClusterNow Now() const {
    MutexLock lock(mutex_);
    ClusterNow now;
    for (const auto& [name, node] : table_.nodes()) {
      now.nodes.insert(NodeId(name));
      if (node.ready) now.machines.push_back({NodeId(name), node.object.uid, ToResources(node.allocatable)});
    }
    now.tasks = table_.Tasks();
    now.plain = table_.PlainPods();
    return now;
  }

  // A job that goes on and has no pod waits for one as long as somebody is there to make it.
  void LookForOwners(ApiClient& client) {
    std::vector<Orphan> orphans;
    {
      MutexLock lock(mutex_);
      orphans = table_.Orphans();
    }
    std::map<JobId, Time> looked;
    const Time now = clock_.Now();
    for (const Orphan& orphan : orphans) {
      const auto before = looked_.find(orphan.job);
      if (before != looked_.end() && now < before->second + options_.look_for_owner) {
        looked.insert(*before);
        continue;
      }
      looked[orphan.job] = now;
      const std::optional<Resource> resource = ResourceOf({orphan.kind, orphan.owner.name, orphan.uid});
      absl::StatusOr<Object> owner = absl::NotFoundError("");
      if (resource) owner = client.Get(*resource, orphan.owner);
      const bool makes = owner.ok() && owner->uid == orphan.uid && MakesPods(orphan.kind, *owner->json);
      if (makes) continue;
      const std::string target = absl::StrCat(orphan.kind, " ", ToString(orphan.owner));
      // An error says nothing of it.
      if (!owner.ok() && !absl::IsNotFound(owner.status())) {
        Log(target, "looked for", owner.status());
        continue;
      }
      Log(target, absl::StrCat("makes no pods any more: job ", orphan.job.value(), " is over"),
          absl::OkStatus());
      MutexLock lock(mutex_);
      table_.OnOwnerGone(orphan.job);
    }
    looked_ = std::move(looked);
  }

  // False: the server is away.
  bool EvictAll(ApiClient& client, const std::vector<Eviction>& pods, NodeSpeaker& speaker) {
    std::map<std::string, Time> evicted, refused;
    const Time now = clock_.Now();
    const NotNow not_now = NotToBeEvicted(pods, now);
    bool away = false;
    for (const Eviction& pod : pods) {
      if (away) break;
      if (pod.only_ask) {
        away = !KnowsHow(client) || !Ask(client, pod, speaker);
        continue;
      }
      if (const auto since = refused_.find(pod.uid); since != refused_.end()) refused.insert(*since);
      if (not_now.open.contains(pod.uid)) continue;
      const auto before = evicted_.find(pod.uid);
      if (before != evicted_.end() && now < before->second + options_.evict_again) {
        evicted.insert(*before);
        continue;
      }
      if (!KnowsHow(client)) return false;
      if (!speaker.IsUnwanted(pod)) continue;
      if (pod.at_once && !Uncount(client, pod)) continue;
      if (not_now.end.contains(pod.uid)) continue;
      const absl::Status done = client.Evict(
          pod.pod, {.uid = pod.uid}, pod.at_once ? std::optional(Duration(0)) : std::nullopt, eviction_);
      Log("pod " + ToString(pod.pod), absl::StrCat("evicted, of job ", pod.job.value()), done);
      evicted[pod.uid] = now;
      away = IsAway(done);
      if (!IsKept(done)) continue;
      if (!pod.saved) {
        speaker.OnAnswer(pod, absl::FailedPreconditionError(WordsOf(done)));
        continue;
      }
      const Time since = refused.emplace(pod.uid, now).first->second;
      if (now >= since + options_.ask_budgets) DeleteSaved(client, pod, done);
    }
    // One that is not asked for now may be again in a moment.
    for (const auto& one : evicted_) {
      if (now < one.second + options_.evict_again) evicted.insert(one);
    }
    if (away) refused.insert(refused_.begin(), refused_.end());  // of those that were not looked at
    evicted_ = std::move(evicted);
    refused_ = std::move(refused);
    return !away;
  }

  // By uid, of those that are to be evicted: what of them must not be now.
  struct NotNow {
    std::set<std::string> open;  // their nodes are to be kept for somebody, and are not yet
    std::set<std::string> end;   // they have as little time already as they are to have
  };
  NotNow NotToBeEvicted(const std::vector<Eviction>& pods, Time now) const {
    NotNow not_now;
    MutexLock lock(mutex_);
    const std::set<std::string> open = NotYetKept(*desired_, table_, now);
    for (const Eviction& eviction : pods) {
      const Pod* pod = table_.Find(eviction.pod);
      if (pod == nullptr || pod->uid != eviction.uid) continue;
      if (open.contains(pod->node)) not_now.open.insert(eviction.uid);
      if (pod->deleting && (!eviction.at_once || EndsAtOnce(*pod))) not_now.end.insert(eviction.uid);
    }
    return not_now;
  }

  // Whether it could be evicted. False: the server is away.
  bool Ask(ApiClient& client, const Eviction& pod, NodeSpeaker& speaker) {
    const absl::Status answer = client.MayEvict(pod.pod, {.uid = pod.uid}, eviction_);
    const bool kept = IsKept(answer);
    if (!answer.ok() && !kept) Log("pod " + ToString(pod.pod), "asked whether it may be evicted", answer);
    speaker.OnAnswer(pod, kept ? absl::FailedPreconditionError(WordsOf(answer)) : answer);
    return !IsAway(answer);
  }

  // By a budget, or by several: of a pod that has more than one, servers say that by 500.
  static bool IsKept(const absl::Status& eviction) {
    const std::optional<ApiError> error = ErrorOf(eviction);
    return error && (error->IsBudget() ||
                     (error->code == 500 && absl::StrContains(error->message, "DisruptionBudget")));
  }

  static std::string WordsOf(const absl::Status& refusal) {
    const std::optional<ApiError> error = ErrorOf(refusal);
    if (!error) return std::string(refusal.message());
    std::string words = error->message;
    for (const ErrorCause& cause : error->causes) absl::StrAppend(&words, " ", cause.message);
    return words;
  }

  // It is frozen for good. While a budget kept it, its job could not go on, nor could others have its node.
  void DeleteSaved(ApiClient& client, const Eviction& pod, const absl::Status& why) {
    const absl::Status done = client.Delete(Pods(), pod.pod, {.uid = pod.uid}, Duration(0));
    // Its eviction is a problem of its own, said by another name.
    Log("saved pod " + ToString(pod.pod),
        absl::StrCat("deleted, of job ", pod.job.value(), ": nothing of it runs"), done);
    if (!done.ok()) return;
    events_.push_back(
        {pod.pod, pod.uid, true, "SidingDeleted",
         absl::StrCat("the pod is saved and was deleted, for its eviction was refused: ", WordsOf(why)), ""});
  }

  bool KnowsHow(ApiClient& client) {
    if (!eviction_.empty()) return true;
    const absl::StatusOr<Discovery> found = Discover(client);
    if (!Log("the server", "asked what it has", found.status())) return false;
    eviction_ = found->eviction;
    return true;
  }

  // The pod's work goes on elsewhere: its Job is not to take it for failed. False: it is tried again.
  bool Uncount(ApiClient& client, const Eviction& eviction) {
    std::optional<Json> patch;
    {
      MutexLock lock(mutex_);
      const Pod* pod = table_.Find(eviction.pod);
      if (pod != nullptr && pod->uid == eviction.uid) patch = PatchToUncount(*pod);
    }
    if (!patch) return true;
    const std::string what = "uncount " + eviction.uid;
    const Time now = clock_.Now();
    if (!pauses_.Allow(what, now)) return false;
    const absl::Status done = client.MergePatch(Pods(), eviction.pod, *patch).status();
    pauses_.Note(what, done, now);
    Log("pod " + ToString(eviction.pod), "not to count as failed", done);
    return done.ok();
  }

  void NumberAll(ApiClient& client, Numbers& numbers, PlatformListener& listener) {
    JobTable::Without without;
    {
      MutexLock lock(mutex_);
      without = table_.FindUnnumbered();
    }
    for (const Refusal& refusal : without.surplus) {
      if (surplus_.insert(refusal.uid).second)
        events_.push_back({refusal.pod, refusal.uid, true, "SidingRefused", refusal.why, ""});
    }
    std::erase_if(surplus_, [&](const std::string& uid) {
      return std::none_of(without.surplus.begin(), without.surplus.end(),
                          [&](const Refusal& refusal) { return refusal.uid == uid; });
    });
    if (without.pods.empty()) return;
    // An order to end a job must not meet another that has its number.
    without.highest = std::max(without.highest, listener.HighestJob());
    const Time now = clock_.Now();
    LeaveOutNumbered(without);
    std::erase_if(without.pods, [&](const auto& pod) { return !pauses_.Allow(NumberingOf(pod), now); });
    if (without.pods.empty()) return;
    const absl::Status tried = NumberPods(
        without, numbers, *seal_, client, [&](const JobTable::Unnumbered& pod, const absl::Status& written) {
          pauses_.Note(NumberingOf(pod), written, now);
          if (written.ok()) numbered_[pod.uid] = {NumberingOf(pod), pod.version};
          if (written.ok() || IsOverTaken(written)) return;
          Log("pod " + ToString(pod.pod), "numbered", written);
          events_.push_back({pod.pod, pod.uid, true, "SidingNotServed",
                             absl::StrCat("siding cannot write its number on it: ", WordsOf(written)), ""});
        });
    Log("pods", absl::StrCat(without.pods.size(), " to be numbered"), tried);
  }

  // Those that have theirs, and of which the watch has not told so yet; and the rest of their gangs, which
  // would get another.
  void LeaveOutNumbered(JobTable::Without& without) {
    std::map<std::string, std::pair<std::string, std::string>> untold;
    std::set<std::string> numbered;
    for (const JobTable::Unnumbered& pod : without.pods) {
      const auto done = numbered_.find(pod.uid);
      if (done == numbered_.end() || done->second.second != pod.version) continue;
      untold.insert(*done);
      numbered.insert(done->second.first);
    }
    std::erase_if(without.pods, [&](const auto& pod) { return numbered.contains(NumberingOf(pod)); });
    numbered_ = std::move(untold);
  }

  // A gang's pods together: what the first one has now is not known.
  static std::string NumberingOf(const JobTable::Unnumbered& pod) {
    if (pod.gang_name.empty()) return "number of " + pod.uid;
    return absl::StrCat("numbers of ", pod.pod.space, "/", pod.gang_name);
  }

  // `tell`: those that nothing waits for.
  std::vector<Step> StepsNow(std::vector<Step>& tell) const {
    std::vector<Step> steps;
    {
      MutexLock lock(mutex_);
      steps = StepsTowards(*desired_, table_, clock_.Now());
    }
    const auto first =
        std::stable_partition(steps.begin(), steps.end(), [](const Step& step) { return !step.only_tells; });
    tell.assign(std::make_move_iterator(first), std::make_move_iterator(steps.end()));
    steps.erase(first, steps.end());
    return steps;
  }

  // False: the server is away.
  bool Reconcile(ApiClient& client, const std::vector<Step>& steps) {
    const Time now = clock_.Now();
    pauses_.Forget(now);
    for (const Step& step : steps) {
      const std::string what = absl::StrCat(step.target, " ", step.action);
      if (!pauses_.Allow(what, now)) continue;
      const absl::Status done = Apply(client, step);
      pauses_.Note(what, done, now);
      Log(step.target, step.action, done);
      if (IsAway(done)) return false;
    }
    return true;
  }

  // The next request would wait as long, for nothing, and what was seen gets old meanwhile.
  static bool IsAway(const absl::Status& status) {
    return !status.ok() && !IsOverTaken(status) && !IsOfOneObject(status);
  }

  const Clock& clock_;
  const PlatformOptions options_;
  std::optional<Seal> seal_;  // as long as the table has pods
  mutable Mutex mutex_;
  JobTable table_ ABSL_GUARDED_BY(mutex_);
  // Of the one who calls Round().
  ApiClient* client_ = nullptr;
  std::optional<Numbers> numbers_;
  std::optional<DesiredState> desired_;
  bool told_ = false;
  std::string eviction_;                 // the server's version of it
  std::map<std::string, Time> evicted_;  // by uid: when last, of those that are still asked for
  std::map<std::string, Time> refused_;  // of these, by uid: since when budgets keep them
  std::map<JobId, Time> looked_;         // for their owners: when last
  Pauses pauses_;                        // of changes that the server did not take
  // By uid: what they were numbered as, and at which version.
  std::map<std::string, std::pair<std::string, std::string>> numbered_;
  std::set<std::string> surplus_;                // by uid, of gangs: that was said
  std::vector<PodEvent> events_;                 // not taken yet
  std::map<std::string, std::string> problems_;  // by target: what was said of it last
};

class WatchedKubernetes final : public KubernetesPlatform {
 public:
  WatchedKubernetes(std::unique_ptr<Transport> transport, Pacer& pacer, const Clock& clock,
                    const PlatformOptions& options)
      : transport_(std::move(transport)),
        pacer_(pacer),
        clock_(clock),
        options_(options),
        rounds_(NewRounds(clock, options)) {}
  ~WatchedKubernetes() override { Stop(); }

  // It places its pods, or siding binds them to the nodes that were planned.
  std::vector<siding::Placement> Place(const std::vector<Waiting>&, std::vector<NodeRoom>) override {
    return {};
  }
  std::string manager() const override { return kKubernetes; }
  // To the scheduler and the kubelet a frozen pod has all that it requested.
  Capabilities capabilities() const override {
    return {.freezing_frees_slots = false, .freezing_frees_gpus = false};
  }
  std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const override {
    return rounds_->NodesFor(job);
  }
  bool continues_jobs() const override { return options_.saves; }
  void SetDesired(const DesiredState& desired) override { mailbox_.Desire(desired); }

  void Start(PlatformListener& listener, NodeSpeaker& speaker) override {
    speaker_ = &speaker;
    speaker.SetBell([this] { mailbox_.Wake(); });
    narrator_ = std::jthread([this](const std::stop_token& stop) { Narrate(stop); });
    worker_ = std::jthread([this, &listener](const std::stop_token& stop) { Work(listener, stop); });
    nodes_.emplace(*transport_, pacer_, node_listener_, Nodes());
    pods_.emplace(*transport_, pacer_, pod_listener_, Pods());
  }
  void Tell(JobId job, bool warning, std::string reason, std::string text, std::string key) override {
    mailbox_.Tell(job, {{}, "", warning, std::move(reason), std::move(text), std::move(key)});
  }
  std::string WhoIs(JobId job) const override { return rounds_->WhoIs(job); }
  void Stop() override {
    if (speaker_ != nullptr) speaker_->SetBell(nullptr);
    pods_.reset();
    nodes_.reset();
    worker_ = {};  // asks it to stop, and waits
    narrator_ = {};
    if (NodeSpeaker* const speaker = std::exchange(speaker_, nullptr)) speaker->Leave();
  }
  int64_t lost_events() const override { return events_.lost(); }

 private:
  void Work(PlatformListener& listener, const std::stop_token& stop) {
    ApiClient client(*transport_, pacer_, stop);
    Requests requests(*transport_, pacer_, clock_, options_.left_alone, SourcesOf(listener));
    CheckpointObjects checkpoints(
        *transport_, pacer_, clock_, options_.space,
        {[&listener] { return listener.CheckpointsKept(); }, [this] { mailbox_.Wake(); }, Logger()});
    while (!rounds_->Begin(client).ok()) {
      if (!pacer_.Pause(options_.round, stop)) return;
    }
    std::optional<Informer> budgets;
    // A round looks at the whole cluster, however little has changed.
    while (std::optional<Mail> mail = mailbox_.Take(options_.round, stop)) {
      const Time begun = pacer_.Now();
      const bool pods_are_known = mail->synced && mail->pods_healthy;
      rounds_->Round(*std::move(mail), listener, *speaker_, [this] { return mailbox_.TakeDesired(); });
      for (PodEvent& event : rounds_->TakeEvents()) Say(std::move(event));
      if (pods_are_known) requests.Round(client);
      if (pods_are_known && !budgets) WatchBudgets(client, budgets);
      checkpoints.Round(client);
      const Duration left = begun + options_.least_apart - pacer_.Now();
      if (left > Duration(0) && !pacer_.Pause(left, stop)) return;
    }
  }

  void Say(PodEvent event) {
    events_.Add(std::move(event));
    MutexLock lock(events_mutex_);
    events_bell_.NotifyAll();
    new_events_ = true;
  }

  // On a thread of its own: a server that takes no events, or takes long, must not delay what pods wait for.
  void Narrate(const std::stop_token& stop) {
    ApiClient client(*transport_, pacer_, stop, {.attempts = 1});
    const std::stop_callback wake(stop, [this] {
      MutexLock lock(events_mutex_);
      events_bell_.NotifyAll();
    });
    while (!stop.stop_requested()) {
      while (std::optional<PodEvent> event = events_.Take(pacer_.Now())) {
        const absl::Status said = Report(client, *event, clock_.Now());
        events_.Done(*std::move(event), said, pacer_.Now());
        if (stop.stop_requested()) return;
      }
      MutexLock lock(events_mutex_);
      events_bell_.WaitFor(events_mutex_, options_.round, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_mutex_) {
        return std::exchange(new_events_, false) || stop.stop_requested();
      });
    }
  }

  void WatchBudgets(ApiClient& client, std::optional<Informer>& budgets) {
    const absl::StatusOr<Discovery> found = Discover(client);
    if (!found.ok()) return;  // with the next round
    for (const char* version : {"v1", "v1beta1"}) {
      if (!found->Has("policy", version)) continue;
      budgets.emplace(*transport_, pacer_, budget_listener_, PodDisruptionBudgets(version));
      return;
    }
  }

  Requests::Sources SourcesOf(PlatformListener& listener) {
    return {[this](const ObjectName& pod) { return rounds_->StandingOf(pod); },
            [&listener](JobId job) { return listener.OutlookOf(job); }, [this] { mailbox_.Wake(); },
            Logger()};
  }
  std::function<bool(const std::string&, const std::string&, const absl::Status&)> Logger() {
    return [this](const std::string& target, const std::string& action, const absl::Status& status) {
      return rounds_->Log(target, action, status);
    };
  }

  const std::unique_ptr<Transport> transport_;
  Pacer& pacer_;
  const Clock& clock_;
  const PlatformOptions options_;
  const std::unique_ptr<Rounds> rounds_;
  Mailbox mailbox_;
  Listener node_listener_{mailbox_, &Mailbox::AddNodes, &Mail::nodes_healthy, "nodes"};
  Listener pod_listener_{mailbox_, &Mailbox::AddPods, &Mail::pods_healthy, "pods"};
  BudgetListener budget_listener_{mailbox_};
  std::optional<Informer> nodes_;
  std::optional<Informer> pods_;
  NodeSpeaker* speaker_ = nullptr;  // between Start() and Stop()
  EventQueue events_;
  Mutex events_mutex_;
  CondVar events_bell_;
  bool new_events_ ABSL_GUARDED_BY(events_mutex_) = false;
  std::jthread narrator_;
  std::jthread worker_;
};

}  // namespace

std::unique_ptr<Rounds> NewRounds(const Clock& clock, const PlatformOptions& options) {
  return std::make_unique<RoundsOfWatched>(clock, options);
}

std::unique_ptr<KubernetesPlatform> NewKubernetesPlatform(std::unique_ptr<Transport> transport, Pacer& pacer,
                                                          const Clock& clock,
                                                          const PlatformOptions& options) {
  return std::make_unique<WatchedKubernetes>(std::move(transport), pacer, clock, options);
}

}  // namespace siding::kubernetes

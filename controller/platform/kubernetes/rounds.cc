#include "controller/platform/kubernetes/rounds.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/objects/saving.h"
#include "controller/platform/kubernetes/reconcile/evictions.h"
#include "controller/platform/kubernetes/reconcile/numbers.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/reconcile/steps.h"
#include "spdlog/spdlog.h"

namespace siding::kubernetes {
namespace {

class RoundsOfWatched final : public Rounds {
 public:
  RoundsOfWatched(const Clock& clock, const PlatformOptions& options)
      : clock_(clock),
        options_(options),
        table_(
            options.left_alone, [this](const Pod& pod) { return seal_->HoldsOn(pod); }, options.saves,
            options.host_paths),
        evictions_({options.evict_again, options.ask_budgets},
                   {[this](const std::string& target, const std::string& action, const absl::Status& status) {
                      return Log(target, action, status);
                    },
                    [this](PodEvent event) { events_.push_back(std::move(event)); }}) {}

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
    SettleNodes(client);
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
    evictions_.Keep(unwanted, clock_.Now());
    Reconcile(client, StepsNow(unwanted), speaker);
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

  std::vector<Step> StepsNow(const std::vector<Eviction>& unwanted) const {
    MutexLock lock(mutex_);
    return StepsTowards(*desired_, unwanted, table_, clock_.Now());
  }

  // Until the server is away.
  void Reconcile(ApiClient& client, const std::vector<Step>& steps, NodeSpeaker& speaker) {
    const Time now = clock_.Now();
    pauses_.Forget(now);
    bool done = true;
    for (const Step& step : steps) {
      if (step.after_last && !done) continue;
      const std::string what = absl::StrCat(step.target, " ", step.action);
      done = pauses_.Allow(what, now);
      if (!done) continue;
      const auto* eviction = std::get_if<Eviction>(&step.call);
      const absl::Status status =
          eviction != nullptr ? Evict(client, *eviction, now, speaker) : Take(client, step, what, now);
      if (IsAway(status)) return;
      done = status.ok();
    }
  }

  absl::Status Take(ApiClient& client, const Step& step, const std::string& what, Time now) {
    const absl::Status done = Apply(client, step);
    pauses_.Note(what, done, now);
    if (const auto* patch = std::get_if<Patch>(&step.call);
        patch != nullptr && patch->resource.plural == Nodes().plural)
      NoteWritten(patch->name.name, done, now);
    Log(step.target, step.action, done);
    return done;
  }

  // It is done, or may be, or another has changed the node before: the watch will tell, and its word until
  // then is an older one.
  void NoteWritten(const std::string& node, const absl::Status& written, Time now) {
    if (!written.ok() && !MayBeDone(written) && !absl::IsAborted(written)) return;
    unsure_nodes_[node] = now;
    MutexLock lock(mutex_);
    table_.OnNodeWritten(node);
  }

  // Of a change that was not done after all there is nothing to tell.
  void SettleNodes(ApiClient& client) {
    std::erase_if(unsure_nodes_, [this](const auto& one) {
      MutexLock lock(mutex_);
      const auto node = table_.nodes().find(one.first);
      return node == table_.nodes().end() || !node->second.outdated;
    });
    const Time now = clock_.Now();
    for (auto one = unsure_nodes_.begin(); one != unsure_nodes_.end();) {
      if (now < one->second + options_.settled) {
        ++one;
        continue;
      }
      const absl::StatusOr<Object> node = client.Get(Nodes(), {"", one->first});
      if (IsAway(node.status())) return;
      if (node.ok()) {
        MutexLock lock(mutex_);
        table_.OnNodeRead(*node);
      }
      one = unsure_nodes_.erase(one);
    }
  }

  absl::Status Evict(ApiClient& client, const Eviction& eviction, Time now, NodeSpeaker& speaker) {
    return evictions_.Evict(client, eviction, now,
                            {[&] { return speaker.IsUnwanted(eviction); },
                             [&](const absl::Status& answer) { speaker.OnAnswer(eviction, answer); }});
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
  Evictions evictions_;
  std::map<JobId, Time> looked_;              // for their owners: when last
  std::map<std::string, Time> unsure_nodes_;  // of which the watch is to tell: when they were written
  Pauses pauses_;                             // of changes that the server did not take
  // By uid: what they were numbered as, and at which version.
  std::map<std::string, std::pair<std::string, std::string>> numbered_;
  std::set<std::string> surplus_;                // by uid, of gangs: that was said
  std::vector<PodEvent> events_;                 // not taken yet
  std::map<std::string, std::string> problems_;  // by target: what was said of it last
};

}  // namespace

std::unique_ptr<Rounds> NewRounds(const Clock& clock, const PlatformOptions& options) {
  return std::make_unique<RoundsOfWatched>(clock, options);
}

}  // namespace siding::kubernetes

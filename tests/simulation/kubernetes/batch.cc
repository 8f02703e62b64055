#include "tests/simulation/kubernetes/batch.h"

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;
using kubernetes::TextAt;

Json PodOf(const PodWish& wish, Time now) {
  Json pod = {{"metadata",
               {{"name", wish.name.name},
                {"namespace", wish.name.space},
                {"annotations", wish.annotations},
                {"creationTimestamp", FormatTime(now)}}},
              {"spec",
               {{"schedulerName", wish.scheduler},
                {"terminationGracePeriodSeconds", wish.grace},
                {"containers",
                 Json::array({{{"name", "main"},
                               {"args", Json::array({absl::StrCat(ToMicros(Time(wish.work)))})},
                               {"resources", {{"requests", {{"cpu", absl::StrCat(wish.cpu, "m")}}}}}}})}}},
              {"status", {{"phase", "Pending"}}}};
  if (!wish.app.empty()) pod["metadata"]["labels"] = {{"app", wish.app}};
  if (wish.gate) pod["spec"]["schedulingGates"] = Json::array({{{"name", "siding.dev/wait"}}});
  if (wish.saved) pod["spec"]["runtimeClassName"] = "siding";
  return pod;
}

void Batch::Add(BatchJob job) {
  const std::string name = job.pod.name.name;
  lab_.trace("user", "makes Job ", name, ": ", job.pieces, " pieces, ", job.at_once, " at once, ",
             ToSeconds(job.pod.work), " s of ", job.pod.cpu, "m each");
  Running& running = jobs_[name];
  running.job = std::move(job);
  if (const BatchJob& made = running.job; made.in_cluster) {
    const kubernetes::Resource& resource = made.same_names ? StatefulSets() : Jobs();
    const Json owner = {{"metadata", {{"name", name}, {"namespace", made.pod.name.space}}},
                        {"spec", {{"replicas", made.at_once}}}};
    cluster_.Create(resource, made.pod.name.space, owner);
    running.uid = UidOf(*cluster_.Find(resource.plural, made.pod.name));
  }
  Look(name);
}

void Batch::OnChange(const FakeStore::Event& event) {
  if (event.plural != "pods") return;
  const Json& pod = event.after != nullptr ? *event.after : *event.before;
  const Json* owners = kubernetes::Find(pod, {"metadata", "ownerReferences"});
  if (owners == nullptr || owners->empty()) return;
  const std::string name = TextAt(owners->front(), {"name"});
  const auto found = jobs_.find(name);
  if (found == jobs_.end()) return;
  Running& running = found->second;
  if (Succeeded(pod) && running.done.insert(UidOf(pod)).second) {
    // Its result is taken; after a while nobody wants to see it any more.
    lab_.timeline.After(lab_.random.Between(1s, 60s), [this, pod_name = event.name, uid = UidOf(pod)] {
      cluster_.Delete(kubernetes::Pods(), pod_name, uid, 0);
    });
  }
  const bool leaves = IsDeleting(pod) && !running.job.waits_until_gone && !running.job.same_names;
  // A set has its next pod, of the same name, when the one before is gone.
  const bool is_over = running.job.same_names ? Succeeded(pod) : IsOver(pod);
  if (event.after == nullptr || is_over || leaves)
    running.pods.erase(event.name);
  else
    running.pods.insert(event.name);
  if (event.after != nullptr && IsOver(pod) && !Succeeded(pod) && !IsDeleting(pod) &&
      running.failed.insert(UidOf(pod)).second) {
    const bool too_often = static_cast<int>(running.failed.size()) > running.job.most_failures;
    if (too_often && !running.deleted && !running.marked_done) GiveUp(name);
    // A Job's stay for as long as it does.
    if (!running.job.same_names && lab_.random.Chance(0.5)) return LookSoon(name);
    lab_.timeline.After(lab_.random.Between(100ms, 20s), [this, pod_name = event.name, uid = UidOf(pod)] {
      cluster_.Delete(kubernetes::Pods(), pod_name, uid);
    });
  }
  LookSoon(name);
}

void Batch::LookSoon(const std::string& name) {
  if (std::exchange(jobs_[name].looks_soon, true)) return;
  lab_.timeline.After(lab_.random.Between(5ms, 1s), [this, name] {
    jobs_[name].looks_soon = false;
    Look(name);
  });
}

void Batch::Look(const std::string& name) {
  Running& running = jobs_[name];
  const BatchJob& job = running.job;
  if (running.deleted) return;
  const int left = job.pieces - static_cast<int>(running.done.size());
  for (int missing = std::min(job.at_once, left) - static_cast<int>(running.pods.size()); missing > 0;
       --missing) {
    PodWish wish = job.pod;
    int number = ++running.made;
    if (job.same_names) {
      for (number = 0; cluster_.Find("pods", {wish.name.space, absl::StrCat(name, "-", number)}) != nullptr;)
        ++number;
    }
    wish.name.name = absl::StrCat(name, "-", number);
    Json pod = PodOf(wish, lab_.timeline.Now());
    Json owner = {{"kind", job.same_names ? "StatefulSet" : "Job"}, {"name", name}, {"controller", true}};
    if (!running.uid.empty()) owner["uid"] = running.uid;
    pod["metadata"]["ownerReferences"] = Json::array({std::move(owner)});
    lab_.trace("batch", "makes ", ToString(wish.name));
    // It is heard of before this returns.
    cluster_.Create(kubernetes::Pods(), wish.name.space, pod);
    running.pods.insert(wish.name);
  }
  if (!job.in_cluster) return;
  // One too many: another has come to the end of its work while it was being deleted.
  for (int many = static_cast<int>(running.pods.size()) - std::max(left, 0); many > 0; --many)
    cluster_.Delete(kubernetes::Pods(), *std::next(running.pods.begin(), many - 1), "");
  if (left <= 0) MarkDone(running);
}

// A Job is complete; a set, which never is, is scaled down.
void Batch::MarkDone(Running& running) {
  if (std::exchange(running.marked_done, true)) return;
  const BatchJob& job = running.job;
  lab_.trace("batch", job.pod.name.name, " is done");
  Json done =
      job.same_names
          ? Json{{"spec", {{"replicas", 0}}}}
          : Json{{"status", {{"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}}}};
  cluster_.Patch(job.same_names ? StatefulSets() : Jobs(), job.pod.name, running.uid, std::move(done));
}

bool Batch::DeleteOne() {
  std::vector<std::string> names;
  for (const auto& [name, running] : jobs_) {
    if (running.job.in_cluster && !running.deleted && !running.marked_done) names.push_back(name);
  }
  if (names.empty()) return false;
  const std::string name = lab_.random.OneOf(names);
  Running& running = jobs_[name];
  lab_.trace("user", "deletes Job ", name);
  running.deleted = true;
  const kubernetes::Resource& resource = running.job.same_names ? StatefulSets() : Jobs();
  cluster_.Delete(resource, running.job.pod.name, running.uid);
  Collect(name);
  return true;
}

void Batch::GiveUp(const std::string& name) {
  Running& running = jobs_[name];
  lab_.trace("batch", name, " has failed too often");
  running.deleted = true;
  const Json failed = {{"status", {{"conditions", Json::array({{{"type", "Failed"}, {"status", "True"}}})}}}};
  cluster_.Patch(Jobs(), running.job.pod.name, running.uid, failed);
  Collect(name);
}

void Batch::Collect(const std::string& name) {
  lab_.timeline.After(lab_.random.Between(10ms, 10s), [this, name] {
    for (const ObjectName& pod : std::set<ObjectName>(jobs_[name].pods))
      cluster_.Delete(kubernetes::Pods(), pod, "");
  });
}

std::string Batch::Unrest() const {
  for (const auto& [name, running] : jobs_) {
    if (!running.deleted && static_cast<int>(running.done.size()) < running.job.pieces)
      return absl::StrCat("Job ", name, " has done ", running.done.size(), " of ", running.job.pieces);
  }
  return "";
}

void Batch::AtTheEnd() const {
  for (const auto& [name, running] : jobs_) {
    // Two that are the last may come to their end together.
    const bool may_be_more = running.job.in_cluster && !running.job.waits_until_gone;
    const int done =
        std::min<int>(static_cast<int>(running.done.size()), may_be_more ? running.job.pieces : INT_MAX);
    if (!running.deleted && done != running.job.pieces)
      lab_.trace.Violate(absl::StrCat("Job ", name, " has done its work ", running.done.size(), " times of ",
                                      running.job.pieces));
  }
}

}  // namespace siding::simulation::pods

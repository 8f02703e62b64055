#include "tests/simulation/kubernetes/lives.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/engine/state/predicates.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "controller/platform/kubernetes/objects/saving.h"
#include "controller/wire/wire.h"

namespace siding::simulation::pods {

using kubernetes::TextAt;

// A member of a set is made again by its name.
std::string OwnerOf(const Json& pod) {
  const Json& owners = kubernetes::ListAt(pod, {"metadata", "ownerReferences"});
  if (owners.empty()) return "";
  const std::string uid = TextAt(owners.front(), {"uid"});
  if (TextAt(owners.front(), {"kind"}) != "StatefulSet") return uid;
  return absl::StrCat(uid, "/", TextAt(pod, {"metadata", "name"}));
}

Lives::Lives(Lab& lab, Cluster& cluster, Containers& containers, const Audit& audit,
             const ClusterState& recorded)
    : lab_(lab), cluster_(cluster), containers_(containers), audit_(audit), recorded_(recorded) {}

FakeStore::Value Lives::PodOf(const Container& container) const {
  FakeStore::Value pod = cluster_.Find("pods", container.pod);
  return pod != nullptr && UidOf(*pod) == container.uid ? pod : nullptr;
}

const Json* Lives::LastOf(const std::string& uid) const {
  const auto pod = pods_.find(uid);
  return pod == pods_.end() ? nullptr : pod->second.get();
}

void Lives::OnChange(const FakeStore::Event& event) {
  const bool is_owner = event.plural == Jobs().plural || event.plural == StatefulSets().plural;
  if (is_owner &&
      (event.after == nullptr ||
       !kubernetes::MakesPods(event.plural == Jobs().plural ? "Job" : "StatefulSet", *event.after)))
    done_owners_.insert(UidOf(event.after != nullptr ? *event.after : *event.before));
  if (event.plural == "pods" && event.after != nullptr) pods_[UidOf(*event.after)] = event.after;
  if (event.plural != "pods" || event.after == nullptr) return;
  const Json& pod = *event.after;
  const bool failed = IsOver(pod) && !Succeeded(pod) && !IsDeleting(pod) && !IsSaved(UidOf(pod)) &&
                      !kubernetes::PodFrom(*kubernetes::ObjectFrom(pod)).disrupted;
  if (Succeeded(pod) || failed || Asked(pod, "preemptible").empty()) may_end_.insert(audit_.NumberOf(pod));
}

// What goes on with the next pod of its owner is over with its work, with its owner, or with a failure of its
// program; not because a pod was taken from it.
void Lives::CheckEnded(const JobRecord& job) {
  const auto owner = job.spec.labels.find("owner-uid");
  if (job.state == JobState::kDone || owner == job.spec.labels.end()) return;
  if (NewestImage(recorded_, job) == nullptr || may_end_.contains(job.id.value()) ||
      done_owners_.contains(owner->second))
    return;
  lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " is ", ToString(job.state),
                                  ", though it has an image, and only its pod was taken from it"));
}

void Lives::OnEvent(const Event& event) {
  const auto job = recorded_.jobs.find(event.job);
  if (job != recorded_.jobs.end() && IsTerminal(job->second.state) &&
      std::holds_alternative<JobMoved>(event.body))
    CheckEnded(job->second);
  const auto* moved = std::get_if<JobMoved>(&event.body);
  if (moved != nullptr && moved->event == JobEvent::kOrderKill)
    to_be_ended_[event.job.value()] = lab_.timeline.Now();
}

// It goes on from the newest image that counts, and from its beginning where none does.
void Lives::OnOrder(const NodeId& node, const v1::ToAgent& order) {
  if (!order.has_launch() && !order.has_restore()) return;
  const TaskId id = IdOf(order.task());
  const auto job = recorded_.jobs.find(id.job);
  if (job == recorded_.jobs.end() || IsTerminal(job->second.state)) {
    if (order.has_restore())
      lab_.trace.Violate(absl::StrCat("task ", ToString(id), " is restored, and its job is over"));
    return;
  }
  if (id.incarnation <= job->second.incarnation) return;  // it is said again, or is begun again
  const CheckpointRecord* const newest = NewestImage(recorded_, job->second);
  const std::string meant = order.has_restore() ? order.restore().checkpoint() : "";
  const std::string counts = newest == nullptr ? "" : newest->id.value();
  if (meant != counts)
    lab_.trace.Violate(absl::StrCat("task ", ToString(id), " on ", node.value(), " is to start from ",
                                    meant.empty() ? "its beginning" : meant, ", and what counts is ",
                                    counts.empty() ? "its beginning" : counts));
}

void Lives::OnRuns(const Container& container) {
  const FakeStore::Value pod = PodOf(container);
  if (pod == nullptr) return;  // somebody took the pod away by force: nobody can know that it runs
  if (container.from) {
    const auto owner = owners_.find(*container.from);
    if (owner == owners_.end() || owner->second != OwnerOf(*pod))
      lab_.trace.Violate(absl::StrCat(ToString(container.pod), " goes on from ", ToString(*container.from),
                                      ", which is another\'s"));
  }
  if (seen_off_.contains(container.uid))
    lab_.trace.Violate(ToString(container.pod) + " runs, and was saved to go on elsewhere");
  const int64_t number = audit_.NumberOf(*pod);
  for (const auto& [uid, other] : containers_.all()) {
    if (uid == container.uid || !other.since) continue;
    const FakeStore::Value beside = PodOf(other);
    if (beside == nullptr) continue;
    // Those whose users have taken their word back have no number any more.
    const bool same_number = number != 0 && number == audit_.NumberOf(*beside) &&
                             Asked(*pod, "gang").empty() && !Asked(*pod, "preemptible").empty() &&
                             !Asked(*beside, "preemptible").empty();
    if (other.lineage == container.lineage || same_number)
      lab_.trace.Violate(absl::StrCat(ToString(container.pod), " and ", ToString(other.pod),
                                      " run at the same time, and are one job"));
  }
}

void Lives::OnImage(const ImageName& image) {
  const Duration done = lab_.store.images.at(image).work;
  for (const auto& [uid, container] : containers_.all()) {
    const Json* const pod = LastOf(uid);
    const auto checkpoint = recorded_.checkpoints.find(CheckpointId(image.checkpoint));
    if (pod == nullptr || checkpoint == recorded_.checkpoints.end() ||
        audit_.NumberOf(*pod) != checkpoint->second.job.value() || container.since || container.pid == 0 ||
        containers_.Done(container) != done)
      continue;
    saved_[uid] = {image, done};
    owners_[image] = OwnerOf(*pod);
    return;
  }
}

void Lives::OnDelete(const ImageName& image) {
  for (const auto& [id, job] : recorded_.unfinished) {
    const CheckpointRecord* const newest = NewestImage(recorded_, *job);
    if (newest != nullptr && newest->id.value() == image.checkpoint)
      lab_.trace.Violate(absl::StrCat(ToString(image), " is deleted, and job ", id.value(), " needs it"));
  }
}

// All that it has done is in its newest image.
bool Lives::IsSaved(const std::string& uid) const {
  const Container* const container = containers_.Find(uid);
  const auto saved = saved_.find(uid);
  return saved != saved_.end() && container != nullptr && !container->since &&
         saved->second.second == container->done;
}

std::string Lives::WhyNotEvicted(const Json& pod, bool at_once) const {
  const int64_t number = audit_.NumberOf(pod);
  const Container* const container = containers_.Find(UidOf(pod));
  const bool runs = container != nullptr && container->pid != 0 && !container->exited;
  if (at_once && runs && container->since) return "its container runs";
  if (IsSaved(UidOf(pod)) || !runs) return "";
  // It is on its way already: nothing changes, whatever its user has taken back meanwhile.
  if (IsDeleting(pod) && !at_once) return "";
  if (Asked(pod, "preemptible").empty()) return "it has not said that it may be";
  if (!to_be_ended_.contains(number)) return absl::StrCat("nobody wants job ", number, " to end");
  // It may be ended behind an image that was taken in advance.
  const auto job = recorded_.jobs.find(JobId(number));
  const bool has_image = job != recorded_.jobs.end() && NewestImage(recorded_, job->second) != nullptr;
  const bool may_be_killed = Asked(pod, "preemptible").find("kill") != std::string::npos;
  return has_image || may_be_killed ? "" : "all that it has done is lost";
}

std::string Lives::WhyNotDeleted(const Json& pod) const {
  const Container* const container = containers_.Find(UidOf(pod));
  const bool runs = container != nullptr && container->pid != 0 && !container->exited;
  if (runs && container->since) return "its container runs";
  const auto saved = saved_.find(UidOf(pod));
  if (saved == saved_.end()) return "it has no image";
  return runs && saved->second.second != container->done ? "it has done more than its image has" : "";
}

bool Lives::IsHeir(const Json& pod, int64_t number) {
  const auto job = recorded_.jobs.find(JobId(number));
  if (job == recorded_.jobs.end()) return false;
  const auto owner = job->second.spec.labels.find("owner-uid");
  const Json& owners = kubernetes::ListAt(pod, {"metadata", "ownerReferences"});
  return owner != job->second.spec.labels.end() && !owners.empty() &&
         TextAt(owners.front(), {"uid"}) == owner->second;
}

std::string Lives::Leftover() const {
  for (const auto& [name, image] : lab_.store.images) {
    // Of a job that has failed they are kept for a while: somebody may want to see why.
    const auto checkpoint = recorded_.checkpoints.find(CheckpointId(name.checkpoint));
    const auto job = checkpoint == recorded_.checkpoints.end() ? recorded_.jobs.end()
                                                               : recorded_.jobs.find(checkpoint->second.job);
    if (job == recorded_.jobs.end() || job->second.state != JobState::kFailed)
      return ToString(name) + " is left";
  }
  for (const auto& [name, node] : lab_.store.drafts) return ToString(name) + " is left as a draft";
  for (const auto& [uid, container] : containers_.all()) {
    if (container.pid != 0 && !container.exited)
      return "a container of " + ToString(container.pod) + " is left";
  }
  return "";
}

}  // namespace siding::simulation::pods

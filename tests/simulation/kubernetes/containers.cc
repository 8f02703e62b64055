#include "tests/simulation/kubernetes/containers.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

namespace {

constexpr Duration kPatience = 100s;  // siding-runc's
constexpr Duration kLookAgain = 1s;

}  // namespace

const Container* Containers::Find(const std::string& uid) const {
  const auto found = all_.find(uid);
  return found == all_.end() ? nullptr : &found->second;
}

const Container* Containers::Running(const std::string& uid, const std::string& id) const {
  const Container* const container = Find(uid);
  return container != nullptr && container->id == id && container->pid != 0 && !container->exited ? container
                                                                                                  : nullptr;
}

Container* Containers::Look(const std::string& uid, const std::string& id) {
  const auto found = all_.find(uid);
  return found == all_.end() || found->second.id != id || found->second.pid != 0 ? nullptr : &found->second;
}

// ---- It is made. ----

void Containers::Begin(const ObjectName& pod, const std::string& uid, const std::string& node,
                       Duration work) {
  if (!all_.emplace(uid, Container{.pod = pod, .uid = uid, .node = node, .work = work}).second) return;
  Try(uid);
}

void Containers::Try(const std::string& uid) {
  Container& container = all_.at(uid);
  container.id = absl::StrCat("c", ++tries_);
  container.patience_ends = lab_.timeline.Now() + kPatience;
  container.restore_failed = container.asks_later = false;
  Ask(uid, container.id);
}

// Its kubelet tries again.
void Containers::GiveUp(Container& container) {
  lab_.trace(container.node, "the container of ", ToString(container.pod), " is not made for now");
  container.id = "";
  lab_.timeline.After(lab_.random.Between(1s, 20s),
                      [this, uid = container.uid, life = ++container.generation] {
                        const auto found = all_.find(uid);
                        if (found != all_.end() && found->second.generation == life) Try(uid);
                      });
}

void Containers::Ask(const std::string& uid, const std::string& id) {
  Container* const container = Look(uid, id);
  if (container == nullptr || container->making) return;
  const Owner owner = owners_[container->node];
  if (owner.it != nullptr) {
    const absl::StatusOr<std::optional<ImageName>> start = owner.it->OnStarting(uid, id);
    if (start.ok() && !*start && container->restore_failed) {
      // Its files are not those of its beginning any more.
      owner.it->OnMade(uid, id, absl::AbortedError("the image could not be restored"));
      return GiveUp(*container);
    }
    if (start.ok()) {
      container->making = true;
      lab_.timeline.After(lab_.random.Between(10ms, 2s),
                          [this, uid, id, image = *start, life = owner.life] { Make(uid, id, image, life); });
      return;
    }
    if (!absl::IsUnavailable(start.status())) return GiveUp(*container);
  }
  if (lab_.timeline.Now() >= container->patience_ends) return GiveUp(*container);
  if (std::exchange(container->asks_later, true)) return;
  lab_.timeline.After(kLookAgain, [this, uid, id] {
    if (Container* const later = Look(uid, id)) {
      later->asks_later = false;
      Ask(uid, id);
    }
  });
}

void Containers::Make(const std::string& uid, const std::string& id, const std::optional<ImageName>& image,
                      int owner) {
  Container* const container = Look(uid, id);
  if (container == nullptr) return;
  container->making = false;
  const Owner now = owners_[container->node];
  // Who was asked is dead, and its connection broken.
  ContainerOwner* const told = now.life == owner ? now.it : nullptr;
  const auto found = image ? lab_.store.images.find(*image) : lab_.store.images.end();
  const bool fails = lab_.random.Chance(image ? lab_.odds.restore_fails : lab_.odds.launch_fails) ||
                     (image && found == lab_.store.images.end());
  if (fails) {
    lab_.trace(container->node, "the container of ", ToString(container->pod), " cannot be made");
    container->restore_failed = image.has_value();
    if (told != nullptr) told->OnMade(uid, id, absl::AbortedError("as the world wants it"));
    if (!image) return GiveUp(*container);
    return Ask(uid, id);
  }
  container->pid = ++made_;
  container->from = image;
  container->lineage = image ? LineageOf(*image) : made_;
  if (image) container->done = found->second.work;
  lab_.trace(container->node, "the container of ", ToString(container->pod), " runs, from ",
             image ? ToString(*image) : "its beginning", ", ", ToSeconds(container->done), " of ",
             ToSeconds(container->work), " s are done");
  on_made(*container);
  Run(*container);
  if (told != nullptr) told->OnMade(uid, id, container->pid);
}

int Containers::LineageOf(const ImageName& image) const {
  const auto found = lineages_.find(image);
  return found == lineages_.end() ? 0 : found->second;
}

// ---- It runs, and ends. ----

Duration Containers::Done(const Container& container) const {
  return container.done + (container.since ? lab_.timeline.Now() - *container.since : Duration(0));
}

void Containers::Run(Container& container) {
  container.since = lab_.timeline.Now();
  on_runs(container);
  lab_.timeline.After(container.work - container.done,
                      [this, uid = container.uid, life = ++container.generation] {
                        const auto found = all_.find(uid);
                        if (found == all_.end() || found->second.generation != life) return;
                        Stop(found->second);
                        found->second.exited = true;
                        on_done(found->second);
                      });
}

void Containers::Stop(Container& container) {
  container.done = Done(container);
  container.since.reset();
  ++container.generation;
}

void Containers::Freeze(const std::string& uid) {
  if (const auto found = all_.find(uid); found != all_.end() && found->second.since) Stop(found->second);
}

void Containers::Thaw(const std::string& uid) {
  const auto found = all_.find(uid);
  if (found == all_.end()) return;
  Container& container = found->second;
  if (container.pid != 0 && !container.exited && !container.since) Run(container);
}

void Containers::Kill(const std::string& uid) {
  const auto found = all_.find(uid);
  if (found == all_.end() || found->second.exited) return;
  Stop(found->second);
  found->second.exited = true;
  on_killed(found->second);
}

void Containers::End(const std::string& uid) { all_.erase(uid); }

void Containers::EndAllOn(const std::string& node) {
  std::erase_if(all_, [&](const auto& one) { return one.second.node == node; });
}

// ---- Agents. ----

void Containers::Attach(const std::string& node, ContainerOwner* owner) {
  owners_[node] = {owner, owners_[node].life + 1};
  if (owner != nullptr) Ring(node);
}

void Containers::Ring(const std::string& node) {
  std::vector<std::pair<std::string, std::string>> waiting;
  for (const auto& [uid, container] : all_) {
    if (container.node == node && container.pid == 0 && !container.id.empty())
      waiting.emplace_back(uid, container.id);
  }
  for (const auto& [uid, id] : waiting)
    lab_.timeline.After(0us, [this, uid = uid, id = id] { Ask(uid, id); });
}

}  // namespace siding::simulation::pods

#include "controller/platform/kubernetes/reconcile/checkpoints.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/status_fields.h"

namespace siding::kubernetes {
namespace {

// While its owner goes, an object is deleted as soon as it is made, until siding has noticed that as well.
constexpr Duration kWriteAgain = std::chrono::seconds(10);
// Pods must not wait until all of them are written.
constexpr int kMostCalls = 50;

// What is the same now needs no step.
std::optional<CheckpointStep> StepFor(const CheckpointView& checkpoint, const Objects& there,
                                      const std::string& writer) {
  const ObjectName name = NameOf(checkpoint);
  const auto found = there.find(name);
  if (found == there.end()) {
    const bool may_be_ownerless = checkpoint.job_ended || checkpoint.phase == CheckpointPhase::kDeleting;
    if (may_be_ownerless) return std::nullopt;
    return CheckpointStep{name,
                          CheckpointStep::Make{std::make_shared<const Json>(ObjectOf(checkpoint, writer)),
                                               std::make_shared<const Json>(StatusOf(checkpoint))}};
  }
  const Object& object = found->second;
  if (!IsOf(writer, object)) return CheckpointStep{name, CheckpointStep::LeaveAlone{}};
  if (!GoesWith(object, checkpoint.owner))  // it is of another time, and made anew
    return CheckpointStep{name, CheckpointStep::Remove{{object.uid, object.version}}};
  std::optional<Json> patch = StatusPatch(*object.json, object.version, StatusOf(checkpoint));
  if (!patch) return std::nullopt;
  return CheckpointStep{name, CheckpointStep::Write{std::make_shared<const Json>(*std::move(patch))}};
}

bool IsBeingDeleted(const Object& object) {
  return Find(*object.json, {"metadata", "deletionTimestamp"}) != nullptr;
}

std::string TargetOf(const ObjectName& name) { return "checkpoint " + ToString(name); }

}  // namespace

std::vector<CheckpointStep> StepsTowards(const std::vector<CheckpointView>& wanted, const Objects& there,
                                         const std::string& writer) {
  std::vector<CheckpointStep> steps;
  std::set<ObjectName> names;
  for (const CheckpointView& checkpoint : wanted) {
    const ObjectName name = NameOf(checkpoint);
    names.insert(name);
    const auto found = there.find(name);
    if (found != there.end() && IsBeingDeleted(found->second)) continue;
    if (auto step = StepFor(checkpoint, there, writer)) steps.push_back(*std::move(step));
  }
  for (const auto& [name, object] : there) {
    if (names.contains(name) || !IsOf(writer, object) || IsBeingDeleted(object)) continue;
    steps.push_back({name, CheckpointStep::Remove{{object.uid, object.version}}});
  }
  return steps;
}

CheckpointObjects::CheckpointObjects(Transport& transport, Pacer& pacer, const Clock& clock,
                                     std::string writer, Sources sources)
    : clock_(clock),
      writer_(std::move(writer)),
      sources_(std::move(sources)),
      kind_(transport, pacer, clock, Checkpoints(), {"checkpoints", "written"},
            {sources_.wake, sources_.log}) {}

void CheckpointObjects::Round(ApiClient& client) {
  const std::optional<Objects> there = kind_.Look(client);
  if (!there) return;
  const Time now = clock_.Now();
  std::erase_if(made_, [&](const auto& made) { return made.second + kWriteAgain <= now; });
  pauses_.Forget(now);
  left_ = kMostCalls;
  for (const CheckpointStep& step : StepsTowards(sources_.wanted(), *there, writer_)) {
    if (left_ <= 0) break;
    Do(client, step);
  }
  if (left_ <= 0) sources_.wake();
}

void CheckpointObjects::Do(ApiClient& client, const CheckpointStep& step) {
  const std::string target = TargetOf(step.name);
  const Time now = clock_.Now();
  // What the server does not take of some must not use up the calls of all others.
  if (!pauses_.Allow(target, now)) return;
  const auto note = [&](const char* action, const absl::Status& done) {
    pauses_.Note(target, done, now);
    sources_.log(target, action, done);
  };
  if (const auto* make = std::get_if<CheckpointStep::Make>(&step.what)) {
    if (!made_.emplace(step.name, now).second) return;
    --left_;
    const absl::Status made = Make(client, step.name, *make);
    // The watch has not told yet.
    if (!absl::IsAlreadyExists(made)) note("made", made);
  } else if (const auto* write = std::get_if<CheckpointStep::Write>(&step.what)) {
    --left_;
    note("written", client.MergePatch(Checkpoints(), step.name, *write->patch, "status").status());
  } else if (const auto* remove = std::get_if<CheckpointStep::Remove>(&step.what)) {
    --left_;
    note("deleted", client.Delete(Checkpoints(), step.name, remove->only));
  } else {
    sources_.log(
        target, "written",
        absl::AlreadyExistsError("an object that siding has not made has the name; it is left alone"));
  }
}

absl::Status CheckpointObjects::Make(ApiClient& client, const ObjectName& name,
                                     const CheckpointStep::Make& step) {
  SIDING_ASSIGN_OR_RETURN(const Object made, client.Create(Checkpoints(), name.space, *step.object));
  const std::optional<Json> patch = StatusPatch(*made.json, made.version, *step.status);
  if (!patch) return absl::OkStatus();
  return client.MergePatch(Checkpoints(), name, *patch, "status").status();
}

}  // namespace siding::kubernetes

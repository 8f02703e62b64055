#include "controller/platform/kubernetes/objects/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/platform/kubernetes/client/status_fields.h"
#include "controller/platform/kubernetes/objects/saving.h"

namespace siding::kubernetes {
namespace {

std::string ApiVersionOf(const Resource& resource) {
  return resource.group.empty() ? resource.version : absl::StrCat(resource.group, "/", resource.version);
}

}  // namespace

std::string ToString(CheckpointPhase phase) {
  switch (phase) {
    case CheckpointPhase::kMaking:
      return "Making";
    case CheckpointPhase::kDurable:
      return "Durable";
    case CheckpointPhase::kDamaged:
      return "Damaged";
    case CheckpointPhase::kDeleting:
      return "Deleting";
  }
  return "";
}

ObjectName NameOf(const CheckpointView& checkpoint) { return {checkpoint.pod.space, checkpoint.id.value()}; }

Json ObjectOf(const CheckpointView& checkpoint, const std::string& writer) {
  const ObjectName name = NameOf(checkpoint);
  Json metadata = {{"name", name.name},
                   {"namespace", name.space},
                   {"labels", {{kWriterLabel, writer}, {kJobLabel, absl::StrCat(checkpoint.job.value())}}}};
  // The owner's deletion does not wait for it.
  if (const auto resource = ResourceOf(checkpoint.owner)) {
    metadata["ownerReferences"] = Json::array({{{"apiVersion", ApiVersionOf(*resource)},
                                                {"kind", checkpoint.owner.kind},
                                                {"name", checkpoint.owner.name},
                                                {"uid", checkpoint.owner.uid}}});
  }
  return {
      {"apiVersion", ApiVersionOf(Checkpoints())}, {"kind", "Checkpoint"}, {"metadata", std::move(metadata)}};
}

Json StatusOf(const CheckpointView& checkpoint) {
  Json status = {
      {"phase", ToString(checkpoint.phase)}, {"durable", checkpoint.phase == CheckpointPhase::kDurable},
      {"job", checkpoint.job.value()},       {"pod", checkpoint.pod.name},
      {"tier", ToString(checkpoint.tier)},   {"made", TimeText(checkpoint.made)}};
  if (!checkpoint.owner.kind.empty())
    status["owner"] = absl::StrCat(checkpoint.owner.kind, "/", checkpoint.owner.name);
  if (!checkpoint.nodes.empty())
    status["node"] = absl::StrJoin(checkpoint.nodes, ",", [](std::string* out, const NodeId& node) {
      absl::StrAppend(out, node.value());
    });
  if (checkpoint.phase != CheckpointPhase::kMaking) {
    status["size"] = FormatBytes(checkpoint.bytes);
    status["bytes"] = checkpoint.bytes.value;
  }
  if (!checkpoint.note.empty()) status["reason"] = checkpoint.note;
  return status;
}

bool IsOf(const std::string& writer, const Object& object) {
  return TextAt(*object.json, {"metadata", "labels", kWriterLabel}) == writer;
}

bool GoesWith(const Object& object, const Owner& owner) {
  if (!ResourceOf(owner)) return true;
  const Json& owners = ListAt(*object.json, {"metadata", "ownerReferences"});
  return std::any_of(owners.begin(), owners.end(),
                     [&](const Json& one) { return TextAt(one, {"uid"}) == owner.uid; });
}

}  // namespace siding::kubernetes

#include "controller/platform/kubernetes/objects/saving.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/client/status_fields.h"

namespace siding::kubernetes {
namespace {

// Since 1.23 the controller of Jobs keeps its pods by this until it has counted them, and counts as failed
// what is deleted and has not succeeded.
constexpr char kTracking[] = "batch.kubernetes.io/job-tracking";
constexpr char kIndexMark[] = "batch.kubernetes.io/job-completion-index";

// Not the field's name alone: {} and null are nothing.
bool Has(const Json& value, JsonPath path) {
  const Json* found = Find(value, path);
  return found != nullptr && !found->is_null();
}

// Where kubelets keep what they make for pods, which agents know by these names.
constexpr const char* kMadeByKubelets[] = {"/volumes/kubernetes.io~", "/volume-subpaths/"};
// Files that they make for one pod alone.
constexpr const char* kOfOnePod[] = {"/etc-hosts", "/hostname"};
constexpr char kSharedMemory[] = "/dev/shm";

// Another than a folder or a file cannot be the same elsewhere.
bool IsOfFiles(const std::string& type) {
  return type.empty() || absl::StartsWith(type, "Directory") || absl::StartsWith(type, "File");
}

// Agents would take it for something of one pod's, which the next pod has not got.
bool IsNamedAsByKubelets(const std::string& path, const Json& pod) {
  const std::string within = absl::StrCat(path, "/");
  for (const char* made : kMadeByKubelets) {
    if (absl::StrContains(within, made)) return true;
  }
  for (const char* file : kOfOnePod) {
    if (absl::EndsWith(path, file)) return true;
  }
  for (const Json& container : ListAt(pod, {"spec", "containers"})) {
    if (absl::StrContains(within, absl::StrCat("/containers/", TextAt(container, {"name"}), "/")))
      return true;
  }
  return false;
}

// Of all containers that mount this volume.
template <class Is>
bool AllMounts(const Json& pod, const std::string& volume, Is is) {
  for (const char* kind : {"containers", "initContainers"}) {
    for (const Json& container : ListAt(pod, {"spec", kind})) {
      for (const Json& mount : ListAt(container, {"volumeMounts"})) {
        if (TextAt(mount, {"name"}) == volume && !is(mount)) return false;
      }
    }
  }
  return true;
}

// Of a volume that is a folder of the node.
std::string WhyNotHostPath(const Json& pod, const Json& volume, const HostPaths& shared) {
  const std::string name = TextAt(volume, {"name"});
  const auto because = [&](const std::string& why) {
    return absl::StrCat("its volume ", name, " is a folder of its node", why);
  };
  const absl::StatusOr<std::string> path = PlainHostPath(TextAt(volume, {"hostPath", "path"}));
  if (!path.ok() || (!IsBelow(*path, shared.read_write) && !IsBelow(*path, shared.read_only)))
    return because(", and not one that is the same on all nodes (kubernetes.host_paths)");
  if (!IsOfFiles(TextAt(volume, {"hostPath", "type"}))) return because(" for something else than files");
  if (IsNamedAsByKubelets(*path, pod)) return because(" with a name of its kubelet's");
  const auto elsewhere = [](const Json& mount) {
    const auto at = PlainHostPath(TextAt(mount, {"mountPath"}));
    return !at.ok() || *at != kSharedMemory;
  };
  if (!AllMounts(pod, name, elsewhere)) return because(absl::StrCat(", mounted at ", kSharedMemory));
  const auto only_read = [](const Json& mount) { return IsTrueAt(mount, {"readOnly"}); };
  if (!IsBelow(*path, shared.read_write) && !AllMounts(pod, name, only_read))
    return because(", which may be mounted read-only alone (kubernetes.host_paths)");
  return "";
}

std::string WhyNotContainer(const Json& container) {
  const std::string name = TextAt(container, {"name"});
  // A frozen container answers no probe, and its kubelet would start it anew.
  for (const char* probe : {"livenessProbe", "startupProbe"}) {
    if (Has(container, {probe})) return absl::StrCat("container ", name, " has a ", probe);
  }
  if (IsTrueAt(container, {"tty"})) return absl::StrCat("container ", name, " has a terminal");
  for (const Json& mount : ListAt(container, {"volumeMounts"})) {
    if (!TextAt(mount, {"subPath"}).empty() || !TextAt(mount, {"subPathExpr"}).empty())
      return absl::StrCat("container ", name, " mounts a part of the volume ", TextAt(mount, {"name"}));
  }
  return ListAt(container, {"volumeDevices"}).empty()
             ? ""
             : absl::StrCat("container ", name, " uses a raw block device");
}

}  // namespace

bool IsOfRuntimeClass(const Pod& pod) {
  return TextAt(*pod.json, {"spec", "runtimeClassName"}) == kRuntimeClass;
}

std::string WhyNotSaved(const Pod& pod, const HostPaths& shared) {
  const Json& json = *pod.json;
  if (!IsOfRuntimeClass(pod)) return absl::StrCat("spec.runtimeClassName is not ", kRuntimeClass);
  if (pod.owner.uid.empty()) return "it has no owner that would make it again";
  if (!ResourceOf(pod.owner))
    return absl::StrCat("its owner is a ", pod.owner.kind,
                        ", of which siding does not know whether it makes it again");
  if (pod.requests.gpus > 0) return "it has GPUs";
  const Json& containers = ListAt(json, {"spec", "containers"});
  if (containers.size() != 1) return "it has several containers";
  // One that is over before the container starts runs again before that is restored.
  for (const Json& container : ListAt(json, {"spec", "initContainers"})) {
    if (!TextAt(container, {"restartPolicy"}).empty())
      return absl::StrCat("container ", TextAt(container, {"name"}), " runs beside the others");
  }
  for (const char* field : {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"}) {
    if (IsTrueAt(json, {"spec", field})) return absl::StrCat("it has spec.", field);
  }
  for (const Json& volume : ListAt(json, {"spec", "volumes"})) {
    if (!Has(volume, {"hostPath"})) continue;
    if (std::string why = WhyNotHostPath(json, volume, shared); !why.empty()) return why;
  }
  return WhyNotContainer(containers.front());
}

std::optional<Resource> ResourceOf(const Owner& owner) {
  if (owner.kind == "Job") return Resource{"batch", "v1", "jobs", true};
  if (owner.kind == "ReplicaSet") return Resource{"apps", "v1", "replicasets", true};
  if (owner.kind == "StatefulSet") return Resource{"apps", "v1", "statefulsets", true};
  if (owner.kind == "ReplicationController") return Resource{"", "v1", "replicationcontrollers", true};
  return std::nullopt;
}

bool MakesPods(const std::string& kind, const Json& owner) {
  if (Has(owner, {"metadata", "deletionTimestamp"})) return false;
  if (kind != "Job") return WholeAt(owner, {"spec", "replicas"}, 1) > 0;
  return !HasCondition(owner, "Complete") && !HasCondition(owner, "Failed");
}

std::optional<Json> PatchToUncount(const Pod& pod) {
  const Json& finalizers = ListAt(*pod.json, {"metadata", "finalizers"});
  Json others = Json::array();
  for (const Json& finalizer : finalizers) {
    if (finalizer != kTracking) others.push_back(finalizer);
  }
  if (others.size() == finalizers.size()) return std::nullopt;
  return Json{{"metadata", {{"resourceVersion", pod.version}, {"finalizers", std::move(others)}}}};
}

std::string PlaceOf(const Pod& pod) {
  if (pod.owner.kind == "StatefulSet") return pod.name.name;
  const auto annotations = TextsAt(*pod.json, {"metadata", "annotations"});
  const auto index = annotations.find(kIndexMark);
  return pod.owner.kind != "Job" || index == annotations.end() ? "" : index->second;
}

}  // namespace siding::kubernetes

// Whether an agent can freeze a pod and save it with its memory, and whether its owner makes another in its
// place. Pure.
#pragma once

#include <optional>
#include <string>

#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/objects/host_paths.h"
#include "controller/platform/kubernetes/objects/pod.h"

namespace siding::kubernetes {

// Of pods whose containers agents may freeze, save and restore.
inline constexpr char kRuntimeClass[] = "siding";

bool IsOfRuntimeClass(const Pod& pod);
// Why no agent can do it with this pod, for its user; "": one can. `shared`: folders of nodes that it may
// have mounted.
std::string WhyNotSaved(const Pod& pod, const HostPaths& shared = {});

// Where the owner of a pod is found; nothing: siding does not know objects of its kind.
std::optional<Resource> ResourceOf(const Owner& owner);
// The owner, as it is now, makes another pod in the place of one that ends.
bool MakesPods(const std::string& kind, const Json& owner);

// A merge patch after which a Job does not count this pod as failed when it goes: what its controller itself
// does with pods that it deletes. Nothing: there is no need.
std::optional<Json> PatchToUncount(const Pod& pod);

// Pods of one owner that have the same place are each other's successors: a member of a StatefulSet by its
// name, one of an indexed Job by its index. "": the owner's pods are all alike.
std::string PlaceOf(const Pod& pod);

}  // namespace siding::kubernetes

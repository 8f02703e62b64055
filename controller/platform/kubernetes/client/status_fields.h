// The status of an object: what is read of any, and what siding writes.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/object.h"

namespace siding::kubernetes {

// "2026-05-01T12:00:00Z": whole seconds, as everywhere in the API. A later one where it is between two, so
// that a start which is said to be possible is.
std::string TimeText(Time time);
// A condition of this type is there, and "True".
bool HasCondition(const Json& object, absl::string_view type);
// Nothing is in it where there is none.
Json StatusIn(const Json& object);
// What makes the status of an object this one, of the version that was read; nothing: it is.
std::optional<Json> StatusPatch(const Json& object, const std::string& version, const Json& status);

}  // namespace siding::kubernetes

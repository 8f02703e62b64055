// JSON that comes from outside: reading it never throws, and never recurses deeper than allowed.
#pragma once

#include <initializer_list>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding::kubernetes {

using Json = nlohmann::json;

// Objects of the API are a dozen levels deep; custom ones that are deeper than this are refused.
inline constexpr int kDeepestJson = 200;

// kInvalidArgument without any of the text, which may be secret.
absl::StatusOr<Json> ParseJson(absl::string_view text);
// On one line. What is no UTF-8 is replaced.
std::string WriteJson(const Json& value);

using JsonPath = std::initializer_list<absl::string_view>;
// What is at {"metadata", "name"}; null if something is not there, or is no object.
const Json* Find(const Json& value, JsonPath path);
// The elements of a list; none where there is no list.
const Json& ListAt(const Json& value, JsonPath path);
// There is a boolean, and it is true.
bool IsTrueAt(const Json& value, JsonPath path);
// "" if there is no text.
std::string TextAt(const Json& value, JsonPath path);
// The members of an object that are texts; none where there is no object.
std::map<std::string, std::string> TextsAt(const Json& value, JsonPath path);
// `otherwise` if there is no whole number, or one that does not fit.
int64_t WholeAt(const Json& value, JsonPath path, int64_t otherwise = 0);

}  // namespace siding::kubernetes

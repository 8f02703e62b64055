#include "controller/platform/kubernetes/client/json.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace siding::kubernetes {
namespace {

// Copies and writes recurse, so the depth is looked at before anything is made of the text.
bool TooDeep(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestJson) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  if (TooDeep(text)) return absl::InvalidArgumentError("JSON is nested too deeply");
  Json value = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return absl::InvalidArgumentError("not JSON");
  return value;
}

std::string WriteJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* Find(const Json& value, JsonPath path) {
  const Json* at = &value;
  for (const absl::string_view name : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(name));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

const Json& ListAt(const Json& value, JsonPath path) {
  static const Json none = Json::array();
  const Json* found = Find(value, path);
  return found != nullptr && found->is_array() ? *found : none;
}

bool IsTrueAt(const Json& value, JsonPath path) {
  const Json* found = Find(value, path);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

std::string TextAt(const Json& value, JsonPath path) {
  const Json* found = Find(value, path);
  return found != nullptr && found->is_string() ? found->get_ref<const std::string&>() : "";
}

std::map<std::string, std::string> TextsAt(const Json& value, JsonPath path) {
  std::map<std::string, std::string> texts;
  const Json* found = Find(value, path);
  if (found == nullptr || !found->is_object()) return texts;
  for (const auto& [key, member] : found->items()) {
    if (member.is_string()) texts[key] = member.get_ref<const std::string&>();
  }
  return texts;
}

int64_t WholeAt(const Json& value, JsonPath path, int64_t otherwise) {
  const Json* found = Find(value, path);
  if (found == nullptr || !found->is_number_integer()) return otherwise;
  if (found->is_number_unsigned() && found->get<uint64_t>() > std::numeric_limits<int64_t>::max()) {
    return otherwise;
  }
  return found->get<int64_t>();
}

}  // namespace siding::kubernetes

#include "store/parents.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace siding::store {
namespace {

constexpr char kPrefix[] = "parent-";

}  // namespace

std::string NameOf(const ParentFile& place) {
  return place.up == 0 ? place.name : absl::StrCat(kPrefix, place.up, ".", place.name);
}

ParentFile ParentFileOf(const std::string& name) {
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, kPrefix)) {
    const size_t dot = rest.find('.');
    int up = 0;
    const bool counts = dot != absl::string_view::npos && absl::SimpleAtoi(rest.substr(0, dot), &up);
    const ParentFile place{up, std::string(counts ? rest.substr(dot + 1) : "")};
    if (counts && up >= 1 && up <= kMostParents && !place.name.empty() && NameOf(place) == name) return place;
  }
  return {0, name};
}

std::string JobPartOf(const CheckpointId& checkpoint) {
  return checkpoint.value().substr(0, checkpoint.value().rfind('.') + 1);
}

int ParentsOf(const Manifest& manifest) {
  int most = 0;
  for (const ImageFileEntry& file : manifest.files) most = std::max(most, ParentFileOf(file.name).up);
  return most;
}

}  // namespace siding::store

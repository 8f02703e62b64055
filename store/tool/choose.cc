#include "store/tool/choose.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"

namespace siding::store {

absl::StatusOr<std::vector<ImageKey>> Choose(const std::vector<ImageKey>& all,
                                             const std::vector<std::string>& checkpoints,
                                             const std::string& where) {
  std::set<ImageKey> chosen;
  if (checkpoints.empty()) chosen.insert(all.begin(), all.end());
  for (const std::string& name : checkpoints) {
    const auto is_named = [&](const ImageKey& key) { return key.checkpoint.value() == name; };
    if (std::none_of(all.begin(), all.end(), is_named))
      return absl::NotFoundError(absl::StrCat("there is no image of checkpoint ", name, " ", where));
    std::copy_if(all.begin(), all.end(), std::inserter(chosen, chosen.end()), is_named);
  }
  return std::vector<ImageKey>(chosen.begin(), chosen.end());
}

}  // namespace siding::store

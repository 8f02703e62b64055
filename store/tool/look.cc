#include "store/tool/look.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/memory/share_pages.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "store/layout.h"
#include "store/parents.h"
#include "store/tool/choose.h"
#include "store/tool/held_bytes.h"

namespace siding::store {
namespace {

using Json = nlohmann::ordered_json;

struct Sums {
  size_t images = 0;
  Bytes used;  // of those whose manifests can be read
  Bytes held;
  Bytes other;  // beside the images; only where all of these are shown
};

Json ToJson(const ImageKey& key, const absl::StatusOr<Manifest>& manifest) {
  Json image = {{"checkpoint", key.checkpoint.value()}, {"rank", key.rank}};
  image["good"] = manifest.ok();
  if (manifest.ok()) {
    image["files"] = manifest->files.size();
    image["bytes"] = manifest->TotalSize().value;
    image["used_bytes"] = UsedSize(*manifest).value;
    image["new_bytes"] = manifest->NewSize().value;
    image["parents"] = ParentsOf(*manifest);
    image["encrypted"] = !manifest->encryption_key.empty();
    if (!manifest->encryption_key.empty()) image["encryption_key"] = manifest->encryption_key;
    image["created"] = FormatTime(manifest->created);
  } else {
    image["damaged"] = absl::IsDataLoss(manifest.status());
    image["problem"] = std::string(manifest.status().message());
  }
  return image;
}

std::string ToLine(const ImageKey& key, const absl::StatusOr<Manifest>& manifest) {
  const std::string name = Describe(key);
  if (!manifest.ok())
    return absl::StrCat(name, absl::IsDataLoss(manifest.status()) ? ": DAMAGED: " : ": cannot be read: ",
                        std::string(manifest.status().message()));
  std::string line =
      absl::StrCat(name, ": ", manifest->files.size(), " files, ", FormatBytes(UsedSize(*manifest)), ", ",
                   FormatBytes(manifest->NewSize()), " new");
  if (const int parents = ParentsOf(*manifest); parents > 0)
    absl::StrAppend(&line, ", ", parents, " parents");
  if (!manifest->encryption_key.empty())
    absl::StrAppend(&line, ", encrypted with key ", manifest->encryption_key);
  return absl::StrCat(line, ", made ", FormatTime(manifest->created));
}

std::string ToLine(const Sums& sums) {
  std::string line = absl::StrCat(sums.images, " images, ", FormatBytes(sums.used), "; the tier holds ",
                                  FormatBytes(sums.held), " for them");
  if (sums.other > Bytes{})
    absl::StrAppend(&line, ", and ", FormatBytes(sums.other), " in damaged, staging and restore");
  return line;
}

// `sums`: null: none are wanted.
absl::StatusOr<ToolExit> Look(const LookOptions& options, const Terminal& terminal, bool verify, Sums* sums) {
  SIDING_ASSIGN_OR_RETURN(const auto store, InspectDirectoryStore(options.folder));
  SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> all_keys, store->List());
  SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> keys,
                          Choose(all_keys, options.checkpoints, "in " + options.folder));
  const Layout layout{options.folder};
  ToolExit exit = kGood;
  HeldBytes held;
  Json images = Json::array();
  for (const ImageKey& key : keys) {
    const auto manifest =
        verify ? VerifyShown(*store, key, {.from_disk = true}, options.progress, terminal) : store->Read(key);
    if (absl::IsNotFound(manifest.status())) continue;  // deleted meanwhile
    if (absl::IsCancelled(manifest.status())) {
      exit = kStopped;
      break;
    }
    if (!manifest.ok()) exit = kNotGood;
    if (options.json)
      images.push_back(ToJson(key, manifest));
    else
      Say(terminal, ToLine(key, manifest) + (verify && manifest.ok() ? ", good" : ""));
    if (sums == nullptr) continue;
    ++sums->images;
    if (manifest.ok()) sums->used += UsedSize(*manifest);
    sums->held += held.Add(layout.ImageFolder(key));
  }
  Json all = {{"images", std::move(images)}};
  if (sums != nullptr) {
    const std::vector<std::string> others = {layout.Damaged(), layout.Staging(), layout.root + "/restore"};
    if (options.checkpoints.empty())
      for (const std::string& other : others) sums->other += held.Add(other);
    all["used_bytes"] = sums->used.value;
    all["held_bytes"] = sums->held.value;
    if (options.checkpoints.empty()) all["other_bytes"] = sums->other.value;
    if (!options.json) Say(terminal, ToLine(*sums));
  }
  // Names of files that are no text among them.
  if (options.json) terminal.out << all.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return exit;
}

}  // namespace

absl::StatusOr<ToolExit> List(const LookOptions& options, const Terminal& terminal) {
  Sums sums;
  return Look(options, terminal, /*verify=*/false, &sums);
}

absl::StatusOr<ToolExit> Verify(const LookOptions& options, const Terminal& terminal) {
  return Look(options, terminal, /*verify=*/true, nullptr);
}

}  // namespace siding::store

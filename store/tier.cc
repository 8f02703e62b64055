#include "store/tier.h"

#include <cerrno>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "store/staging.h"

namespace siding::store {
namespace {

std::string Folder(const Layout& layout) { return layout.root + "/tier"; }

std::string FreshId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(random(), absl::kZeroPad8));
  return id;
}

absl::Status Away(const std::string& why) { return TierProblem(absl::UnavailableError(why)); }

constexpr size_t kLongestId = 200;

// kNotFound if there is none. Any process that can write to the tier may have put anything there.
absl::StatusOr<std::string> ReadId(const std::string& file) {
  SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegular(file));
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadAll(fd, file, kLongestId));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

absl::StatusOr<std::string> IdAt(const Layout& layout) { return ReadId(Folder(layout) + "/id"); }

// The kernel renames no folder over one that has files, so the first id stays.
absl::Status MakeId(const Layout& layout) {
  SIDING_ASSIGN_OR_RETURN(const auto draft, StagingFolder::Make(layout, "tier"));
  SIDING_RETURN_IF_ERROR(
      IoError(layout, WriteNewFile(*layout.disk, draft->path() + "/id", FreshId() + "\n")));
  SIDING_RETURN_IF_ERROR(IoError(layout, SyncFolder(*layout.disk, draft->path())));
  if (layout.disk->Rename(draft->path(), Folder(layout)) == 0) {
    draft->MovedAway();
  } else if (errno != ENOTEMPTY && errno != EEXIST) {
    return IoError(layout, errno, "rename " + draft->path() + " to " + Folder(layout));
  }
  return IoError(layout, SyncFolder(*layout.disk, layout.root));
}

}  // namespace

absl::StatusOr<std::string> TierId(const Layout& layout) {
  auto id = IdAt(layout);
  if (!absl::IsNotFound(id.status())) return id;
  SIDING_RETURN_IF_ERROR(MakeId(layout));
  SIDING_RETURN_IF_ERROR(FaultAt<"store.tier: a new tier has its id, which nobody remembers">());
  return IdAt(layout);
}

absl::Status CheckTier(const Layout& layout, const std::string& id) {
  if (!IsFolder(layout.Images())) return Away(layout.Images() + " is not there");
  if (id.empty()) return absl::OkStatus();
  if (!IsFolder(layout.Staging())) return Away(layout.Staging() + " is not there");
  const auto found = IdAt(layout);
  if (found.ok() && *found == id) return absl::OkStatus();
  return Away(layout.root + " is not the checkpoint store that it was: is it mounted?");
}

absl::StatusOr<RememberedTier::Remembered> RememberedTier::Read() const {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadId(file_));
  const size_t end = text.find('\n');
  if (end == std::string::npos) return Remembered{text, {}};
  return Remembered{text.substr(0, end), text.substr(end + 1)};
}

absl::Status RememberedTier::Check(const Layout& layout) const {
  if (file_.empty()) return absl::OkStatus();
  const auto remembered = Read();
  if (absl::IsNotFound(remembered.status())) return absl::OkStatus();
  if (!remembered.ok()) return remembered.status();
  const auto found = IdAt(layout);
  if (found.ok() && *found == remembered->id) return absl::OkStatus();
  const bool lived_until_the_last_start =
      !boot_.empty() && !remembered->boot.empty() && remembered->boot != boot_;
  if (lived_until_the_last_start && IsInMemory(layout.root)) return absl::OkStatus();
  const std::string how = found.ok() ? absl::StrCat("its id is ", *found, ", expected ", remembered->id)
                                     : std::string(found.status().message());
  return absl::UnavailableError(
      absl::StrCat(layout.root, " is not the checkpoint store that this node has used (", how,
                   "): is it mounted? If another one has taken its place for good, remove ", file_));
}

absl::Status RememberedTier::Remember(const Layout& layout, const std::string& id) const {
  if (file_.empty()) return absl::OkStatus();
  const std::string boot = IsInMemory(layout.root) ? boot_ : "";
  if (const auto remembered = Read(); remembered.ok() && remembered->id == id && remembered->boot == boot)
    return absl::OkStatus();
  return WriteFileDurably(file_, absl::StrCat(id, "\n", boot, boot.empty() ? "" : "\n"), 0600);
}

}  // namespace siding::store

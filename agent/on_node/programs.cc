#include "agent/on_node/programs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/run_program.h"
#include "common/status.h"
#include "store/checksum.h"

namespace siding {
namespace {

constexpr char kLoader[] = "/lib64/ld-linux-x86-64.so.2";  // of every program for amd64
constexpr char kPrefix[] = "programs-";
constexpr Duration kListing = std::chrono::seconds(30);

absl::Status AddFile(const std::string& path, const std::string& name, NodeFiles& files) {
  if (files.contains(name)) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(files[name], ReadFile(path));
  return absl::OkStatus();
}

std::string NameOf(const NodeFiles& files) {
  store::StreamHash hash;
  for (const auto& [name, content] : files) {
    const std::string head = absl::StrCat(name, "\n", content.size(), "\n");
    hash.Update(head.data(), head.size());
    hash.Update(content.data(), content.size());
  }
  const std::vector<std::string> words = absl::StrSplit(hash.Checksum(), ':');
  return kPrefix + words.back();
}

absl::Status WriteAll(const NodeFiles& files, const std::string& folder) {
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    SIDING_RETURN_IF_ERROR(MakeDirectories(path.parent_path(), 0755));
    const bool data = absl::EndsWith(name, ".conf");
    SIDING_RETURN_IF_ERROR(WriteFileDurably(path, content, data ? 0644 : 0755));
  }
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : ErrnoError(errno, "rename to " + to);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseLibraries(const std::string& listed) {
  std::vector<std::string> libraries;
  for (const absl::string_view line : absl::StrSplit(listed, '\n')) {
    // "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f...)"; the loader and the kernel's own have no
    // arrow.
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    if (words.size() < 3 || words[1] != "=>") continue;
    if (!absl::StartsWith(words[2], "/")) return absl::NotFoundError(absl::StrCat(words[0], " is missing"));
    libraries.emplace_back(words[2]);
  }
  return libraries;
}

absl::StatusOr<NodeFiles> ReadPrograms(const std::map<std::string, std::string>& programs,
                                       const std::string& launcher) {
  NodeFiles files;
  SIDING_RETURN_IF_ERROR(AddFile(kLoader, std::filesystem::path(kLoader).filename(), files));
  for (const auto& [name, path] : programs) {
    SIDING_RETURN_IF_ERROR(AddFile(launcher, name, files));
    SIDING_RETURN_IF_ERROR(AddFile(path, "programs/" + name, files));
    SIDING_ASSIGN_OR_RETURN(const ProgramResult listed, RunProgram({kLoader, "--list", path}, kListing));
    const auto libraries = ParseLibraries(listed.output);
    if (!libraries.ok()) return Annotate(libraries.status(), path);
    if (listed.exit_code != 0) return absl::FailedPreconditionError(absl::StrCat(path, ": ", listed.errors));
    for (const std::string& library : *libraries)
      SIDING_RETURN_IF_ERROR(
          AddFile(library, absl::StrCat("lib/", std::filesystem::path(library).filename().string()), files));
  }
  return files;
}

absl::StatusOr<std::string> PutOnNode(const NodeFiles& files, const std::string& folder) {
  SIDING_RETURN_IF_ERROR(MakeDirectories(folder, 0755));
  const UniqueFd lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) return ErrnoError(errno, folder);
  const std::string name = NameOf(files), place = absl::StrCat(folder, "/", name);
  std::error_code error;
  if (!IsFolder(place)) {
    const std::string draft = folder + "/.new";
    std::filesystem::remove_all(draft, error);
    SIDING_RETURN_IF_ERROR(WriteAll(files, draft));
    SIDING_RETURN_IF_ERROR(Rename(draft, place));
  }
  const std::string current = folder + "/current", link = folder + "/.current.new";
  const std::string before = std::filesystem::read_symlink(current, error).string();
  unlink(link.c_str());
  if (symlink(name.c_str(), link.c_str()) != 0) return ErrnoError(errno, link);
  SIDING_RETURN_IF_ERROR(Rename(link, current));
  SIDING_RETURN_IF_ERROR(SyncDirectory(folder));
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& one : names) {
    if (absl::StartsWith(one, kPrefix) && one != name && one != before)
      std::filesystem::remove_all(absl::StrCat(folder, "/", one), error);
  }
  return place;
}

}  // namespace siding

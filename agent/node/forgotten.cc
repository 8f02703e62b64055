#include "agent/node/forgotten.h"

#include <stdio.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "agent/os/account.h"
#include "agent/os/tmpdir.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

void RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) spdlog::warn("remove {}: {}", path, error.message());
}

}  // namespace

std::function<void()> RemovalOf(const std::string& path, uid_t uid, gid_t gid) {
  return [path, uid, gid] { RemoveUserFolder(path, AccountOf(uid, gid)); };
}

Forgotten::Forgotten(std::string folder, Leftovers& leftovers)
    : folder_(std::move(folder)), leftovers_(leftovers) {
  if (const absl::Status made = MakeDirectories(folder_, 0700); !made.ok())
    spdlog::error("{}", std::string(made.message()));
}

void Forgotten::GoOn() {
  const auto names = ListFolder(folder_);
  if (!names.ok()) return spdlog::error("{}", std::string(names.status().message()));
  for (const std::string& name : *names) Remove(folder_ + "/" + name);
}

void Forgotten::Take(const std::string& task) {
  const auto removed = ReadFile(task + "/" + kRemovedNote);
  // Its own files are few.
  if (!removed.ok()) return RemoveAll(task);
  std::random_device random;
  const std::string aside = absl::StrFormat("%s/%08x%08x", folder_, random(), random());
  if (rename(task.c_str(), aside.c_str()) == 0) return Remove(aside);
  spdlog::warn("rename {}: {}; {} may stay", task, strerror(errno), *removed);
  RemoveAll(task);
}

void Forgotten::Remove(const std::string& path) {
  const auto removed = ReadFile(path + "/" + kRemovedNote);
  const auto record = ReadJsonFile<agent::TaskRecord>(path + "/task.json");
  if (!removed.ok() || !record.ok()) {
    if (removed.ok())
      spdlog::warn("{}: {}; {} may stay", path, std::string(record.status().message()), *removed);
    return RemoveAll(path);
  }
  const v1::JobSpec& spec = record->spec();
  leftovers_.Add(spec.uid(), [path, remove = RemovalOf(*removed, spec.uid(), spec.gid())] {
    FaultHere<"agent.forgotten: what a job has left is about to be removed, its task is forgotten">();
    remove();
    RemoveAll(path);
  });
}

}  // namespace siding

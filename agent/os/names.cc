#include "agent/os/names.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/logging.h"

namespace siding {
namespace {

constexpr size_t kDigits = 16;

// Numbers of processes: those below are not given again once all have been used, and those above there are
// only where an administrator has said so. An image is to be restored on any node.
constexpr int kLeastNumber = 300, kMostNumber = 32768;
// What a script starts before a program that makes such names. The places are a prime number of them.
constexpr int kNumbersApart = 16, kPlaces = 1021, kRanksApart = 31;
// Half of them are left to what the job starts later.
static_assert(kLeastNumber + kPlaces * kNumbersApart <= kMostNumber / 2 + kLeastNumber);

std::string Drawn() {
  std::random_device random;
  return ClusterName(static_cast<int64_t>((uint64_t{random()} << 32) | random()));
}

}  // namespace

bool IsClusterName(const std::string& text) {
  return text.size() == kDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
                  !absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

std::string ClusterName(int64_t cluster) {
  return absl::StrCat(absl::Hex(static_cast<uint64_t>(cluster), absl::kZeroPad16));
}

NodeCluster::NodeCluster(std::string path) : path_(std::move(path)) {
  MutexLock lock(mutex_);
  const auto text = ReadFile(path_);
  if (text.ok()) name_ = std::string(absl::StripAsciiWhitespace(*text));
  if (IsClusterName(name_)) return;
  if (!absl::IsNotFound(text.status()))
    spdlog::error("{}: '{}'; expected the name of this node's cluster, {} hex digits; another is drawn",
                  path_, text.ok() ? name_ : std::string(text.status().message()), kDigits);
  Remember(Drawn());
}

std::string NodeCluster::Name() const {
  MutexLock lock(mutex_);
  return name_;
}

int64_t NodeCluster::Number() const {
  MutexLock lock(mutex_);
  return number_;
}

void NodeCluster::Join(int64_t cluster) {
  MutexLock lock(mutex_);
  number_ = cluster;
  const std::string name = ClusterName(cluster);
  if (cluster != 0 && name != name_) Remember(name);
}

// One that is not remembered counts all the same: tasks keep the name that they were started with.
void NodeCluster::Remember(const std::string& name) {
  name_ = name;
  if (const absl::Status written = WriteFileDurably(path_, name_ + "\n"); !written.ok())
    spdlog::warn("the cluster's name is not remembered: {}", std::string(written.message()));
}

std::string ProgramNames::Tmpdir(uid_t user) const {
  return absl::StrCat("/tmp/siding-", cluster, cluster.empty() ? "" : "-", user, "-job-", job, ".", rank);
}

int ProgramNames::FirstProcess() const {
  const uint64_t whose = std::strtoull(cluster.c_str(), nullptr, 16) % kPlaces;
  const auto job_place = static_cast<uint64_t>(job) % kPlaces * kRanksApart;
  const uint64_t place = (whose + job_place + static_cast<uint64_t>(rank)) % kPlaces;
  return kLeastNumber + static_cast<int>(place) * kNumbersApart;
}

std::string ProgramNames::SharedMemoryMark() const {
  return absl::StrCat(cluster, cluster.empty() ? "" : ".", job, ".", rank);
}

std::string NameOutside(const std::string& task, const std::string& cluster) {
  return cluster.empty() ? task : absl::StrCat(task, ".", cluster);
}

std::string TemporaryName(const std::string& outside, int64_t op) {
  return absl::StrCat(TemporaryNames(outside), op);
}

// As no other task's: there is no '-' in NameOutside().
std::string TemporaryNames(const std::string& outside) { return outside + "-"; }

}  // namespace siding

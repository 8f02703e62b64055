#include "store/verify.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "common/files.h"
#include "common/mutex.h"
#include "common/status.h"
#include "store/checksum.h"
#include "store/disk.h"
#include "store/layout.h"

namespace siding::store {
namespace {

constexpr size_t kMaximumThreads = 4;

// The cheap half: names and sizes.
absl::Status CheckNamesAndSizes(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> expected = {kManifestName};
  for (const ImageFileEntry& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    expected.insert(file.name);
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0) {
      if (errno == ENOENT) return absl::DataLossError(path + " is missing");
      return ErrnoError(errno, "stat " + path);
    }
    if (!S_ISREG(info.st_mode)) return absl::DataLossError(path + " is not a regular file");
    if (info.st_size != file.size.value) {
      return absl::DataLossError(
          absl::StrCat(path, " has ", info.st_size, " bytes, expected ", file.size.value));
    }
  }
  std::string extra;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string path = it->path();
    if (!expected.count(it->path().filename()) && (extra.empty() || path < extra)) extra = path;
  }
  if (error) return absl::InternalError(absl::StrCat("list ", folder, ": ", error.message()));
  if (!extra.empty()) return absl::DataLossError(extra + " does not belong to the image");
  return absl::OkStatus();
}

absl::Status CheckContent(const std::string& path, const ImageFileEntry& file, bool from_disk,
                          const std::function<bool(int64_t)>& done) {
  // Another file than was checked may have its name by now: opening a pipe waits for its writer.
  auto opened = OpenRegular(path);
  if (absl::IsNotFound(opened.status())) return absl::InternalError(std::string(opened.status().message()));
  SIDING_ASSIGN_OR_RETURN(const UniqueFd fd, std::move(opened));
  (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto forget = [&] {
    if (from_disk) (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  };
  forget();
  StreamHash hash;
  const absl::Status read = HashRange(fd.get(), 0, file.size.value, hash, done);
  forget();
  // Bytes that cannot be read now (a server is away) are not lost.
  if (!read.ok()) return Annotate(read, path);
  if (const std::string found = hash.Checksum(); found != file.checksum) {
    return absl::DataLossError(
        absl::StrCat(path, " is damaged: checksum ", found, ", expected ", file.checksum));
  }
  return absl::OkStatus();
}

// What the threads have read together.
class Total {
 public:
  explicit Total(const std::function<bool(Bytes)>& progress) : progress_(progress) {}
  bool Add(Bytes piece) {
    MutexLock lock(mutex_);
    read_ += piece;
    return progress_(read_);
  }

 private:
  const std::function<bool(Bytes)>& progress_;
  Mutex mutex_;
  Bytes read_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::Status VerifyFolder(const std::string& folder, const Manifest& manifest, const VerifyOptions& options) {
  SIDING_RETURN_IF_ERROR(CheckNamesAndSizes(folder, manifest));
  Total total(options.progress);
  std::function<bool(int64_t)> done;
  if (options.progress) done = [&](int64_t piece) { return total.Add(Bytes{piece}); };
  const auto& files = manifest.files;
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return files[a].size > files[b].size; });
  std::vector<absl::Status> results(files.size());
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaximumThreads);
  RunInParallel(files.size(), threads, [&](size_t i) {
    const ImageFileEntry& file = files[order[i]];
    results[order[i]] = CheckContent(folder + "/" + file.name, file, options.from_disk, done);
  });
  for (const absl::Status& result : results) SIDING_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

}  // namespace siding::store

#include "store/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"

namespace siding {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kReadSize = 1 << 20;
constexpr int kThreads = 2;

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  json files = json::array();
  for (const ImageFileEntry& file : manifest.files) {
    files.push_back({{"name", file.name}, {"size", file.size.value}, {"checksum", file.checksum}});
  }
  const json root = {{"format", kFormat},
                     {"checkpoint", manifest.key.checkpoint.value()},
                     {"rank", manifest.key.rank},
                     {"created_us", ToMicros(manifest.created)},
                     {"files", std::move(files)},
                     {"metadata", manifest.metadata}};
  return root.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Manifest> DecodeManifest(const std::string& text, const std::string& path) {
  // nlohmann throws; nothing of ours does.
  try {
    const json root = json::parse(text);
    const int format = root.at("format").get<int>();
    if (format > kFormat) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": written by a newer siding (format ", format, ", this one knows ", kFormat, ")"));
    }
    Manifest manifest;
    manifest.key = {CheckpointId(root.at("checkpoint").get<std::string>()), root.at("rank").get<int>()};
    manifest.created = FromMicros(root.at("created_us").get<int64_t>());
    for (const json& file : root.at("files")) {
      manifest.files.push_back({file.at("name").get<std::string>(), Bytes{file.at("size").get<int64_t>()},
                                file.at("checksum").get<std::string>()});
    }
    manifest.metadata = root.at("metadata").get<std::map<std::string, std::string>>();
    return manifest;
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat(path, ": ", error.what()));
  }
}

absl::StatusOr<ImageFileEntry> HashFile(const std::string& folder, const std::string& name,
                                        const std::function<void(Bytes)>& progress) {
  const std::string path = folder + "/" + name;
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return ErrnoError(errno, absl::StrCat("open ", path));
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  Checksum checksum;
  std::string buffer(kReadSize, '\0');
  int64_t size = 0;
  for (;;) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, absl::StrCat("read ", path));
    if (n == 0) break;
    checksum.Update(buffer.data(), static_cast<size_t>(n));
    size += n;
    if (progress) progress(Bytes{n});
  }
  return ImageFileEntry{name, Bytes{size}, checksum.Digest()};
}

absl::Status VerifyFiles(const std::string& folder, const Manifest& manifest, const std::function<void(Bytes)>& progress) {
  std::set<std::string> expected = {"manifest.json"};
  for (const ImageFileEntry& file : manifest.files) expected.insert(file.name);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!expected.contains(entry.path().filename().string())) {
      return absl::DataLossError(absl::StrCat(entry.path().string(), " does not belong to the image"));
    }
  }
  if (error) return absl::DataLossError(absl::StrCat(folder, ": ", error.message()));

  std::atomic<size_t> next{0};
  std::atomic<int64_t> done{0};
  std::mutex mutex;
  absl::Status result;
  const auto add = [&](Bytes b) {
    const int64_t now = done += b.value;
    if (progress) progress(Bytes{now});
  };
  const auto work = [&] {
    for (size_t i; (i = next++) < manifest.files.size();) {
      const ImageFileEntry& want = manifest.files[i];
      const auto got = HashFile(folder, want.name, add);
      std::string problem;
      if (absl::IsNotFound(got.status())) {
        problem = "is missing";
      } else if (!got.ok()) {
        problem = std::string(got.status().message());
      } else if (got->size != want.size) {
        problem = absl::StrCat("has ", got->size.value, " bytes, expected ", want.size.value);
      } else if (got->checksum != want.checksum) {
        problem = absl::StrCat("is damaged: checksum ", got->checksum, ", expected ", want.checksum);
      }
      if (problem.empty()) continue;
      std::lock_guard lock(mutex);
      if (result.ok()) result = absl::DataLossError(absl::StrCat(folder, "/", want.name, " ", problem));
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < kThreads; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  return result;
}

}  // namespace siding

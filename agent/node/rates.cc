#include "agent/node/rates.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>

#include "common/files.h"
#include "common/since.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr size_t kKept = 32;       // samples of a kind; older ones say little about the present
constexpr Bytes kLarge{16 << 20};  // from here on the time says something about the speed
// A speed that has been measured n times is known no better than to this divided by the root of n.
constexpr double kUnknownSpread = 0.25;
constexpr size_t kProbeBytes = 64 << 20;

constexpr Medium kMedia[] = {Medium::kLocal, Medium::kShared, Medium::kGpu};

const char* Name(Medium medium) {
  static constexpr const char* kNames[] = {"local", "shared", "gpu"};
  return kNames[static_cast<int>(medium)];
}

std::string Name(Medium medium, Transfer transfer) {
  return absl::StrCat(Name(medium), transfer == Transfer::kDump ? ".dump" : ".restore");
}

std::string NameOfFolder(Medium medium) { return absl::StrCat(Name(medium), ".folder"); }

void Push(std::deque<double>& samples, double value) {
  samples.push_back(value);
  while (samples.size() > kKept) samples.pop_front();
}

// The standard deviation of the logarithm, by the distance between quantiles, which one odd sample does not
// move: between the 16th and the 84th percentile of a normal distribution lie two of them.
double Spread(const std::deque<double>& samples) {
  if (samples.empty()) return 0;
  std::vector<double> logs;
  logs.reserve(samples.size());
  for (double sample : samples) logs.push_back(std::log(sample));
  const double measured = (Quantile(logs, 0.8413) - Quantile(logs, 0.1587)) / 2;
  return std::hypot(measured, kUnknownSpread / std::sqrt(static_cast<double>(samples.size())));
}

// Anything else would spread through all that is computed from it.
bool IsSample(double value) { return value > 0 && value < 1e15; }

// Removes the file when it goes out of sight.
struct Removed {
  const std::string path;
  ~Removed() { unlink(path.c_str()); }
};

absl::Status WriteProbe(const std::string& path, const std::string& block, size_t bytes) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoError(errno, "create " + path);
  for (size_t done = 0; done < bytes; done += block.size()) {
    if (write(fd.get(), block.data(), block.size()) != static_cast<ssize_t>(block.size())) {
      return ErrnoError(errno, "write " + path);
    }
  }
  if (fsync(fd.get()) != 0) return ErrnoError(errno, "fsync " + path);
  // Out of the page cache, so that reading it back is reading the disk.
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

absl::Status ProbeOnce(const std::string& path, size_t bytes, Medium medium, Rates& rates) {
  std::string block(std::min<size_t>(bytes, 1 << 20), '\0');
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761u >> 13);
  const Removed removed{path};
  auto start = std::chrono::steady_clock::now();
  SIDING_RETURN_IF_ERROR(WriteProbe(path, block, bytes));
  rates.Add(medium, Transfer::kDump, Bytes{static_cast<int64_t>(bytes)}, Since(start));
  start = std::chrono::steady_clock::now();
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + path);
  ssize_t n;
  while ((n = read(fd.get(), block.data(), block.size())) > 0) {
  }
  if (n < 0) return ErrnoError(errno, "read " + path);
  rates.Add(medium, Transfer::kRestore, Bytes{static_cast<int64_t>(bytes)}, Since(start));
  return absl::OkStatus();
}

}  // namespace

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(std::floor(at));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

Rates::Rates(std::string file) : file_(std::move(file)) { Load(); }

void Rates::IsAt(Medium medium, const std::string& folder, const std::string& before) {
  MutexLock lock(mutex_);
  const auto [known, is_new] = folders_.try_emplace(medium, before);
  if (known->second == folder && !is_new) return;
  if (known->second != folder) {
    for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) samples_.erase({medium, transfer});
  }
  known->second = folder;
  Save();
}

void Rates::Add(Medium medium, Transfer transfer, Bytes bytes, Duration took) {
  MutexLock lock(mutex_);
  Samples& samples = samples_[{medium, transfer}];
  const double seconds = std::max(ToSeconds(took), 1e-6);
  if (bytes < kLarge)
    Push(samples.overheads, seconds);
  else
    Push(samples.speeds, static_cast<double>(bytes.value) / seconds);
  Save();
}

bool Rates::Has(Medium medium) const {
  MutexLock lock(mutex_);
  for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) {
    auto it = samples_.find({medium, transfer});
    if (it == samples_.end() || it->second.speeds.empty()) return false;
  }
  return true;
}

v1::Rate Rates::Summarize(Medium medium, Transfer transfer) const {
  v1::Rate rate;
  auto it = samples_.find({medium, transfer});
  if (it == samples_.end()) return rate;
  const auto& [speeds, overheads] = it->second;
  rate.set_bytes_per_second(Quantile({speeds.begin(), speeds.end()}, 0.5));
  rate.set_overhead_us(FromSeconds(Quantile({overheads.begin(), overheads.end()}, 0.5)).count());
  rate.set_spread(Spread(speeds));
  return rate;
}

v1::TierRates Rates::Get(Medium medium) const {
  MutexLock lock(mutex_);
  v1::TierRates rates;
  *rates.mutable_dump() = Summarize(medium, Transfer::kDump);
  *rates.mutable_restore() = Summarize(medium, Transfer::kRestore);
  return rates;
}

void Rates::Load() {
  auto text = ReadFile(file_);
  if (!text.ok()) return;
  try {
    const auto json = nlohmann::json::parse(*text);
    for (Medium medium : kMedia) {
      if (const std::string folder = json.value(NameOfFolder(medium), ""); !folder.empty())
        folders_[medium] = folder;
      for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) {
        const auto it = json.find(Name(medium, transfer));
        if (it == json.end()) continue;
        Samples& samples = samples_[{medium, transfer}];
        for (double speed : it->at("speeds")) {
          if (IsSample(speed)) Push(samples.speeds, speed);
        }
        for (double overhead : it->at("overheads")) {
          if (IsSample(overhead)) Push(samples.overheads, overhead);
        }
      }
    }
  } catch (const nlohmann::json::exception& error) {
    spdlog::warn("{}: {}; the rates are measured again", file_, error.what());
    samples_.clear();
    folders_.clear();
  }
}

void Rates::Save() const {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, samples] : samples_) {
    json[Name(key.first, key.second)] = {{"speeds", samples.speeds}, {"overheads", samples.overheads}};
  }
  for (const auto& [medium, folder] : folders_) json[NameOfFolder(medium)] = folder;
  if (absl::Status status = WriteFileAtomically(file_, json.dump(2) + "\n"); !status.ok()) {
    spdlog::warn("the measured rates could not be kept: {}", std::string(status.message()));
  }
}

absl::Status ProbeTier(const std::string& tier_folder, Medium medium, Rates& rates) {
  const std::string path = absl::StrCat(tier_folder, "/.probe.", getpid());
  SIDING_RETURN_IF_ERROR(ProbeOnce(path, 4096, medium, rates));
  return ProbeOnce(path, kProbeBytes, medium, rates);
}

}  // namespace siding
